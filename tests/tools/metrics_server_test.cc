#include "metrics_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "metrics_run.h"
#include "openmetrics.h"

namespace spw::tool {
namespace {

using std::chrono::steady_clock;

constexpr const char* kGet = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr const char* kAny = "127.0.0.1:0";
constexpr int kPatienceMs = 60'000;  // longer than anything here takes
// Longer than a test may take: who waits for one fails.
constexpr MetricsServer::TimeLimits kNoLimits = {3600, 3600};

class Client {
 public:
  explicit Client(const std::string& where) {
    if (where.starts_with("unix:"))
      connect_to_path(where.substr(5));
    else
      connect_to_port(static_cast<uint16_t>(std::stoul(where.substr(where.rfind(':') + 1))));
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool is_connected() const { return is_connected_; }
  int socket() const { return socket_; }
  void send(const std::string& text) const { (void)::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  // What comes until the server closes the connection; with "..." at the end if it never did.
  std::string receive() const {
    std::string all;
    char buffer[65536];
    while (true) {
      pollfd readable{socket_, POLLIN, 0};
      if (::poll(&readable, 1, kPatienceMs) <= 0) return all + "...";
      const ssize_t bytes = ::recv(socket_, buffer, sizeof buffer, 0);
      if (bytes <= 0) return all;
      all.append(buffer, static_cast<size_t>(bytes));
    }
  }
  bool is_closed_by_now() const {
    char byte;
    return ::recv(socket_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
  }

 private:
  void connect_to_path(const std::string& path) {
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    is_connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  void connect_to_port(uint16_t port) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  int socket_ = -1;
  bool is_connected_ = false;
};

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!SPW_HAS_METRICS_SERVER) GTEST_SKIP() << "this build has no libevent";
    char name[] = "/tmp/spillway-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    server_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  void start(
      const std::string& address, std::function<std::string()> text = [] { return metrics_text(some_run()); },
      MetricsServer::TimeLimits limits = kNoLimits) {
    auto made = MetricsServer::start(address, std::move(text), limits);
    ASSERT_TRUE(made) << made.status().message();
    server_ = std::move(*made);
    where_ = server_->where().substr(0, server_->where().rfind("/metrics"));
  }
  std::string ask(const std::string& request) const {
    Client client(where_);
    EXPECT_TRUE(client.is_connected()) << where_;
    client.send(request);
    return client.receive();
  }
  void expect_refused(const std::string& address, int error, const std::string& line) {
    auto made = MetricsServer::start(address, [] { return std::string(); });
    ASSERT_FALSE(made) << address;
    EXPECT_EQ(made.status().error(), error) << address;
    EXPECT_EQ(made.status().message(), "--metrics " + line);
  }

  std::string folder_, where_;
  std::unique_ptr<MetricsServer> server_;
};

std::string body_of(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == answer.npos ? "no end of the header: " + answer : answer.substr(end + 4);
}
bool has_line(const std::string& answer, const std::string& line) {
  return ("\r\n" + answer).find("\r\n" + line + "\r\n") != std::string::npos;
}

TEST_F(ServerTest, serves_the_format_that_is_asked_for) {
  start(kAny);
  const std::string plain = ask(kGet);
  EXPECT_TRUE(has_line(plain, "HTTP/1.1 200 OK")) << plain.substr(0, 300);
  EXPECT_TRUE(has_line(plain, "Content-Type: text/plain; version=0.0.4; charset=utf-8"));
  EXPECT_EQ(body_of(plain), prometheus_text(metrics_text(some_run())));
  const std::string open = ask("GET /metrics?x=y HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n");
  EXPECT_TRUE(has_line(open, std::string("Content-Type: ") + kOpenMetricsType)) << open.substr(0, 300);
  EXPECT_EQ(body_of(open), metrics_text(some_run()));
  EXPECT_NO_THROW((void)read_openmetrics(body_of(open)));
}

TEST_F(ServerTest, a_head_has_no_body) {
  start(kAny);
  const std::string answer = ask("HEAD /metrics HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(has_line(answer, "HTTP/1.1 200 OK"));
  const size_t bytes = prometheus_text(metrics_text(some_run())).size();
  EXPECT_TRUE(has_line(answer, "Content-Length: " + std::to_string(bytes))) << answer;
  EXPECT_EQ(body_of(answer), "");
}

TEST_F(ServerTest, other_paths_and_methods_are_refused) {
  start(kAny);
  for (const char* path : {"/", "/metrics/", "/metricsx", "/../metrics", "//metrics"})
    EXPECT_TRUE(
        has_line(ask(std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 404 Not Found"))
        << path;
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"}) {
    const std::string answer =
        ask(std::string(method) + " /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_TRUE(has_line(answer, "HTTP/1.1 405 Method Not Allowed")) << method << " " << answer;
    EXPECT_TRUE(has_line(answer, "Allow: GET, HEAD")) << method;
  }
  EXPECT_TRUE(has_line(ask("BREW /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 501 Not Implemented"));
}

TEST_F(ServerTest, what_is_no_http_ends_its_own_connection_only) {
  start(kAny);
  for (const char* request :
       {"BREW /metrics HTTP/1.1\r\n\r\n", "GET\r\n\r\n", "\x16\x03\x01\x02\x01\r\n\r\n",
        "GET http://[ HTTP/1.1\r\n\r\n", "POST /metrics HTTP/1.1\r\nContent-Length: -4\r\n\r\n"}) {
    const std::string answer = ask(request);
    EXPECT_FALSE(answer.ends_with("...")) << request;
    EXPECT_FALSE(has_line(answer, "HTTP/1.1 200 OK")) << request << answer;
  }
  EXPECT_TRUE(has_line(ask(kGet), "HTTP/1.1 200 OK"));
}

TEST_F(ServerTest, headers_and_bodies_are_bounded) {
  start(kAny);
  const std::string long_line = "X: " + std::string(MetricsServer::kHeaderBytesMax, 'x') + "\r\n";
  EXPECT_FALSE(has_line(ask("GET /metrics HTTP/1.1\r\n" + long_line + "\r\n"), "HTTP/1.1 200 OK"));
  const std::string body(MetricsServer::kBodyBytesMax + 1, 'x');
  EXPECT_FALSE(has_line(
      ask("GET /metrics HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body),
      "HTTP/1.1 200 OK"));
}

TEST_F(ServerTest, many_are_served_at_the_same_time) {
  start(kAny);
  std::atomic<int> served{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) served += has_line(ask(kGet), "HTTP/1.1 200 OK");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, 160);
}

// Clients that say nothing, half of a request, or take no byte of an answer that is larger than any buffer of a socket.
TEST_F(ServerTest, clients_that_stall_keep_nobody_waiting) {
  const std::string large(16 << 20, 'x');
  std::atomic<bool> is_large{true};
  start(kAny, [&] { return is_large ? large : "# EOF\n"; });
  std::vector<std::unique_ptr<Client>> stalled;
  for (const char* request : {"", "GET /met", "GET /metrics HTTP/1.1\r\nHost:", kGet}) {
    stalled.push_back(std::make_unique<Client>(where_));
    stalled.back()->send(request);
  }
  char byte;
  ASSERT_EQ(::recv(stalled.back()->socket(), &byte, 1, MSG_PEEK), 1);  // its answer has begun
  is_large = false;
  EXPECT_TRUE(has_line(ask(kGet), "HTTP/1.1 200 OK"));
  for (const auto& client : stalled) EXPECT_FALSE(client->is_closed_by_now());
  server_.reset();
  EXPECT_EQ(stalled[0]->receive(), "");
}

TEST_F(ServerTest, a_client_that_stays_silent_is_let_go) {
  start(kAny, [] { return std::string(); }, {1, 3600});
  Client silent(where_);
  silent.send("GET /metrics HT");
  EXPECT_EQ(silent.receive().find("..."), std::string::npos);
}

// Of those that stall more than there may be, the oldest go; whoever comes is served.
TEST_F(ServerTest, connections_are_bounded) {
  start(kAny);
  std::vector<std::unique_ptr<Client>> stalled;
  for (size_t i = 0; i < 2 * MetricsServer::kConnectionsMax; ++i) {
    stalled.push_back(std::make_unique<Client>(where_));
    ASSERT_TRUE(stalled.back()->is_connected());
    if (i % 16 == 15) EXPECT_TRUE(has_line(ask(kGet), "HTTP/1.1 200 OK")) << i;
  }
  EXPECT_EQ(stalled.front()->receive(), "");
  EXPECT_FALSE(stalled.back()->is_closed_by_now());
  size_t open = 0;
  for (const auto& client : stalled) open += !client->is_closed_by_now();
  EXPECT_LE(open, MetricsServer::kConnectionsMax);
}

// One byte a while never is silence.
TEST_F(ServerTest, a_client_that_trickles_is_let_go) {
  start(kAny, [] { return std::string(); }, {3600, 1});
  Client slow(where_);
  const auto before = steady_clock::now();
  const auto longest = std::chrono::milliseconds(kPatienceMs);
  for (size_t i = 0; !slow.is_closed_by_now() && steady_clock::now() - before < longest; ++i) {
    slow.send(i == 0 ? "GET /metrics HTTP/1.1\r\nX: " : "x");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(slow.is_closed_by_now());
}

// The server has no descriptor to accept with; it goes on when there is one again.
TEST_F(ServerTest, lack_of_descriptors_passes) {
  start(kAny);
  Client early(where_), late(where_);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(has_line(ask(kGet), "HTTP/1.1 200 OK"));  // early and late are accepted, too
  Client waiting(where_);  // may be accepted before the limit is there; the next one is not
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(waiting.socket());
  Client another(where_);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  another.send(kGet);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(has_line(another.receive(), "HTTP/1.1 200 OK"));
}

TEST_F(ServerTest, a_text_that_cannot_be_made_is_an_error_of_the_server) {
  start(kAny, []() -> std::string { throw std::runtime_error("no"); });
  EXPECT_TRUE(has_line(ask(kGet), "HTTP/1.1 500 Internal Server Error"));
  EXPECT_TRUE(has_line(ask(kGet), "HTTP/1.1 500 Internal Server Error"));
}

TEST_F(ServerTest, a_port_alone_is_of_loopback) {
  start("0");
  EXPECT_TRUE(server_->where().starts_with("http://127.0.0.1:")) << server_->where();
  EXPECT_TRUE(has_line(ask(kGet), "HTTP/1.1 200 OK"));
}

TEST_F(ServerTest, an_ipv6_address_stands_in_brackets) {
  auto made = MetricsServer::start("[::1]:0", [] { return std::string(); });
  if (!made && made.status().error() == EADDRNOTAVAIL) GTEST_SKIP() << "no IPv6 here";
  if (!made && made.status().error() == EAFNOSUPPORT) GTEST_SKIP() << "no IPv6 here";
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_TRUE((*made)->where().starts_with("http://[::1]:")) << (*made)->where();
}

TEST_F(ServerTest, a_port_that_is_taken_is_told) {
  start(kAny);
  const std::string port = where_.substr(where_.rfind(':') + 1);
  expect_refused(port, EADDRINUSE,
                 "127.0.0.1:" + port + ": another program listens on port " + port +
                     "; give another port, or 0 for one that is free");
}

TEST_F(ServerTest, a_wrong_address_is_told) {
  const std::string forms =
      ": give a port (9464), host:port ([::1]:9464) or the path of a socket (./app.sock)";
  for (const char* wrong : {"", "abc", "-1", "65536", "99999999999", "1.5", "localhost:", "localhost:x", ":"})
    expect_refused(wrong, EINVAL, wrong + forms);
  expect_refused(":9464", EINVAL, ":9464: the host is missing; 0.0.0.0:9464 is all of them");
  expect_refused("::1:9464", EINVAL, "::1:9464: an IPv6 address stands in brackets, as in [::1]:9464");
  expect_refused(
      "203.0.113.7:9464", EADDRNOTAVAIL,
      "203.0.113.7:9464: 203.0.113.7 is no address of this machine; 0.0.0.0 stands for all of them");
  expect_refused(folder_ + "/", EINVAL, folder_ + "/: that is a directory, not the path of a socket");
  expect_refused(folder_ + "/none/x.sock", ENOENT,
                 folder_ + "/none/x.sock: cannot make a socket there: No such file or directory");
  const std::string long_path = folder_ + "/" + std::string(100, 'x');
  expect_refused(long_path, ENAMETOOLONG, long_path + ": a socket's path has 107 bytes at most");
}

TEST_F(ServerTest, a_socket_is_the_users_own_and_removed_at_the_end) {
  const std::string path = folder_ + "/x.sock";
  start(path);
  EXPECT_EQ(server_->where(), "unix:" + path);
  struct stat made{};
  ASSERT_EQ(::lstat(path.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode, S_IFSOCK | 0600u);
  EXPECT_TRUE(has_line(ask(kGet), "HTTP/1.1 200 OK"));
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ServerTest, a_stale_socket_is_replaced_and_nothing_else) {
  const std::string path = folder_ + "/x.sock", file = folder_ + "/file";
  {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(socket, 1), 0);
    expect_refused(path, EADDRINUSE, path + ": another program listens there; give another path");
    ::close(socket);
  }
  ASSERT_TRUE(std::filesystem::exists(path));  // as a killed process leaves it
  start(path);
  EXPECT_TRUE(has_line(ask(kGet), "HTTP/1.1 200 OK"));
  std::ofstream(file) << "precious";
  expect_refused(file, EEXIST, file + ": there is something else than a socket there; give another path");
  EXPECT_EQ(std::filesystem::file_size(file), 8u);
}

TEST_F(ServerTest, what_has_taken_the_sockets_place_stays) {
  const std::string path = folder_ + "/x.sock";
  start(path);
  std::filesystem::remove(path);
  std::ofstream(path) << "another's";
  server_.reset();
  EXPECT_TRUE(std::filesystem::exists(path));
}

// Else a program would hold the port after its run.
TEST_F(ServerTest, exec_closes_every_descriptor) {
  start(kAny);
  Client client(where_);
  ASSERT_TRUE(has_line(ask(kGet), "HTTP/1.1 200 OK"));
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    const int flags = ::fcntl(fd, F_GETFD);
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (flags >= 0 && (target.starts_with("socket:") || target.starts_with("anon_inode:")))
      EXPECT_NE(flags & FD_CLOEXEC, 0) << fd << " " << target;
  }
}

}  // namespace
}  // namespace spw::tool
