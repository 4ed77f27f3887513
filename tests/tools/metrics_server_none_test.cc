// The server of a build without libevent.
#include <gtest/gtest.h>

#include "metrics_server.h"

namespace spw::tool {
namespace {

TEST(MetricsServerWithoutLibevent, says_so) {
  auto made = MetricsServer::start("9464", [] { return std::string(); });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.status().error(), ENOSYS);
  EXPECT_EQ(made.status().message(),
            "--metrics 9464: this build of spillway has none, since it was built without libevent; install "
            "libevent-dev and build it again");
}

}  // namespace
}  // namespace spw::tool
