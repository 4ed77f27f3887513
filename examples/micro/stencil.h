// A five-point stencil on a grid of doubles that is large: each round computes a new grid from the old one, row by row.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "common/random.h"
#include "micro/harness.h"

namespace examples {

// New values of a row's inner points from its own old ones and those of the rows above and below.
inline void stencil_row(const double* above, const double* here, const double* below, double* out,
                        uint64_t columns) {
  out[0] = here[0];
  for (uint64_t c = 1; c + 1 < columns; ++c)
    out[c] = 0.5 * here[c] + 0.125 * ((above[c] + below[c]) + (here[c - 1] + here[c + 1]));
  out[columns - 1] = here[columns - 1];
}

// Two grids share the bytes. Rows of 32 KiB; the first and the last stay as they are.
inline Measured stencil(const Settings& settings) {
  constexpr uint64_t kColumns = 4096;
  const uint64_t rows = std::max<uint64_t>(3, settings.bytes / (2 * kColumns * sizeof(double)));
  const std::unique_ptr<double[]> grids[2] = {std::unique_ptr<double[]>(new double[rows * kColumns]),
                                              std::unique_ptr<double[]>(new double[rows * kColumns])};
#pragma omp parallel for schedule(static) num_threads(settings.threads)
  for (uint64_t i = 0; i < rows * kColumns; ++i)
    grids[0][i] = grids[1][i] = static_cast<double>(random_at(1, i) >> 40);
  int from = 1;
  const auto prepare = [&] { from = 1 - from; };
  return measure(settings, rows * kColumns, prepare, [&](int thread) {
    const double* const old = grids[from].get();
    double* const fresh = grids[1 - from].get();
    const Share inner(rows - 2, thread, settings.threads);
    uint64_t checksum = 0;
    for (uint64_t row = inner.begin + 1; row < inner.end + 1; ++row) {
      const double* const here = old + row * kColumns;
      double* const out = fresh + row * kColumns;
      stencil_row(here - kColumns, here, here + kColumns, out, kColumns);
      uint64_t bits;
      std::memcpy(&bits, out + row % kColumns, sizeof bits);
      checksum += mix(bits);
    }
    return checksum;
  });
}

}  // namespace examples
