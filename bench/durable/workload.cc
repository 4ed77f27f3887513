#include "durable/workload.h"

#include <spillway/spillway.h>

#include <cstdio>
#include <cstdlib>

namespace spw::bench {

void die(const char* what) {
  std::fprintf(stderr, "durable_bench: %s\n", what);
  std::exit(1);
}

void die_of_error(const char* call) {
  std::fprintf(stderr, "durable_bench: %s: %s\n", call, spw_error_message());
  std::exit(1);
}

void* Run::allocate(size_t bytes) {
  void* object = spw_durable_alloc(region_, bytes);
  if (object == nullptr) die_of_error("spw_durable_alloc");
  return object;
}

spw_durable_statistics Run::now() const {
  spw_durable_statistics statistics{};
  if (spw_durable_get_statistics(region_, &statistics) != 0) die_of_error("spw_durable_get_statistics");
  return statistics;
}

spw_durable_statistics Run::since_start(spw_durable_statistics then) const {
  then.stores -= at_start_.stores;
  then.lines_flushed -= at_start_.lines_flushed;
  then.sections -= at_start_.sections;
  then.records -= at_start_.records;
  then.log_bytes -= at_start_.log_bytes;
  return then;
}

void Run::start() {
  if (spw_durable_sync() != 0) die_of_error("spw_durable_sync");
  at_start_ = now();
  started_ = std::chrono::steady_clock::now();
}

void Run::counted() {
  if (!at_counted_) at_counted_ = now();
}

void Run::stop() {
  if (spw_durable_sync() != 0) die_of_error("spw_durable_sync");
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  at_stop_ = now();
}

std::span<const Workload> workloads() {
  static constexpr Workload kWorkloads[] = {
      {"persistent-array", "integers of an array, one after the other, again and again, in one section", 400,
       run_persistent_array},
      {"queue", "a queue with a lock at each end: size items go in, then out", 100'000, run_queue},
      {"linked-list", "a list into which elements are shuffled perfectly", 10'000, run_linked_list},
      {"hash", "a chained hash table that grows: size insertions, then three quarters removed", 4'000,
       run_hash},
      {"matrix", "a product of matrices by blocks; a section is one block's update", 128, run_matrix},
      {"molecules", "forces between all pairs of a cell's molecules; a section is one cell", 64,
       run_molecules},
      {"tree", "a B+-tree of readings; a section inserts some of one sensor", 20'000, run_tree},
  };
  return kWorkloads;
}

}  // namespace spw::bench
