#include "store/engine/aio_context.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/atomic.h"

namespace spw::store {

namespace {

int or_error(long result) { return result < 0 ? -errno : static_cast<int>(result); }

// Contexts that nobody uses. A pointer is its owner's: who exchanges it for nullptr, who puts it where there is none.
class Kept {
 public:
  constexpr Kept() = default;

  // The first that `fits`, or nullptr.
  template <class Fits>
  AioContext* take(Fits fits) {
    for (Atomic<AioContext*>& place : places_) {
      if (place.load_relaxed() == nullptr) continue;
      AioContext* const found = place.exchange_acq_rel(nullptr);
      if (found == nullptr) continue;
      if (fits(*found)) return found;
      put(found);
    }
    return nullptr;
  }
  void forget() {
    for (Atomic<AioContext*>& place : places_) place.store_relaxed(nullptr);
  }
  void put(AioContext* context) {
    for (Atomic<AioContext*>& place : places_) {
      AioContext* nobody = nullptr;
      if (place.cas_strong_acq_rel(nobody, context)) return;
    }
  }

 private:
  Atomic<AioContext*> places_[AioContext::kKeptMax]{};
};

constinit Kept the_kept;
constinit uint32_t the_generation = 0;  // changes while there is one thread
constinit Atomic<bool> the_first_is_made{false};

}  // namespace

// As the kernel lays it out (fs/aio.c). `head` is the reader's, `tail` the kernel's.
struct AioContext::Ring {
  static constexpr uint32_t kMagic = 0xa10a10a1;

  uint32_t id, nr;
  Atomic<uint32_t> head, tail;
  uint32_t magic, compatible, incompatible, header_bytes;
  io_event events[];
};

bool AioContext::exist() {
  aio_context_t none = 0;
  return or_error(::syscall(SYS_io_setup, 0, &none)) == -EINVAL;  // no room is asked for
}

bool AioContext::is_one_there() { return the_first_is_made.load_relaxed(); }

void AioContext::in_child() {
  the_first_is_made.store_relaxed(false);
  ++the_generation;
  the_kept.forget();
}

Result<AioContext::Taken> AioContext::take(size_t depth, std::unique_ptr<AioContext>* made) {
  if (AioContext* const kept = the_kept.take([&](const AioContext& one) { return one.depth_ >= depth; }))
    return Taken(kept);
  aio_context_t id = 0;
  if (const int error = or_error(::syscall(SYS_io_setup, depth, &id)); error < 0)
    return Status(-error, "cannot set up asynchronous I/O (libaio)");
  the_first_is_made.store_relaxed(true);
  AioContext* const taken = made->release();
  taken->id_ = id;
  taken->depth_ = depth;
  taken->generation_ = the_generation;
  taken->ring_ = reinterpret_cast<Ring*>(id);
  taken->own_.emplace();
  return Taken(taken);
}

void AioContext::GiveBack::operator()(AioContext* context) const {
  if (context->generation_ == the_generation) the_kept.put(context);
}

int AioContext::submit(std::span<iocb*> controls) {
  return or_error(::syscall(SYS_io_submit, id_, controls.size(), controls.data()));
}

bool AioContext::is_readable() const { return ring_->magic == Ring::kMagic && ring_->incompatible == 0; }

bool AioContext::may_have_results() const {
  return !is_readable() || ring_->head.load_relaxed() != ring_->tail.load_relaxed();
}

int AioContext::take_results(std::span<io_event> out) {
  if (!is_readable()) {
    timespec at_once{};
    return or_error(::syscall(SYS_io_getevents, id_, 0, out.size(), out.data(), &at_once));
  }
  uint32_t head = ring_->head.load_relaxed();
  const uint32_t tail = ring_->tail.load_acquire();
  size_t taken = 0;
  for (; taken < out.size() && head != tail; ++taken) {
    out[taken] = ring_->events[head];
    head = head + 1 == ring_->nr ? 0 : head + 1;
  }
  if (taken > 0) ring_->head.store_release(head);
  return static_cast<int>(taken);
}

}  // namespace spw::store
