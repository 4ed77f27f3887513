// Two arrays that want memory in different ways: one of 16 MiB walked
// through in a loop, one of 16 MiB used in a random order.
#include <cstdint>
#include <cstdio>

namespace {

constexpr size_t kWords = 2 << 20;

[[gnu::noinline]] uint64_t* make_looped() { return new uint64_t[kWords](); }
[[gnu::noinline]] uint64_t* make_random() { return new uint64_t[kWords](); }

}  // namespace

int main() {
  uint64_t *const looped = make_looped(), *const random = make_random();
  for (size_t i = 0; i < kWords; i += 64) looped[i] = random[i] = i;
  uint64_t sum = 0, place = 1;
  for (int round = 0; round < 6; ++round)
    for (size_t i = 0; i < kWords; i += 512) {
      sum += looped[i];
      place = place * 6364136223846793005u + 1442695040888963407u;
      if (i % 2048 == 0) sum += random[(place >> 20) % kWords];
    }
  std::printf("sum %llu\n", static_cast<unsigned long long>(sum));
  delete[] looped;
  delete[] random;
  return 0;
}
