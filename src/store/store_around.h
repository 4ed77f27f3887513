// What a store that does something to contents on their way shares with the next: all else is its device's.
//
// Threads, lifetime: as every store's; the device is its own.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/atomic.h"
#include "base/units.h"
#include "store/store.h"

namespace spw::store {

class StoreAround : public Store {
 public:
  std::string describe() const override { return device_->describe(); }
  std::string describe_at(uint64_t offset_bytes) const override { return device_->describe_at(offset_bytes); }
  uint64_t size_bytes() const override { return device_->size_bytes(); }
  // Of whole pages, since something is known of each.
  uint64_t alignment_bytes() const override { return std::max(kMmuPageBytes, device_->alignment_bytes()); }
  const Atomic<uint64_t>* written_end() const override { return device_->written_end(); }
  bool is_short_lived() const override { return device_->is_short_lived(); }
  Status reserve(uint64_t offset_bytes, uint64_t bytes) override {
    return device_->reserve(offset_bytes, bytes);
  }
  void lock_for_fork() override { device_->lock_for_fork(); }
  void unlock_after_fork() override { device_->unlock_after_fork(); }
  void in_child() override { device_->in_child(); }
  bool looks_at_contents() const override { return true; }

 protected:
  // Whether what a read has brought is what was written, as far as that is known.
  virtual bool fits(const Request& request) = 0;
  // What a read comes to that the device did well: 0, or a positive errno. What does not fit is read once more, since
  // the way from the device may have been at fault.
  int after_read(Request& request);
  // What the device must not get, since of its pages nothing could be known: it fails with EINVAL.
  static bool is_refused(const Request& request);
  Status refused() const;
  // Done by the device, and a read looked at.
  Status transfer_through(Request& request);

  explicit StoreAround(std::unique_ptr<Store> device) : device_(std::move(device)) {}
  Store& device() const { return *device_; }

 private:
  const std::unique_ptr<Store> device_;
};

// The same of a queue. A request may also end here, without the device: it completes by the next reap(). Who begins to
// wait either finds it, or is found by end_here(), which changes waiting_ too, if by nothing, so that one of the two
// comes after the other.
class QueueAround : public IoQueue {
 public:
  void kick() override { device_->kick(); }
  void wait(uint64_t timeout_ns) override {
    waiting_.fetch_add_acq_rel(1);
    if (ended_here_count_.load_acquire() == 0) device_->wait(timeout_ns);
    waiting_.fetch_sub_acq_rel(1);
  }
  std::optional<Sleep> sleep() override {
    if (ended_here_count_.load_acquire() != 0) return Sleep{-1, 0};
    return device_->sleep();
  }
  void wake() override { device_->wake(); }
  size_t in_flight() const override { return device_->in_flight() + ended_here_count_.load_acquire(); }
  size_t depth() const override { return device_->depth(); }

 protected:
  explicit QueueAround(std::unique_ptr<IoQueue> device) : device_(std::move(device)) {}
  IoQueue& device() const { return *device_; }
  void end_here(Request* request, int error);
  size_t ended_here() const { return ended_here_count_.load_acquire(); }
  size_t reap_here(std::span<Completion> out);

 private:
  const std::unique_ptr<IoQueue> device_;
  std::deque<Completion> ended_here_;
  Atomic<size_t> ended_here_count_{0};  // its size, for who waits
  Atomic<uint32_t> waiting_{0};
};

inline std::span<const iovec> segments_of(const Request& request) {
  return {request.segments, request.segment_count};
}

// Calls visit(page's number, its contents) for each page of a transfer of whole pages, until it says false.
template <class Visit>
bool for_each_page(const Request& request, Visit visit) {
  uint64_t page = request.offset_bytes / kMmuPageBytes;
  for (const iovec& segment : segments_of(request))
    for (size_t at = 0; at < segment.iov_len; at += kMmuPageBytes)
      if (!visit(page++, static_cast<std::byte*>(segment.iov_base) + at)) return false;
  return true;
}

// And at addresses of whole pages: what is not, the device refuses, or is nothing to know of.
inline bool is_of_whole_pages(const Request& request) {
  if (request.segment_count > kSegmentsMax) return false;
  uint64_t parts = request.offset_bytes;
  for (const iovec& segment : segments_of(request))
    parts |= reinterpret_cast<uintptr_t>(segment.iov_base) | segment.iov_len;
  return parts % kMmuPageBytes == 0;
}

}  // namespace spw::store
