// A product of matrices by blocks: as in SPLASH's dense factorisations,
// a loop nest that goes over one block of the result many times.
//
// A block is 16 by 16 doubles, 32 lines in a row. A section adds the product of two blocks to a third: 16 passes over
// its 32 lines, each line stored to eight times in a row. That is one flush for 8 stores to a table of eight lines, and
// one for 128 to a cache of 32. size: rows and columns, a multiple of 16. rounds: products.
#include <cmath>
#include <vector>

#include "durable/workload.h"

namespace spw::bench {

namespace {

constexpr uint64_t kSide = 16;

struct alignas(64) Block {
  double at[kSide][kSide];
};

void add_product(Block& to, const Block& a, const Block& b) {
  Section section;
  for (uint64_t k = 0; k < kSide; ++k)
    for (uint64_t i = 0; i < kSide; ++i)
      for (uint64_t j = 0; j < kSide; ++j) store(to.at[i][j], to.at[i][j] + a.at[i][k] * b.at[k][j]);
}

// A number at each place, small and whole, so that sums are exact.
double element(uint64_t row, uint64_t column) { return static_cast<double>((row * 7 + column * 3) % 11); }

std::vector<Block> filled(uint64_t blocks) {
  std::vector<Block> matrix(blocks * blocks);
  for (uint64_t row = 0; row < blocks * kSide; ++row)
    for (uint64_t column = 0; column < blocks * kSide; ++column)
      matrix[row / kSide * blocks + column / kSide].at[row % kSide][column % kSide] = element(row, column);
  return matrix;
}

void check(const Block* result, uint64_t blocks, double rounds) {
  for (uint64_t row = 0; row < blocks * kSide; row += kSide - 1) {
    for (uint64_t column = 0; column < blocks * kSide; column += kSide - 1) {
      double sum = 0;
      for (uint64_t k = 0; k < blocks * kSide; ++k) sum += element(row, k) * element(k, column);
      const Block& block = result[row / kSide * blocks + column / kSide];
      if (block.at[row % kSide][column % kSide] != sum * rounds) die("the product is wrong");
    }
  }
}

}  // namespace

void run_matrix(Run& run) {
  if (run.size == 0 || run.size % kSide != 0) die("matrix: the size is a multiple of 16");
  const uint64_t blocks = run.size / kSide;
  const std::vector<Block> a = filled(blocks);
  auto* result = static_cast<Block*>(run.allocate(blocks * blocks * sizeof(Block)));
  run.start();
  for (uint64_t round = 0; round < run.rounds; ++round)
    for (uint64_t i = 0; i < blocks; ++i)
      for (uint64_t j = 0; j < blocks; ++j)
        for (uint64_t k = 0; k < blocks; ++k)
          add_product(result[i * blocks + j], a[i * blocks + k], a[k * blocks + j]);
  run.stop();
  check(result, blocks, static_cast<double>(run.rounds));
}

}  // namespace spw::bench
