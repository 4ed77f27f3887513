// A workload of durable_bench: a program that stores to a persistent region in failure-atomic sections.
//
// Every store is announced with spw_durable_will_store() and then made, by store() or store_bytes(); one announcement
// is one store of the paper's counts. What a workload sets up before start() is neither timed nor counted.
//
// Regions are made anew for each run, so memory of one is zero where nothing was ever stored. Workloads rely on that
// where they say so. Errors end the program with a sentence. Threads: a workload starts its own; start(), stop() and
// counted() are called by its first one.
#pragma once

#include <spillway/durable.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace spw::bench {

[[noreturn]] void die(const char* what);
[[noreturn]] void die_of_error(const char* call);

template <class T>
void store(T& to, T value) {
  if (spw_durable_will_store(&to, sizeof to) != 0) die_of_error("spw_durable_will_store");
  to = value;
}

inline void store_bytes(void* to, const void* from, size_t bytes) {
  if (spw_durable_will_store(to, bytes) != 0) die_of_error("spw_durable_will_store");
  std::memcpy(to, from, bytes);
}

// The sections of workloads without locks. Its end is durable when the destructor returns.
class Section {
 public:
  Section() {
    if (spw_durable_begin() != 0) die_of_error("spw_durable_begin");
  }
  ~Section() {
    if (spw_durable_end() != 0) die_of_error("spw_durable_end");
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
};

class Run {
 public:
  // `size` and `rounds`: what the workload makes of them.
  Run(spw_durable* region, uint64_t size, uint64_t rounds) : size(size), rounds(rounds), region_(region) {}

  void* allocate(size_t bytes);
  template <class T>
  T* allocate() {
    return static_cast<T*>(allocate(sizeof(T)));
  }
  // Between them is what is timed and counted.
  void start();
  void stop();
  // What the paper counts ends here; what follows until stop() is counted besides.
  void counted();

  double seconds() const { return seconds_; }
  spw_durable_statistics of_all() const { return since_start(*at_stop_); }
  spw_durable_statistics of_papers_part() const {
    return since_start(at_counted_ ? *at_counted_ : *at_stop_);
  }

  const uint64_t size;
  const uint64_t rounds;

 private:
  spw_durable_statistics now() const;
  spw_durable_statistics since_start(spw_durable_statistics then) const;

  spw_durable* const region_;
  std::chrono::steady_clock::time_point started_;
  double seconds_ = 0;
  spw_durable_statistics at_start_{};
  std::optional<spw_durable_statistics> at_counted_, at_stop_;
};

struct Workload {
  const char* name;
  const char* what;
  uint64_t size;  // without --size
  void (*run)(Run& run);
};
// All there are. Each checks what it has made before it returns.
std::span<const Workload> workloads();

void run_persistent_array(Run& run);
void run_queue(Run& run);
void run_linked_list(Run& run);
void run_hash(Run& run);
void run_matrix(Run& run);
void run_molecules(Run& run);
void run_tree(Run& run);

}  // namespace spw::bench
