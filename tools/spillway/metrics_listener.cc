#include "metrics_listener.h"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>

namespace spw::tool {

namespace {

constexpr const char* kForms =
    "give a port (9464), host:port ([::1]:9464) or the path of a socket (./app.sock)";
constexpr unsigned kPortMax = 65535;
constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr const char* kLoopback = "127.0.0.1";

bool is_port(const std::string& text) {
  const bool are_digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return are_digits && !text.empty() && text.size() <= 5 && std::stoul(text) <= kPortMax;
}

Status wrong(int error, const std::string& address, const std::string& why) {
  return Status::sentence(error, fmt::format("--metrics {}: {}", address, why));
}
Status failed(const std::string& address, const std::string& what) {
  return Status(errno, fmt::format("--metrics {}: {}", address, what));
}

struct Path {
  sockaddr_un address{};
  socklen_t bytes = 0;
};
// Nothing: it is too long.
Result<Path> path_address(const std::string& path) {
  Path made;
  made.address.sun_family = AF_UNIX;
  constexpr size_t kPathBytesMax = sizeof made.address.sun_path - 1;
  if (path.size() > kPathBytesMax)
    return wrong(ENAMETOOLONG, path, fmt::format("a socket's path has {} bytes at most", kPathBytesMax));
  std::memcpy(made.address.sun_path, path.c_str(), path.size() + 1);
  made.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return made;
}

// Makes room for a socket at the path: one that nobody listens on is what a killed process left behind.
Status remove_stale_socket(const Path& at) {
  const std::string path = at.address.sun_path;
  struct stat there{};
  if (::lstat(path.c_str(), &there) != 0)
    return errno == ENOENT ? Status::ok() : failed(path, "cannot be looked at");
  if (!S_ISSOCK(there.st_mode))
    return wrong(EEXIST, path, "there is something else than a socket there; give another path");
  const platform::File probe(::socket(AF_UNIX, kSocketFlags, 0));
  if (!probe.is_open()) return failed(path, "no socket can be had");
  const int done = ::connect(probe.fd(), reinterpret_cast<const sockaddr*>(&at.address), at.bytes);
  if (done == 0 || errno == EAGAIN)
    return wrong(EADDRINUSE, path, "another program listens there; give another path");
  if (errno != ECONNREFUSED) return failed(path, "the socket that is there cannot be replaced");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return failed(path, "the old socket there cannot be removed");
  return Status::ok();
}

std::string port_trouble(int error, const ListenAddress& address) {
  switch (error) {
    case EADDRINUSE:
      return fmt::format("another program listens on port {}; give another port, or 0 for one that is free",
                         address.port);
    case EACCES:
      return fmt::format("port {} is root's; give one from 1024 on", address.port);
    case EADDRNOTAVAIL:
      return fmt::format("{} is no address of this machine; 0.0.0.0 stands for all of them", address.host);
    default:
      return std::string("cannot listen there: ") + std::strerror(error);
  }
}

std::string where_of(int socket) {
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  (void)::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &bytes);
  (void)::getnameinfo(reinterpret_cast<sockaddr*>(&bound), bytes, host, sizeof host, port, sizeof port,
                      NI_NUMERICHOST | NI_NUMERICSERV);
  const bool is_v6 = bound.ss_family == AF_INET6;
  return fmt::format("http://{}{}{}:{}/metrics", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

// A socket that listens on the first of them that can be had; errno of the last one else.
platform::File listening_on(const addrinfo* first) {
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    platform::File socket(::socket(at->ai_family, kSocketFlags, at->ai_protocol));
    const int on = 1;
    if (socket.is_open() && ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(socket.fd(), at->ai_addr, at->ai_addrlen) == 0 &&
        ::listen(socket.fd(), MetricsListener::kBacklog) == 0)
      return socket;
    error = errno;
  }
  errno = error;
  return {};
}

}  // namespace

Result<ListenAddress> parse_listen_address(const std::string& text) {
  if (text.find('/') != text.npos) {
    if (text.find('\0') != text.npos || text.back() == '/')
      return wrong(EINVAL, text, "that is a directory, not the path of a socket");
    return ListenAddress{text, "", ""};
  }
  const size_t colon = text.rfind(':');
  const std::string port = colon == text.npos ? text : text.substr(colon + 1);
  std::string host = colon == text.npos ? kLoopback : text.substr(0, colon);
  if (!is_port(port)) return wrong(EINVAL, text, kForms);
  if (host.empty())
    return wrong(EINVAL, text, fmt::format("the host is missing; 0.0.0.0:{} is all of them", port));
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (is_bracketed)
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of(":[]") != host.npos)
    return wrong(EINVAL, text, "an IPv6 address stands in brackets, as in [::1]:9464");
  return ListenAddress{"", host, port};
}

Status MetricsListener::listen_on_path(const ListenAddress& address) {
  auto path = path_address(address.path);
  if (!path) return path.status();
  if (Status status = remove_stale_socket(*path); !status) return status;
  socket_ = platform::File(::socket(AF_UNIX, kSocketFlags, 0));
  if (!socket_.is_open()) return failed(address.path, "no socket can be had");
  // The file has the socket's own mode, from its first moment on.
  (void)::fchmod(socket_.fd(), S_IRUSR | S_IWUSR);
  if (::bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&path->address), path->bytes) != 0)
    return failed(address.path, "cannot make a socket there");
  struct stat made{};
  if (::lstat(address.path.c_str(), &made) != 0) return failed(address.path, "the socket is gone again");
  // Its directory may be left in the meantime, and not by us alone.
  std::error_code ignored;
  path_ = std::filesystem::absolute(address.path, ignored).string();
  device_ = made.st_dev;
  inode_ = made.st_ino;
  where_ = "unix:" + path_;
  return ::listen(socket_.fd(), kBacklog) == 0 ? Status::ok() : failed(address.path, "cannot listen there");
}

Status MetricsListener::listen_on_port(const ListenAddress& address) {
  const std::string name = fmt::format("{}:{}", address.host, address.port);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  if (const int error = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found); error != 0)
    return wrong(EINVAL, name, fmt::format("no such host: {}", ::gai_strerror(error)));
  socket_ = listening_on(found);
  const int error = errno;
  ::freeaddrinfo(found);
  if (!socket_.is_open()) return wrong(error, name, port_trouble(error, address));
  where_ = where_of(socket_.fd());
  return Status::ok();
}

Result<std::unique_ptr<MetricsListener>> MetricsListener::open(const std::string& address) {
  auto parsed = parse_listen_address(address);
  if (!parsed) return parsed.status();
  std::unique_ptr<MetricsListener> made(new MetricsListener);
  Status status = parsed->path.empty() ? made->listen_on_port(*parsed) : made->listen_on_path(*parsed);
  if (!status) return status;
  return made;
}

MetricsListener::~MetricsListener() {
  struct stat there{};
  if (path_.empty() || ::lstat(path_.c_str(), &there) != 0) return;
  if (there.st_dev == device_ && there.st_ino == inode_) (void)::unlink(path_.c_str());
}

}  // namespace spw::tool
