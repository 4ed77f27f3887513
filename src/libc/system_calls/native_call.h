// System calls by number whose arguments are managed: what each argument points to follows from the call
// (native_call_rules.inc), and the kernel gets a native copy, as libc's functions of the same names do
// (native_argument.h). So nothing that a call takes off a queue is lost for want of a page to put it in.
//
// Where no rule tells, the blocks of the arguments are brought in and kept in memory for the call (KeptArguments),
// which only works where managed memory is at its own addresses. Of arguments that go beyond the block behind their
// first, the rest may be missing, and the call fails with EFAULT as it would natively for what is not there.
// Threads: one; an object lives as long as the call. Async-signal-safe as far as native_argument.h is: from what
// interrupts libc's allocator nothing of this comes (InRuntime).
// Errors: EFAULT for a managed address that is not in use, ENOMEM without memory for a copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libc/managed.h"

namespace spw::libc {

inline constexpr unsigned kCallArguments = 6;
using CallArguments = long[kCallArguments];

// What one argument points to.
struct ArgumentRule {
  enum class Kind : uint8_t {
    kNone,
    kText,           // a string
    kIn,             // what the kernel reads,
    kInOut,          // and what it writes, too: `bytes`, times the argument `count` if there is one
    kInOutRoom,      // as many as the number says that the argument `count` points to
    kDescriptorSet,  // as many bits as the argument `count` says
    kMask,           // of signals, in one word
    kMaskAndBytes,   // a pair of a pointer to one, and its size
  };
  static constexpr uint8_t kNoCount = 255;
  Kind kind = Kind::kNone;
  uint8_t index = 0;
  uint8_t count = kNoCount;
  uint16_t bytes = 0;
  uint16_t more_bytes = 0;  // before what is counted
};
struct CallRule {
  static constexpr unsigned kArguments = 5;
  uint16_t number = 0;
  ArgumentRule arguments[kArguments];
  constexpr bool has_mask() const {
    for (const ArgumentRule& each : arguments)
      if (each.kind == ArgumentRule::Kind::kMask || each.kind == ArgumentRule::Kind::kMaskAndBytes)
        return true;
    return false;
  }
};
// nullptr: there is none.
const CallRule* rule_of(long number);

class NativeArguments {
 public:
  // Puts the copies' addresses into `arguments`. A mask is copied anyhow, without the signals that the runtime needs.
  NativeArguments(const CallRule& rule, CallArguments& arguments);
  ~NativeArguments();
  NativeArguments(const NativeArguments&) = delete;
  NativeArguments& operator=(const NativeArguments&) = delete;
  int error() const { return error_; }

 private:
  static constexpr size_t kInlineBytes = 1024;
  struct Copy {
    void* program;
    void* native;
    size_t bytes;
    bool is_out;
  };

  void copy(const ArgumentRule& rule, CallArguments& arguments);
  void* copied(const void* program, size_t bytes, bool is_out);
  void copy_mask(const ArgumentRule& rule, CallArguments& arguments);
  bool is_inline(const void* native) const;

  int error_ = 0;
  unsigned count_ = 0;
  size_t used_ = 0;
  Copy copies_[CallRule::kArguments];
  uint64_t mask_ = 0;
  long mask_and_bytes_[2] = {};
  alignas(16) char inline_[kInlineBytes];
};

class KeptArguments {
 public:
  explicit KeptArguments(const CallArguments& arguments);
  ~KeptArguments();
  KeptArguments(const KeptArguments&) = delete;
  KeptArguments& operator=(const KeptArguments&) = delete;

 private:
  void keep(uintptr_t address);

  unsigned count_ = 0;
  access::Window windows_[2 * kCallArguments];
};

}  // namespace spw::libc
