// Instead of metrics_server.cc, where the build found no libevent.
#include "metrics_server.h"

namespace spw::tool {

class MetricsServer::Parts {};

MetricsServer::MetricsServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
MetricsServer::~MetricsServer() = default;

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& address,
                                                            std::function<std::string()>, TimeLimits) {
  return Status::sentence(ENOSYS, "--metrics " + address +
                                      ": this build of spillway has none, since it was built " +
                                      "without libevent; install libevent-dev and build it again");
}

const std::string& MetricsServer::where() const {
  static const std::string nowhere;
  return nowhere;
}

}  // namespace spw::tool
