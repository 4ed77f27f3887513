// A small file that is to be buffered, as long as it has been asked for little: *on trial*. The kernel has it, with all
// its calls, places and sizes, so that opening, reading or writing it once and closing it cost what they cost without
// us.
// What buffering takes (asking who else has it open, watching that, descriptors, handing over what was written) pays
// from some tens of calls on, or where much is moved.
//
// The trial ends when one of these calls is due (count(), moved()): then it is the only one, the file is claimed, as at
// an open(), and from there on it is a buffered one. It ends for good without that where the file cannot be buffered.
//
// A name that the program gave to open() and that matches the patterns is believed, since asking the kernel for the
// file's real one costs as much as the opening; before the file is buffered, the kernel is asked.
//
//   kept_               | the trial's calls
//   shared              | a call of the kernel's is under way: nobody ends the trial meanwhile
//   alone (only tried)  | the trial ends: nobody's call is under way, and who comes waits and finds the file buffered
//
// Invariant: as long as a trial is in the table of BufferedFiles, no buffered file of the same number is.
// Threads: any. Lifetime: of the open files that have it.
#pragma once

#include <cstdint>
#include <shared_mutex>

#include "base/atomic.h"
#include "files/buffered_file.h"

namespace spw::files {

class Trial {
 public:
  // A file that is longer is buffered at once, and so is one of which as much has been moved.
  static constexpr uint64_t kBytesMax = kMiB;

  // `hand_outs`: OtherOpeners::hand_outs() now.
  Trial(const FileKey& key, uint64_t calls_max, uint64_t hand_outs)
      : key_(key), calls_max_(calls_max), hand_outs_(hand_outs) {}

  const FileKey& key() const { return key_; }
  uint64_t hand_outs() const { return hand_outs_; }
  std::shared_mutex& kept() { return kept_; }
  // One more call. True: the trial is to end before it. Every so many calls are, in case it could not end before.
  bool count() {
    const bool is_due =
        (calls_.fetch_add_relaxed(1) + 1) % calls_max_ == 0 || is_due_.exchange_relaxed(false);
    return is_due && !is_over();
  }
  void moved(uint64_t bytes) {
    if (bytes_.fetch_add_relaxed(bytes) % kBytesMax + bytes >= kBytesMax) is_due_.store_relaxed(true);
  }
  // The file stays the kernel's for as long as the program has it open.
  void give_up() { is_over_.store_release(true); }
  bool is_over() const { return is_over_.load_acquire(); }

 private:
  friend class BufferedFiles;

  const FileKey key_;
  const uint64_t calls_max_, hand_outs_;
  Atomic<uint64_t> calls_{0}, bytes_{0};
  Atomic<bool> is_due_{false}, is_over_{false};
  std::shared_mutex kept_;
  // Under the mutex of BufferedFiles:
  uint64_t opens_ = 0;        // open files that have it
  bool is_name_sure_ = true;  // the file's own path matches
};

}  // namespace spw::files
