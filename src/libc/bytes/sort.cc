#include "libc/bytes/sort.h"

#include <stdlib.h>

#include <algorithm>
#include <memory>

#include "libc/alloc/allocate.h"
#include "libc/entry.h"
#include "libc/managed.h"
#include "libc/real.h"

namespace spw::libc {

namespace {

using NativeBytes = std::unique_ptr<char[], FreeNative>;
NativeBytes native_bytes_of(size_t bytes) { return NativeBytes(static_cast<char*>(libc_malloc(bytes))); }

struct FreeManaged {
  void operator()(char* p) const { release(p); }
};

struct Order {
  ContextComparator compare;
  void* context;
  int operator()(const void* a, const void* b) const { return compare(a, b, context); }
};

// One sorted run of the array, read through a native buffer.
class RunReader {
 public:
  void start(const char* begin, const char* end, size_t element_bytes, char* buffer, size_t buffer_bytes) {
    next_ = begin;
    end_ = end;
    element_bytes_ = element_bytes;
    buffer_ = here_ = buffer_end_ = buffer;
    buffer_bytes_ = buffer_bytes / element_bytes * element_bytes;
  }
  // The first element that was not taken, or nullptr.
  const char* front() {
    if (here_ != buffer_end_) return here_;
    size_t bytes = std::min(buffer_bytes_, static_cast<size_t>(end_ - next_));
    if (bytes == 0) return nullptr;
    copy_bytes(buffer_, next_, bytes);
    next_ += bytes;
    here_ = buffer_;
    buffer_end_ = buffer_ + bytes;
    return here_;
  }
  void take() { here_ += element_bytes_; }

 private:
  const char* next_ = nullptr;
  const char* end_ = nullptr;
  size_t element_bytes_ = 0;
  char* buffer_ = nullptr;
  char* here_ = nullptr;
  char* buffer_end_ = nullptr;
  size_t buffer_bytes_ = 0;
};

class ExternalSort {
 public:
  ExternalSort(char* base, size_t count, size_t bytes, Order order)
      : base_(base),
        total_(count * bytes),
        bytes_(bytes),
        order_(order),
        run_bytes_(kSortRunBytes / bytes * bytes) {}

  // False: something it needs is not there, and the array is as it was or partly sorted.
  bool run() {
    if (run_bytes_ == 0) return false;
    if (!sort_runs()) return false;
    if (total_ <= run_bytes_) return true;
    std::unique_ptr<char, FreeManaged> second(static_cast<char*>(allocate(total_, heap::kAlignmentMin)));
    buffer_bytes_ = std::max(kMergeBufferBytes, bytes_);
    buffers_ = native_bytes_of((kMergeRunsMax + 1) * buffer_bytes_);
    if (second == nullptr || buffers_ == nullptr) return false;
    char *from = base_, *to = second.get();
    for (size_t run = run_bytes_; run < total_; run *= kMergeRunsMax) {
      for (size_t at = 0; at < total_; at += run * kMergeRunsMax)
        merge(from + at, to + at, std::min(run * kMergeRunsMax, total_ - at), run);
      std::swap(from, to);
      if (run > total_ / kMergeRunsMax) break;
    }
    if (from != base_) copy_bytes(base_, from, total_);
    return true;
  }

 private:
  bool sort_runs() {
    NativeBytes buffer = native_bytes_of(std::min(run_bytes_, total_));
    if (buffer == nullptr) return false;
    for (size_t at = 0; at < total_; at += run_bytes_) {
      size_t bytes = std::min(run_bytes_, total_ - at);
      copy_bytes(buffer.get(), base_ + at, bytes);
      qsort_r(buffer.get(), bytes / bytes_, bytes_, order_.compare, order_.context);
      copy_bytes(base_ + at, buffer.get(), bytes);
    }
    return true;
  }

  // Merges the runs of `run` bytes in [from, from + bytes) to `to`.
  void merge(const char* from, char* to, size_t bytes, size_t run) {
    size_t count = (bytes + run - 1) / run;
    for (size_t i = 0; i < count; ++i) {
      const char* begin = from + i * run;
      readers_[i].start(begin, begin + std::min(run, bytes - i * run), bytes_,
                        buffers_.get() + i * buffer_bytes_, buffer_bytes_);
      heap_[i] = i;
    }
    // A heap of run numbers: the smallest front on top, the earlier run first among equals.
    auto later = [&](size_t a, size_t b) {
      int order = order_(readers_[a].front(), readers_[b].front());
      return order > 0 || (order == 0 && a > b);
    };
    std::make_heap(heap_, heap_ + count, later);
    char* out = buffers_.get() + kMergeRunsMax * buffer_bytes_;
    size_t filled = 0, room = buffer_bytes_ / bytes_ * bytes_;
    while (count > 0) {
      RunReader& smallest = readers_[heap_[0]];
      copy_bytes(out + filled, smallest.front(), bytes_);
      filled += bytes_;
      if (filled == room) {
        copy_bytes(to, out, filled);
        to += filled;
        filled = 0;
      }
      smallest.take();
      if (smallest.front() == nullptr) heap_[0] = heap_[--count];
      sift_down(count, later);
    }
    copy_bytes(to, out, filled);
  }

  template <class Later>
  void sift_down(size_t count, Later later) {
    for (size_t at = 0;;) {
      size_t child = 2 * at + 1;
      if (child >= count) return;
      if (child + 1 < count && later(heap_[child], heap_[child + 1])) ++child;
      if (!later(heap_[at], heap_[child])) return;
      std::swap(heap_[at], heap_[child]);
      at = child;
    }
  }

  char* const base_;
  const size_t total_;
  const size_t bytes_;
  const Order order_;
  const size_t run_bytes_;
  size_t buffer_bytes_ = 0;
  NativeBytes buffers_;
  RunReader readers_[kMergeRunsMax];
  size_t heap_[kMergeRunsMax];
};

// In place, with three elements' worth of native memory: what is left when there is room for nothing else.
void heap_sort(char* base, size_t count, size_t bytes, Order order, char* a, char* b) {
  auto load = [&](char* to, size_t i) { copy_bytes(to, base + i * bytes, bytes); };
  auto store = [&](size_t i, const char* from) { copy_bytes(base + i * bytes, from, bytes); };
  // Puts the element in `a` where it belongs below `at`; `b` and `other` hold children meanwhile.
  char* other = b + bytes;
  auto sift = [&](size_t at, size_t end) {
    for (;;) {
      size_t child = 2 * at + 1;
      if (child >= end) break;
      load(b, child);
      if (child + 1 < end) {
        load(other, child + 1);
        if (order(b, other) < 0) {
          std::swap(b, other);
          ++child;
        }
      }
      if (order(a, b) >= 0) break;
      store(at, b);
      at = child;
    }
    store(at, a);
  };
  for (size_t at = count / 2; at-- > 0;) {
    load(a, at);
    sift(at, count);
  }
  for (size_t end = count; end-- > 1;) {
    load(a, end);
    load(b, 0);
    store(end, b);
    sift(0, end);
  }
}

int call_without_context(const void* a, const void* b, void* compare) {
  return reinterpret_cast<Comparator>(compare)(a, b);
}

void sort(char* base, size_t count, size_t bytes, Order order) {
  if (count < 2 || bytes == 0) return;
  auto sorter = std::unique_ptr<ExternalSort>(new (std::nothrow) ExternalSort(base, count, bytes, order));
  if (sorter != nullptr && sorter->run()) return;
  NativeBytes elements = native_bytes_of(3 * bytes);
  if (elements == nullptr)
    return qsort_r(base, count, bytes, order.compare, order.context);  // as foreign code
  heap_sort(base, count, bytes, order, elements.get(), elements.get() + bytes);
}

}  // namespace
}  // namespace spw::libc

using namespace spw::libc;

SPW_ENTRY void __spw_qsort_v1(void* base, size_t count, size_t bytes, Comparator compare) {
  if (!is_elsewhere(base)) return qsort(base, count, bytes, compare);
  sort(static_cast<char*>(base), count, bytes, {call_without_context, reinterpret_cast<void*>(compare)});
}
SPW_ENTRY void __spw_qsort_r_v1(void* base, size_t count, size_t bytes, ContextComparator compare,
                                void* context) {
  if (!is_elsewhere(base)) return qsort_r(base, count, bytes, compare, context);
  sort(static_cast<char*>(base), count, bytes, {compare, context});
}
// The comparator is instrumented code: it takes managed pointers as they are.
SPW_ENTRY void* __spw_bsearch_v1(const void* key, const void* base, size_t count, size_t bytes,
                                 Comparator compare) {
  auto* begin = static_cast<const char*>(base);
  while (count > 0) {
    const char* middle = begin + count / 2 * bytes;
    int order = compare(key, middle);
    if (order == 0) return const_cast<char*>(middle);
    if (order > 0) {
      begin = middle + bytes;
      --count;
    }
    count /= 2;
  }
  return nullptr;
}
