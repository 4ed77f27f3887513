#include "store/nbd/nbd_link.h"

namespace spw::store {

void NbdLink::note_flushed(uint64_t upto) {
  uint64_t before = flushed_.load_relaxed();
  while (before < upto && !flushed_.cas_weak_acq_rel(before, upto)) {
  }
}

bool NbdLink::may_connect_again() const {
  return loss() == 0 && (facts_.read_only || flushed_.load_acquire() == acknowledged());
}

void NbdLink::lose(int error, const std::string& why) {
  std::lock_guard lock(mutex_);
  if (loss_.load_relaxed() != 0) return;
  why_lost_ = why;
  loss_.store_release(error);
}

std::string NbdLink::loss_text() const {
  std::lock_guard lock(mutex_);
  return why_lost_;
}

}  // namespace spw::store
