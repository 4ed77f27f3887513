// A store with compressed memory before its device: what is written is kept there as long as it compresses and there
// is room, and goes to the device when room is needed; what is read comes from where it is
// (compressed/compressed_pages.h). Pages that do not compress go to the device as if there were nothing in between.
//
// For what lives as long as the process: a sync says nothing of what is in memory.
// Requests are cut where pages that are here meet pages that are not; what is here is done before submit() or
// transfer() returns, and the rest are *pieces*, requests of their own. Evictions are pieces, too: a queue that takes
// a write while room is short begins some, and their contents wait in one of kBuffers buffers. When all are in use
// what is written goes to the device, which is how writers wait for it.
// Threads, lifetime: as every store's; a queue's pieces are its thread's. A request's contents may change while they
// are being written, as long as they are then written again before they are read.
// Limits: requests of whole pages, at addresses of whole pages; others fail with EINVAL. Around a fork:
// lock_for_fork().
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/compressed/compressed_pages.h"
#include "store/store_around.h"

namespace spw::store {

class CompressedStore;

// What the stores of one process that compress have together. The budget may change at any time: with less, what is too
// much goes to the devices, by writes that are still to come and by evict_to_budget().
// Threads: any. In a forked child: in_child() before anything else.
class CompressedMemory {
 public:
  CompressedMemory(std::unique_ptr<PageCodec> by, uint64_t bytes_max)
      : codec(std::move(by)), budget(bytes_max) {}

  // What pages read from devices cost: how long their requests took, as far as the requests that were under way
  // together are more than there are processors to go on with them.
  struct DeviceReads {
    double ns = 0;
    double pages = 0;
  };
  DeviceReads take_device_reads();

  // Until the budget is kept to, no store has anything to evict, or for kEvictionsMax of them. Waits for its writes.
  static constexpr size_t kEvictionsMax = 64;
  void evict_to_budget();
  void in_child();

  const std::unique_ptr<PageCodec> codec;
  PoolBudget budget;

 private:
  friend class CompressedStore;
  uint64_t begin_device_read();  // the time, for end_device_read()
  void give_up_device_read();
  void end_device_read(uint64_t began_ns, uint64_t bytes);

  platform::SmallLock mutex_;
  std::vector<CompressedStore*> stores_;
  Atomic<uint32_t> reads_under_way_{0};
  Atomic<uint64_t> read_ns_{0}, read_pages_{0};
};

class CompressedStore final : public StoreAround {
 public:
  static constexpr size_t kBuffers = 8;

  // `memory` outlives it.
  static Result<std::unique_ptr<Store>> around(std::unique_ptr<Store> device, CompressedMemory& memory);
  ~CompressedStore() override;

  std::string describe() const override;
  std::string describe_at(uint64_t offset_bytes) const override;
  // What is here may be behind the device's.
  const Atomic<uint64_t>* written_end() const override { return nullptr; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  Status transfer(Request& request) override;
  void lock_for_fork() override;
  void unlock_after_fork() override;
  void in_child() override;

 private:
  friend class CompressedMemory;
  class Queue;
  using Pages = CompressedPages;
  // Pages of a request in a row that are to be done by the device.
  struct Run {
    uint64_t first;  // in the request
    uint64_t count;
  };

  CompressedStore(std::unique_ptr<Store> device, CompressedMemory& memory)
      : StoreAround(std::move(device)), memory_(memory) {}
  // Of one group, and waits. False: there was none.
  bool evict_one();
  bool fits(const Request&) override { return true; }
  // Does what can be done here; `runs` are left. 0, or kNotAsWritten.
  int do_here(const Request& request, std::vector<Run>& runs);
  void keep_what_was_read(const Request& request);
  std::byte* take_buffer();
  void put_back(std::byte* buffer);

  CompressedMemory& memory_;
  std::unique_ptr<Pages> pages_;
  platform::Mapping buffers_memory_;
  platform::SmallLock buffers_mutex_;
  std::vector<std::byte*> buffers_;
};

}  // namespace spw::store
