// The io_urings and libaio contexts of this process, and which of them are the
// runtime's own. The kernel reads and writes a program's memory on account of those
// that are not at times of its own, when no call of libc could have brought it in.
//
// Threads: any. Limits: a ring whose descriptor was closed while its memory is still mapped is not seen.
#pragma once

namespace spw::platform {

// One lives beside each that the runtime has made itself.
class OwnAsyncContext {
 public:
  OwnAsyncContext();
  ~OwnAsyncContext();
  OwnAsyncContext(const OwnAsyncContext&) = delete;
  OwnAsyncContext& operator=(const OwnAsyncContext&) = delete;
};

// Whether the program has made any. Reads /proc; false where there is none.
bool has_async_contexts_of_program();

}  // namespace spw::platform
