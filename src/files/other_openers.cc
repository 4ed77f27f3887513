#include "files/other_openers.h"

#include <pthread.h>

#include <vector>

#include "platform/time.h"

namespace spw::files {

using platform::Openers;

namespace {
uint64_t this_thread() { return static_cast<uint64_t>(::pthread_self()); }
}  // namespace

OtherOpeners::~OtherOpeners() {
  stopping_.store_release(true);
  if (has_started_) wake_.wake();
  thread_.join();
}

// Under mutex_. Once; false: opens cannot be watched here.
bool OtherOpeners::start() {
  if (std::exchange(has_started_, true)) return watch_ != nullptr;
  auto watch = platform::OpensWatch::create();
  auto wake = platform::WakeFd::create();
  if (!watch || !wake) return false;
  wake_ = std::move(*wake);
  watch_ = std::move(*watch);
  auto thread = platform::Thread::start([this] { run(); });
  if (!thread) {
    watch_.reset();
    return false;
  }
  thread_ = std::move(*thread);
  return true;
}

// Watched first, then asked who has it open: nobody comes in between unseen.
OtherOpeners::Claim OtherOpeners::claim(int fd, const FileKey& key, bool is_new) {
  std::lock_guard lock(mutex_);
  const uint64_t number = next_number_++;
  const bool is_watched = start() && watch_->add(fd, number).is_ok();
  const Openers openers = platform::other_openers_of(fd, is_new);
  if (openers == Openers::kOthers) {
    if (is_watched) watch_->remove(fd, number);
    return Claim::kOthers;
  }
  if (is_watched) {
    watched_[key] = {number, openers == Openers::kThisAlone, hand_outs_.load_acquire(), forks_.load_acquire(),
                     false};
    by_number_[number] = key;
  }
  if (is_watched && openers == Openers::kThisAlone) return Claim::kAlone;
  unsure_.insert(key);
  return Claim::kUnsure;
}

void OtherOpeners::forget(int fd, const FileKey& key) {
  std::lock_guard lock(mutex_);
  unsure_.erase(key);
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  watch_->remove(fd, found->second.number);
  by_number_.erase(found->second.number);
  watched_.erase(found);
}

void OtherOpeners::lock_taken(const FileKey& key) {
  are_locks_used_.store_release(true);
  {
    std::lock_guard lock(mutex_);
    if (const auto found = watched_.find(key); found != watched_.end()) found->second.is_locked = true;
  }
  look();
}

// Whoever looks after another one finds that everything it took has been given back.
void OtherOpeners::look() {
  std::lock_guard look(looking_);
  looker_.store_relaxed(this_thread());
  std::vector<FileKey> opened, unsure, inherited;
  {
    std::lock_guard lock(mutex_);
    if (watch_)
      for (const uint64_t number : watch_->take_opened())
        if (const auto found = by_number_.find(number); found != by_number_.end()) {
          watched_.at(found->second).is_alone = false;
          opened.push_back(found->second);
        }
    if (are_locks_used()) {
      unsure.assign(unsure_.begin(), unsure_.end());
      for (const auto& [key, watched] : watched_)
        if (watched.is_locked && watched.forks != forks_.load_acquire()) inherited.push_back(key);
    }
  }
  for (const FileKey& key : opened) give_back_(key, "another process has opened it");
  for (const FileKey& key : unsure)
    give_back_(key, "the program locks files, and who else has this one open cannot be found out");
  for (const FileKey& key : inherited)
    give_back_(key, "the program locks files, and a child of it has this one open");
  looker_.store_relaxed(0);
}

// What is given back may be closed by that, in the midst of a look: of another file nothing is known then.
bool OtherOpeners::is_alone(const FileKey& key) {
  if (looker_.load_relaxed() == this_thread()) return false;
  look();
  std::lock_guard lock(mutex_);
  const auto found = watched_.find(key);
  return found != watched_.end() && found->second.is_alone &&
         found->second.hand_outs == hand_outs_.load_acquire();
}

void OtherOpeners::run() {
  while (!stopping_.load_acquire()) {
    wake_.wait(watch_->fd(), kWaitNs);
    look();
    platform::sleep_ns(kPauseNs);
  }
}

}  // namespace spw::files
