// hnswlib: an index of vectors for approximate nearest neighbours, built, searched, saved and loaded in managed memory.
#include <hnswlib/hnswlib.h>

#include <bit>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

constexpr size_t kDimensions = 96;
constexpr size_t kPoints = 10'000;
constexpr size_t kNeighbours = 10;

std::vector<float> points(size_t count, uint64_t seed) {
  std::vector<float> values(count * kDimensions);
  for (float& value : values) value = static_cast<float>(next_random(&seed) % 1000) / 1000;
  return values;
}

void print_neighbours(const char* name, hnswlib::HierarchicalNSW<float>& index) {
  const std::vector<float> wanted = points(200, 11);
  uint64_t sum = 0;
  for (size_t q = 0; q < 200; ++q) {
    auto found = index.searchKnn(wanted.data() + q * kDimensions, kNeighbours);
    for (; !found.empty(); found.pop())
      sum = mix(mix(sum, std::bit_cast<uint32_t>(found.top().first)), found.top().second);
  }
  print_sum(name, sum);
}

int index(long) {
  hnswlib::L2Space space(kDimensions);
  const std::vector<float> data = points(kPoints, 5);
  {
    hnswlib::HierarchicalNSW<float> built(&space, kPoints, 8, 40);
    for (size_t i = 0; i < kPoints; ++i) built.addPoint(data.data() + i * kDimensions, i);
    print_neighbours("built", built);
    for (size_t i = 0; i < kPoints; i += 7) built.markDelete(i);
    print_neighbours("some deleted", built);
    built.saveIndex("index");
  }
  hnswlib::HierarchicalNSW<float> loaded(&space, "index");
  print_neighbours("loaded", loaded);
  return 0;
}

// What threads build depends on their timing; that most points find themselves does not.
int threads(long) {
  hnswlib::L2Space space(kDimensions);
  const std::vector<float> data = points(kPoints, 5);
  hnswlib::HierarchicalNSW<float> built(&space, kPoints, 8, 40);
  std::vector<std::thread> workers;
  for (size_t t = 0; t < 3; ++t)
    workers.emplace_back([&, t] {
      for (size_t i = t; i < kPoints; i += 3) built.addPoint(data.data() + i * kDimensions, i);
    });
  for (std::thread& worker : workers) worker.join();
  built.setEf(80);
  size_t found = 0;
  for (size_t i = 0; i < kPoints; i += 20)
    found += built.searchKnn(data.data() + i * kDimensions, 1).top().second == i;
  printf("most find themselves %d\n", found * 100 > kPoints / 20 * 80);
  return 0;
}

constexpr Part kParts[] = {{"index", index}, {"threads", threads}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
