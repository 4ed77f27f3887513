#include "region/hole_list.h"

#include <algorithm>

#include "base/check.h"

namespace spw::region {

void give_back(store::Store& store, uint64_t offset_bytes, uint64_t bytes) {
  store::Request request;
  request.op = store::Op::kDiscard;
  request.offset_bytes = offset_bytes;
  request.discard_bytes = bytes;
  static_cast<void>(store.transfer(request).is_ok());
}

void HoleList::insert_at(size_t index, Range range) {
  std::copy_backward(ranges_ + index, ranges_ + count_, ranges_ + count_ + 1);
  ranges_[index] = range;
  ++count_;
}

void HoleList::erase_at(size_t index) {
  std::copy(ranges_ + index + 1, ranges_ + count_, ranges_ + index);
  --count_;
}

void HoleList::add(uint64_t offset_bytes, uint64_t bytes) {
  if (bytes == 0) return;
  cancel(offset_bytes, bytes);  // so that the ranges stay disjoint
  Range added{offset_bytes, offset_bytes + bytes};
  size_t at = 0;
  while (at < count_ && ranges_[at].end < added.begin) ++at;
  while (at < count_ && ranges_[at].begin <= added.end) {
    added.begin = std::min(added.begin, ranges_[at].begin);
    added.end = std::max(added.end, ranges_[at].end);
    erase_at(at);
  }
  if (count_ == kPendingMax) {
    flush();
    at = 0;
  }
  insert_at(at, added);
  pending_bytes_ += bytes;
  if (pending_bytes_ >= kPendingBytesMax) flush();
}

void HoleList::cancel(uint64_t offset_bytes, uint64_t bytes) {
  uint64_t begin = offset_bytes, end = offset_bytes + bytes;
  for (size_t i = 0; i < count_;) {
    Range range = ranges_[i];
    if (range.end <= begin || range.begin >= end) {
      ++i;
      continue;
    }
    pending_bytes_ -= std::min(range.end, end) - std::max(range.begin, begin);
    erase_at(i);
    // A cut in the middle makes one range two; with a full list the second half's space is kept by the store until
    // its blocks are freed again.
    if (range.begin < begin) insert_at(i++, {range.begin, begin});
    if (range.end > end) {
      if (count_ < kPendingMax)
        insert_at(i++, {end, range.end});
      else
        pending_bytes_ -= range.end - end;
    }
  }
}

void HoleList::flush() {
  take_all([this](uint64_t begin, uint64_t end) { give_back(*store_, begin, end - begin); });
}

void HoleList::check_invariants() const {
  uint64_t total = 0;
  for (size_t i = 0; i < count_; ++i) {
    SPW_CHECK(ranges_[i].begin < ranges_[i].end);
    SPW_CHECK(i == 0 || ranges_[i - 1].end < ranges_[i].begin);
    total += ranges_[i].end - ranges_[i].begin;
  }
  SPW_CHECK(total == pending_bytes_);
}

}  // namespace spw::region
