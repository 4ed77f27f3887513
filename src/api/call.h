// What every function of the public API begins and ends with.
//
// Threads: any.
#pragma once

#include "base/in_runtime.h"
#include "base/status.h"
#include "process/startup.h"
#include "spillway/spillway.h"

#define SPW_PUBLIC extern "C" __attribute__((visibility("default")))

namespace spw::api {

// 0, or the negative errno of a status, whose message this thread can ask for afterwards (spw_error_message).
int result_of(const Status& status);
inline int bad_argument(const char* sentence) { return result_of(Status::sentence(EINVAL, sentence)); }

// A call that needs the runtime: makes it at the first use, and what is allocated meanwhile is native.
class Call {
 public:
  Call() : runtime_(*process::ensure_runtime()) {}
  process::Runtime* operator->() { return &runtime_; }
  process::Runtime& operator*() { return runtime_; }

 private:
  InRuntime guard_;
  process::Runtime& runtime_;
};

inline cache::Access access_of(enum spw_access access) {
  return access == SPW_READ    ? cache::Access::kRead
         : access == SPW_WRITE ? cache::Access::kWrite
                               : cache::Access::kOverwrite;
}

// The whole blocks that [address, address + bytes) touches.
struct Span {
  uintptr_t begin = 0;
  uint64_t bytes = 0;
  BlockId first;
  uint64_t count = 0;
};
Span blocks_around(const process::Runtime& runtime, const void* address, size_t bytes);
// Whether its first or its last byte is of a file that is mapped for reading only.
bool is_read_only(const process::Runtime& runtime, const void* address, size_t bytes);

}  // namespace spw::api
