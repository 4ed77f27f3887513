// GET /metrics over HTTP, for whoever watches a run: Prometheus, curl, Grafana's agent (docs/METRICS.md).
//
// One thread serves all connections by events (libevent), so a client that stalls keeps nobody waiting. It is answered
// in OpenMetrics if it asks for that (Accept), else in the older text of Prometheus; other paths get 404, other methods
// than GET and HEAD 405, and what is no method of HTTP 501. A connection has one request.
// Threads: start() and the destructor by one thread; `text` is called by the server's own, one call at a time, and
// clients wait for as long as it takes. Signals go to other threads. A process that is forked meanwhile has no server,
// and has to exec or _exit without one.
// Lifetime: the destructor waits for a call of `text` that goes on, and for no client.
// Limits: below. Of more connections than kConnectionsMax the oldest is ended.
// A build without libevent has a start() that says so.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"

namespace spw::tool {

class MetricsServer {
 public:
  static constexpr size_t kConnectionsMax = 64;
  static constexpr size_t kHeaderBytesMax = 16 << 10;
  static constexpr size_t kBodyBytesMax = 4 << 10;  // which is not looked at
  // Until a connection is ended.
  struct TimeLimits {
    unsigned silent_seconds = 5;  // in which nothing came, or nothing was taken
    unsigned all_seconds = 15;    // however slowly it goes on; told once a second
  };

  // `address` as MetricsListener takes it, and its errors. `text`: makes what is served, in OpenMetrics; where it
  // throws, the client gets 500. ENOSYS: this build has no server.
  static Result<std::unique_ptr<MetricsServer>> start(const std::string& address,
                                                      std::function<std::string()> text, TimeLimits limits);
  static Result<std::unique_ptr<MetricsServer>> start(const std::string& address,
                                                      std::function<std::string()> text) {
    return start(address, std::move(text), TimeLimits());
  }
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // For people: "http://127.0.0.1:9464/metrics", "unix:/run/app.sock".
  const std::string& where() const;

 private:
  class Parts;
  explicit MetricsServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace spw::tool
