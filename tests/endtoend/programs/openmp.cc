// OpenMP over managed arrays.
#include <cstdlib>

#include "print.h"

int main() {
  constexpr long kWords = 2'000'000;
  auto* words = static_cast<uint64_t*>(std::malloc(kWords * sizeof(uint64_t)));
  auto* histogram = static_cast<uint64_t*>(std::calloc(4096, sizeof(uint64_t)));
#pragma omp parallel for schedule(static)
  for (long i = 0; i < kWords; ++i) words[i] = static_cast<uint64_t>(i) * 2654435761u;
  uint64_t sum = 0, largest = 0;
#pragma omp parallel for reduction(+ : sum) reduction(max : largest) schedule(dynamic, 5000)
  for (long i = 0; i < kWords; ++i) {
    sum += words[(i * 7) % kWords];
    largest = words[i] > largest ? words[i] : largest;
  }
#pragma omp parallel for
  for (long i = 0; i < kWords; ++i) {
#pragma omp atomic
    ++histogram[words[i] >> 3 & 4095];
  }
#pragma omp parallel for simd
  for (long i = 0; i < kWords; ++i) words[i] = words[i] * 3 + 1;
  uint64_t check = 0;
  for (long i = 0; i < kWords; ++i) check = mix(check, words[i]);
  for (long i = 0; i < 4096; ++i) check = mix(check, histogram[i]);
  print_sum("sum", sum);
  print_sum("largest", largest);
  print_sum("check", check);
}
