// How a micro benchmark is timed: rounds of one kernel by a fixed team of threads, after some to warm up,
// preparation outside the clock. When the first timed round begins is printed at once.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/report.h"

namespace examples {

struct Settings {
  uint64_t bytes = 0;  // of the data
  uint64_t ops = 0;    // for kernels that can do any number
  int rounds = 0;      // timed
  int warmups = 1;     // rounds before them that are not
  int threads = 0;
};

struct Measured {
  std::vector<double> round_s;
  double processor_s = 0;  // over all timed rounds
  uint64_t ops = 0;        // of one round
  uint64_t checksum = 0;   // of one round; the same for the same settings, whoever compiled the program

  double total_s() const {
    double total = 0;
    for (const double seconds : round_s) total += seconds;
    return total;
  }

  double median_s() const {
    std::vector<double> sorted = round_s;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

// The part [begin, end) of n things that is thread t's.
struct Share {
  Share(uint64_t n, int t, int threads)
      : begin(n * static_cast<uint64_t>(t) / static_cast<uint64_t>(threads)),
        end(n * static_cast<uint64_t>(t + 1) / static_cast<uint64_t>(threads)) {}
  uint64_t begin;
  uint64_t end;
};

// Runs prepare() and then kernel(thread) -> checksum on all threads at once, again and again.
template <class Prepare, class Kernel>
Measured measure(const Settings& settings, uint64_t ops, Prepare prepare, Kernel kernel) {
  Measured measured;
  measured.ops = ops;
  for (int round = -settings.warmups; round < settings.rounds; ++round) {
    prepare();
    if (round == 0) print_timed_from();
    uint64_t checksum = 0;
    const double processor_start_s = processor_s();
    const double start_s = now_s();
#pragma omp parallel num_threads(settings.threads) reduction(+ : checksum)
    checksum += kernel(omp_get_thread_num());
    const double seconds = now_s() - start_s;
    measured.checksum = checksum;
    if (round < 0) continue;
    measured.round_s.push_back(seconds);
    measured.processor_s += processor_s() - processor_start_s;
  }
  return measured;
}

template <class Kernel>
Measured measure(const Settings& settings, uint64_t ops, Kernel kernel) {
  return measure(settings, ops, [] {}, kernel);
}

}  // namespace examples
