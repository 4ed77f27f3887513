// metrics_of ADDRESS: serves the metrics of metrics_run.h there until standard input ends, for
// tests/tools/metrics_test.py. Prints where it serves; exit code 2 after a line that says why it cannot.
#include <cstdio>

#include "metrics_run.h"
#include "metrics_server.h"

int main(int count, char** words) {
  const char* const address = count == 2 ? words[1] : "";
  auto server =
      spw::tool::MetricsServer::start(address, [] { return spw::tool::metrics_text(spw::tool::some_run()); });
  if (!server) {
    std::fprintf(stderr, "spillway: %s\n", server.status().message().c_str());
    return 2;
  }
  std::printf("%s\n", (*server)->where().c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  return 0;
}
