#include "process/slow_end.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <string>

#include "process/closing.h"
#include "telemetry/counters.h"

namespace spw::process {
namespace {

// Standard error is a pipe for as long as it lives.
class Pipe {
 public:
  Pipe() : kept_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe(ends_), 0);
    ::dup2(ends_[1], STDERR_FILENO);
    begin_closing();
  }
  ~Pipe() {
    ::dup2(kept_, STDERR_FILENO);
    for (const int fd : {kept_, ends_[0], ends_[1]}) ::close(fd);
    begin_closing();
  }
  // "": nothing comes within the time.
  std::string read(int limit_ms) {
    pollfd comes{ends_[0], POLLIN, 0};
    if (::poll(&comes, 1, limit_ms) != 1) return {};
    char text[512];
    const ssize_t bytes = ::read(ends_[0], text, sizeof text);
    return {text, static_cast<size_t>(bytes > 0 ? bytes : 0)};
  }

 private:
  int kept_;
  int ends_[2];
};

TEST(SlowEnd, tells_how_much_was_written_once_patience_is_over) {
  Pipe error;
  const SlowEnd slow(true, 1'000'000);
  telemetry::count(telemetry::Counter::store_write_bytes, 3 << 20);
  const std::string line = error.read(20'000);
  EXPECT_TRUE(line.starts_with("spillway: the program has ended; what it stored to files is being written: "))
      << line;
  EXPECT_TRUE(line.ends_with("B\n")) << line;
}

TEST(SlowEnd, a_quick_end_says_nothing_and_is_not_kept_waiting) {
  Pipe error;
  {
    const SlowEnd slow(true);
  }
  EXPECT_EQ(error.read(0), "");
}

TEST(SlowEnd, quiet_is_quiet) {
  Pipe error;
  const SlowEnd slow(false, 0);
  EXPECT_EQ(error.read(50), "");
}

TEST(SlowEnd, another_file_under_the_number_is_left_alone) {
  Pipe error, other;
  begin_closing();
  ::dup2(STDOUT_FILENO, STDERR_FILENO);
  EXPECT_FALSE(has_standard_error());
  const SlowEnd slow(true, 0);
  EXPECT_EQ(other.read(50), "");
}

}  // namespace
}  // namespace spw::process
