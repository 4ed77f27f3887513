#include "metrics_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include <atomic>
#include <list>
#include <string_view>

#include "metrics_listener.h"
#include "metrics_text.h"
#include "platform/thread.h"
#include "platform/time.h"
#include "platform/wake_fd.h"

namespace spw::tool {

namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr timeval kTick = {1, 0};
constexpr const char* kPath = "/metrics";
// We refuse those that we do not serve; evhttp those that are none, which it has no value of its own type for.
constexpr ev_uint16_t kKnownMethods = EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
                                      EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                                      EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH;

template <auto free_one>
struct Free {
  template <class T>
  void operator()(T* one) const {
    free_one(one);
  }
};
using Base = std::unique_ptr<event_base, Free<&event_base_free>>;
using Http = std::unique_ptr<evhttp, Free<&evhttp_free>>;
using Event = std::unique_ptr<event, Free<&event_free>>;
using Buffer = std::unique_ptr<evbuffer, Free<&evbuffer_free>>;

// The connections that evhttp has, which tells of none before a request is whole: each has a bufferevent that is made
// here and held with a reference. When evhttp is done with one it takes its callbacks away; the socket is closed
// with the last reference, which is this one.
class Connections {
 public:
  ~Connections() {
    for (const Connection& one : all_) bufferevent_decref(one.buffer);
  }

  bufferevent* make(event_base* base) {
    if (all_.size() >= MetricsServer::kConnectionsMax) end_oldest();
    bufferevent* const made = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (made == nullptr) return nullptr;
    bufferevent_incref(made);
    all_.push_back({made, platform::monotonic_ns()});
    return made;
  }
  // Lets go of those that evhttp is done with, and ends those that have taken too long.
  void sweep(uint64_t longest_ns) {
    const uint64_t now_ns = platform::monotonic_ns();
    for (auto one = all_.begin(); one != all_.end();) {
      bufferevent_event_cb on_event = nullptr;
      bufferevent_getcb(one->buffer, nullptr, nullptr, &on_event, nullptr);
      if (on_event == nullptr) {
        bufferevent_decref(one->buffer);
        one = all_.erase(one);
        continue;
      }
      if (now_ns - one->began_ns > longest_ns) end(*one);
      ++one;
    }
  }

 private:
  struct Connection {
    bufferevent* buffer;
    uint64_t began_ns;
    bool is_ended = false;
  };

  // evhttp finds it at its end, and frees it.
  static void end(Connection& one) {
    one.is_ended = true;
    if (const int socket = bufferevent_getfd(one.buffer); socket >= 0) (void)::shutdown(socket, SHUT_RDWR);
  }
  void end_oldest() {
    for (Connection& one : all_)
      if (!one.is_ended) return end(one);
  }

  std::list<Connection> all_;  // the oldest first
};

void reply(evhttp_request* request, int code, const char* reason, const char* type, const std::string& body) {
  evkeyvalq* const headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", type);
  evhttp_add_header(headers, "Content-Length", fmt::to_string(body.size()).c_str());
  evhttp_add_header(headers, "Connection", "close");
  const Buffer buffer(evbuffer_new());
  if (buffer && evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
    evbuffer_add(buffer.get(), body.data(), body.size());
  evhttp_send_reply(request, code, reason, buffer.get());
}

void refuse_request(evhttp_request* request, int code, const char* reason, const std::string& line) {
  reply(request, code, reason, "text/plain; charset=utf-8", line + "\n");
}

}  // namespace

// Everything but the thread belongs to the thread while it runs.
class MetricsServer::Parts {
 public:
  Parts(std::function<std::string()> text, TimeLimits limits) : text_(std::move(text)), limits_(limits) {}
  Status open(const std::string& address);
  ~Parts();
  const std::string& where() const { return listener_->where(); }

 private:
  Status make_server(const std::string& address);
  void serve();
  void answer(evhttp_request* request);
  void answer_with_text(evhttp_request* request);

  const std::function<std::string()> text_;
  const TimeLimits limits_;
  std::unique_ptr<MetricsListener> listener_;
  platform::WakeFd wake_;
  std::atomic<bool> is_ending_{false};
  // What is below goes before what is above, and the server before its base.
  Base base_;
  Connections connections_;
  Event woken_, tick_;
  Http http_;
  evconnlistener* accepting_ = nullptr;  // the server's
  platform::Thread thread_;
};

Status MetricsServer::Parts::open(const std::string& address) {
  auto listener = MetricsListener::open(address);
  if (!listener) return listener.status();
  listener_ = std::move(*listener);
  auto wake = platform::WakeFd::create();
  if (!wake) return wake.status();
  wake_ = std::move(*wake);
  if (Status status = make_server(address); !status) return status;
  auto thread = platform::Thread::start([this] { serve(); });
  if (!thread) return thread.status();
  thread_ = std::move(*thread);
  return Status::ok();
}

Status MetricsServer::Parts::make_server(const std::string& address) {
  // What it has to say is of no use to those who look at the program's output.
  event_set_log_callback([](int, const char*) {});
  const auto out_of_memory = [&] { return Status(ENOMEM, "--metrics " + address + ": cannot serve"); };
  base_.reset(event_base_new());
  if (!base_) return out_of_memory();
  http_.reset(evhttp_new(base_.get()));
  // Both end a turn of the loop in serve(), and a tick has us accept again after an error.
  woken_.reset(event_new(base_.get(), wake_.fd(), EV_READ, [](evutil_socket_t, short, void*) {}, nullptr));
  const auto on_tick = [](evutil_socket_t, short, void* parts) {
    (void)evconnlistener_enable(static_cast<Parts*>(parts)->accepting_);
  };
  tick_.reset(event_new(base_.get(), -1, EV_PERSIST, on_tick, this));
  if (!http_ || !woken_ || !tick_ || event_add(woken_.get(), nullptr) != 0 ||
      event_add(tick_.get(), &kTick) != 0)
    return out_of_memory();
  accepting_ =
      evconnlistener_new(base_.get(), nullptr, nullptr, LEV_OPT_CLOSE_ON_EXEC, 0, listener_->socket());
  if (accepting_ == nullptr) return out_of_memory();
  if (evhttp_bind_listener(http_.get(), accepting_) == nullptr) {
    evconnlistener_free(accepting_);
    return out_of_memory();
  }
  // No descriptor is left: it would be asked again and again at once.
  evconnlistener_set_error_cb(
      accepting_, [](evconnlistener* accepting, void*) { (void)evconnlistener_disable(accepting); });
  evhttp_set_max_headers_size(http_.get(), kHeaderBytesMax);
  evhttp_set_max_body_size(http_.get(), kBodyBytesMax);
  evhttp_set_timeout(http_.get(), static_cast<int>(limits_.silent_seconds));
  evhttp_set_allowed_methods(http_.get(), kKnownMethods);
  evhttp_set_bevcb(
      http_.get(),
      [](event_base* base, void* parts) { return static_cast<Parts*>(parts)->connections_.make(base); },
      this);
  evhttp_set_gencb(
      http_.get(), [](evhttp_request* request, void* parts) { static_cast<Parts*>(parts)->answer(request); },
      this);
  return Status::ok();
}

void MetricsServer::Parts::serve() {
  while (!is_ending_.load(std::memory_order_acquire)) {  // pairs with the destructor's release
    if (event_base_loop(base_.get(), EVLOOP_ONCE) < 0) return;
    connections_.sweep(limits_.all_seconds * kNsPerSecond);
  }
}

MetricsServer::Parts::~Parts() {
  is_ending_.store(true, std::memory_order_release);  // pairs with serve()'s acquire
  if (wake_.fd() >= 0) wake_.wake();
  thread_.join();
}

void MetricsServer::Parts::answer(evhttp_request* request) {
  const evhttp_uri* const uri = evhttp_request_get_evhttp_uri(request);
  const char* const path = uri != nullptr ? evhttp_uri_get_path(uri) : nullptr;
  if (path == nullptr || std::string_view(path) != kPath)
    return refuse_request(request, HTTP_NOTFOUND, "Not Found", "there is only /metrics here");
  const evhttp_cmd_type method = evhttp_request_get_command(request);
  if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
    evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD");
    return refuse_request(request, HTTP_BADMETHOD, "Method Not Allowed", "only GET and HEAD are served");
  }
  answer_with_text(request);
}

// No exception may reach libevent, which is C.
void MetricsServer::Parts::answer_with_text(evhttp_request* request) {
  try {
    const char* const accept = evhttp_find_header(evhttp_request_get_input_headers(request), "Accept");
    const bool as_openmetrics = asks_for_openmetrics(accept != nullptr ? accept : "");
    const std::string text = as_openmetrics ? text_() : prometheus_text(text_());
    reply(request, HTTP_OK, "OK", as_openmetrics ? kOpenMetricsType : kPrometheusType, text);
  } catch (...) {
    refuse_request(request, HTTP_INTERNAL, "Internal Server Error",
                   "the metrics cannot be made at the moment");
  }
}

MetricsServer::MetricsServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
MetricsServer::~MetricsServer() = default;

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& address,
                                                            std::function<std::string()> text,
                                                            TimeLimits limits) {
  auto parts = std::make_unique<Parts>(std::move(text), limits);
  if (Status status = parts->open(address); !status) return status;
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(parts)));
}

const std::string& MetricsServer::where() const { return parts_->where(); }

}  // namespace spw::tool
