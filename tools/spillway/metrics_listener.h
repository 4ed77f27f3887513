// The socket that --metrics is served on.
//
// An address is a port, which is one of 127.0.0.1, a host and a port, or, with a slash in it, the path of a socket
// file. A socket file is made with mode 0600; one that nobody listens on any more is replaced.
// Invariant: socket() listens as long as the listener lives.
// Threads: one at a time. Lifetime: the destructor closes the socket and removes its file, unless the path has become
// another file in the meantime.
// Limits: kBacklog connections wait to be accepted; a path has as many bytes as the kernel takes.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "platform/file.h"

namespace spw::tool {

// "9464", "127.0.0.1:9464", "localhost:0", "[::1]:9464", "/run/app.sock", "./app.sock".
struct ListenAddress {
  std::string path;  // "": host and port
  std::string host;
  std::string port;  // 0 to 65535
};
// EINVAL: it is none of these.
Result<ListenAddress> parse_listen_address(const std::string& text);

class MetricsListener {
 public:
  static constexpr int kBacklog = 32;

  // Port 0: one that is free. EINVAL: no such address; EADDRINUSE: somebody listens there; EEXIST: the path is
  // something else than a socket; or what the kernel says. The message is one sentence that names the address.
  static Result<std::unique_ptr<MetricsListener>> open(const std::string& address);
  ~MetricsListener();
  MetricsListener(const MetricsListener&) = delete;
  MetricsListener& operator=(const MetricsListener&) = delete;

  int socket() const { return socket_.fd(); }  // does not block, and is closed by exec
  // For people: "http://127.0.0.1:9464/metrics", "unix:/run/app.sock".
  const std::string& where() const { return where_; }

 private:
  MetricsListener() = default;
  Status listen_on_path(const ListenAddress& address);
  Status listen_on_port(const ListenAddress& address);

  platform::File socket_;
  std::string path_;  // "": nothing to remove
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::string where_;
};

}  // namespace spw::tool
