// For those who look at a running program: fills 24 MiB, says so, and goes on as soon as it is told to.
#include <cstdint>
#include <cstdio>
#include <vector>

int main() {
  std::vector<uint64_t> words(3 << 20);
  uint64_t sum = 0;
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < words.size(); i += 64) sum += words[i] += i;
  std::printf("filled %llu\n", static_cast<unsigned long long>(sum));
  std::fflush(stdout);
  return std::getchar() == EOF ? 0 : 1;
}
