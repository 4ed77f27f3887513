// This process's memory as a debugger has it: whatever its access rights are (/proc/self/mem).
//
// Threads: any. Errors: of /proc/self/mem, which may be forbidden; a range with a hole in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "platform/file.h"

namespace spw::platform {

class OwnMemory {
 public:
  OwnMemory() = default;
  static Result<OwnMemory> open();
  bool is_open() const { return file_.is_open(); }

  // All of it, or an error with a part done.
  Status read(std::byte* to, const std::byte* from, uint64_t bytes) const;
  Status write(std::byte* to, const std::byte* from, uint64_t bytes) const;

 private:
  explicit OwnMemory(File file) : file_(std::move(file)) {}
  File file_;
};

// Whatever its access rights are. Where /proc/self/mem is forbidden, by plain stores.
void zero_as_debugger(std::byte* address, uint64_t bytes);

}  // namespace spw::platform
