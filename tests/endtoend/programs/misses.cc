// For those who look at a running program: misses blocks of one array of 32
// MiB in no order until it is told to end, and uses a small one besides.
#include <poll.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr size_t kWords = 4 << 20;

[[gnu::noinline]] uint64_t* make_large_array() { return new uint64_t[kWords](); }

bool told_to_end() {
  pollfd in{0, POLLIN, 0};
  return poll(&in, 1, 0) > 0;
}

}  // namespace

int main() {
  uint64_t* const large = make_large_array();
  std::vector<uint64_t> small(1 << 18);
  uint64_t place = 1, sum = 0;
  for (size_t i = 0; i < kWords; i += 512) large[i] = i;
  std::puts("begun");
  std::fflush(stdout);
  while (!told_to_end())
    for (int i = 0; i < 500; ++i) {
      place = place * 6364136223846793005u + 1442695040888963407u;
      sum += large[(place >> 20) % kWords];
      small[i % small.size()] += sum;
    }
  delete[] large;
  return sum == 1 ? 1 : 0;
}
