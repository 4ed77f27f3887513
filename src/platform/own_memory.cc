#include "platform/own_memory.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/units.h"
#include "platform/raw_calls.h"

namespace spw::platform {

namespace {

// `move(done)` moves some of what is left, and says how much, as pread() does.
template <class Move>
Status move_all(uint64_t bytes, const char* what, Move move) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t moved = move(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return Status(moved < 0 ? errno : EIO, what);
    done += static_cast<uint64_t>(moved);
  }
  return {};
}

off_t position_of(const std::byte* address) {
  return static_cast<off_t>(reinterpret_cast<uintptr_t>(address));
}

}  // namespace

Result<OwnMemory> OwnMemory::open() {
  auto file = open_file("/proc/self/mem", O_RDWR);
  if (!file) return file.status();
  return OwnMemory(std::move(*file));
}

Status OwnMemory::read(std::byte* to, const std::byte* from, uint64_t bytes) const {
  return move_all(bytes, "cannot read memory as a debugger would", [&](uint64_t done) {
    return raw::pread(file_.fd(), to + done, bytes - done, position_of(from + done));
  });
}

Status OwnMemory::write(std::byte* to, const std::byte* from, uint64_t bytes) const {
  return move_all(bytes, "cannot write to memory as a debugger would", [&](uint64_t done) {
    return raw::pwrite(file_.fd(), from + done, bytes - done, position_of(to + done));
  });
}

// What it may not write to as a debugger it can write to directly, or nothing can.
void zero_as_debugger(std::byte* address, uint64_t bytes) {
  static constexpr std::byte kZeros[kMmuPageBytes]{};
  if (auto memory = OwnMemory::open())
    while (bytes > 0) {
      const uint64_t piece = std::min<uint64_t>(bytes, sizeof kZeros);
      if (!memory->write(address, kZeros, piece)) break;
      address += piece;
      bytes -= piece;
    }
  std::memset(address, 0, bytes);
}

}  // namespace spw::platform
