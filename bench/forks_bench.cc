// What a fork costs: forks_bench MIB FORKS. A process fills so much memory and forks so often; each child ends at
// once, and its parent touches all pages in between. Prints medians in milliseconds, as JSON: until fork() returns,
// and until the child has ended. With a third argument the children read all of the memory, and it prints how long
// all of that took.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  constexpr size_t kPageWords = 512;
  const size_t words = static_cast<size_t>(count > 1 ? std::atol(arguments[1]) : 64) << 17;
  const int forks = count > 2 ? std::atoi(arguments[2]) : 5;
  const bool children_read = count > 3;
  auto* const memory = static_cast<uint64_t*>(std::malloc(words * sizeof(uint64_t)));
  uint64_t sum = 0;
  for (size_t i = 0; i < words; ++i) sum += memory[i] = i;
  std::vector<double> returned, ended;
  bool is_right = true;
  for (int i = 0; i < forks; ++i) {
    const auto begin = Clock::now();
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      uint64_t found = 0;
      for (size_t at = 0; at < words && children_read; ++at) found += memory[at];
      _exit(!children_read || found == sum ? 0 : 1);
    }
    returned.push_back(ms_since(begin));
    int status = 0;
    is_right = waitpid(child, &status, 0) == child && status == 0 && is_right;
    ended.push_back(ms_since(begin));
    for (size_t at = 0; at < words; at += kPageWords) {
      ++memory[at];
      ++sum;
    }
  }
  std::printf("{\"fork_ms\": %.3f, \"child_ms\": %.3f, \"right\": %s}\n", median(returned), median(ended),
              is_right ? "true" : "false");
  return is_right ? 0 : 1;
}
