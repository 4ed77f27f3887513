// How processes that share a page with this one have it end, and who of them says why.
//
// It lies in memory that forked children share. Its state is one word, from kNone to kFinal:
//
//   from    to      who                                  how
//   kNone   kAsked  the first asker, who then says why   ask(): compare-and-swap, acq_rel
//   kAsked  kFinal  the same, when it has said so        confirm(): store, release
//
// The process that watches ends at kFinal, or a second after kAsked, since who asked may have been killed before it
// confirmed.
//
// Watching costs nothing until then: it is a thread that libc does not know. It has no thread-local storage of its own,
// allocates nothing and holds no lock, so that it may be started while a fork is prepared, when allocators are locked
// already; and libc goes on to take a program with one thread for what it is.
//
// Threads: any, in this process and in those forked later. Async-signal-safe, but for create() where it fails.
// Lifetime: as long as any of these processes; nobody destroys one.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/status.h"
#include "platform/memory.h"

namespace spw::platform {

class EndRequest {
 public:
  // From now on this process ends, with `exit_code` and as by _exit(), when it is asked to.
  static Result<EndRequest*> create(int exit_code);

  // True: the caller is the first, and confirms when it has said why.
  bool ask();
  void confirm();
  // Returns when the process that watches has ended, and after kEndWaitMsMax at the latest.
  void wait_for_end() const;

 private:
  static constexpr int kEndWaitMsMax = 5000;
  static constexpr uint32_t kNone = 0, kAsked = 1, kFinal = 2;

  EndRequest(Mapping memory, Mapping stack, int exit_code);
  static int run_watcher(void* request);
  Status start_watcher();
  void wake();

  Atomic<uint32_t> state_{kNone};
  const int process_;
  const int exit_code_;
  Mapping memory_;  // which this object is in
  Mapping stack_;
};

}  // namespace spw::platform
