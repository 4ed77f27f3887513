// The persistent regions of this process: the one durable::Regions
// there is, the part of each thread, the program's locks and stores.
//
// Made at the first use, and kept. A thread's part ends with the thread. Locks are watched from the first region on;
// while no region is open, watching costs a lock one load and one branch.
//
// Errors of what cannot return one (a lock, an announced store) end the program with one line: what had been committed
// is safe, and the section is undone when the region is opened again.
// Fork: a child has no part in the regions; their memory is not there.
// Threads: any; each call holds an InRuntime.
#pragma once

#include "durable/regions.h"

namespace spw::process {

class DurableProcess {
 public:
  static DurableProcess& get();
  // Null: nothing durable has been used.
  static DurableProcess* current();

  // ECHILD: this is a forked child.
  static Status usable();

  durable::Regions& regions() { return regions_; }
  durable::Thread& this_thread();

  struct Settings {
    std::string domain;     // "": auto
    std::string technique;  // "": by the options of the process
    uint64_t burst_stores = 0, capacity_bytes = 0;
    uint32_t threads = 0;
    bool must_exist = false, profiles = false;
  };
  // EINVAL and what opening says.
  Result<unsigned> open(const std::string& path, const Settings& settings);
  Status close(unsigned region);

  void acquired(const void* lock);
  void releasing(const void* lock);
  void before_store(uintptr_t address, size_t bytes);
  static void forked();
  // Ends the process with a line if the address is of a region that is open: of its file something is gone.
  static void explain_bus_error(uintptr_t address);

 private:
  DurableProcess();
  void publish_range();

  durable::Regions regions_;
  pthread_key_t key_;
  std::mutex mutex_;  // opening and closing
};

}  // namespace spw::process
