// A store whose device has nothing in the clear: each page is sealed (AES-256-GCM) on its way there with a nonce that
// is never used again, and nonce and tag stay in this process's memory. What comes back changed, old, or from another
// place does not fit its tag: kNotAsWritten, after one more attempt.
//
// For what lives as long as the process, as its key does. 16 bytes of memory for each page that is there, and a copy of
// what is being written: as much as was asked for, and beyond that one request of each queue.
// Nonces: a counter of the store's. Of a parent and a child that have the same store only one ever writes to it
// (region/spill_layers.h); that they do not meet does not hang on that: a child counts on from a random number in the
// upper half.
// Threads, lifetime: as every store's. A request's contents may change while they are being written, as long as they
// are then written again before they are read.
// Limits: requests of whole pages. Reads of pages that were never written get what is there.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "store/checked/page_table.h"
#include "store/encrypted/page_cipher.h"
#include "store/store_around.h"

namespace spw::store {

class EncryptedStore final : public StoreAround {
 public:
  static constexpr size_t kCopiesMax = 32;  // that are kept
  // `copies_bytes`: of copies at a time. Errors: as PageCipher::create().
  static Result<std::unique_ptr<Store>> around(std::unique_ptr<Store> device, uint64_t copies_bytes);

  std::string describe() const override { return StoreAround::describe() + ", encrypted"; }
  std::string describe_at(uint64_t offset_bytes) const override {
    return StoreAround::describe_at(offset_bytes) + ", encrypted";
  }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  Status transfer(Request& request) override;
  void in_child() override;

 private:
  class Queue;
  // What is known of a page that was written. Read and written by one thread at a time, each after the other has ended.
  struct Seal {
    Atomic<uint64_t> nonce{0};  // 0: nothing is known
    Atomic<uint64_t> tag{0};
  };

  EncryptedStore(std::unique_ptr<Store> device, uint64_t copies_bytes)
      : StoreAround(std::move(device)), copies_bytes_max_(copies_bytes) {}
  // A write's contents sealed, as a request of its own. ENOMEM.
  Status seal(const Request& request, Request& sealed, platform::Mapping& copy);
  void prefetch(const Request& request) const {
    __builtin_prefetch(seals_.find(request.offset_bytes / PageCipher::kPageBytes));
  }
  // It opens what it can.
  bool fits(const Request& request) override;
  void forget(const Request& request);
  platform::Mapping take_copy(uint64_t bytes);
  void put_back(platform::Mapping copy);

  bool has_room(uint64_t bytes) const { return used_bytes_.load_relaxed() + bytes <= copies_bytes_max_; }

  const uint64_t copies_bytes_max_;
  std::unique_ptr<PageCipher> cipher_;
  PageTable<Seal> seals_;
  Atomic<uint64_t> next_nonce_{1};
  std::mutex copies_mutex_;
  std::array<platform::Mapping, kCopiesMax> copies_;  // those that have any bytes are nobody's
  uint64_t kept_bytes_ = 0;
  Atomic<uint64_t> used_bytes_{0};
};

}  // namespace spw::store
