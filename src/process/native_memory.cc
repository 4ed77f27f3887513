#include "process/native_memory.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include "abi/managed.h"
#include "base/units.h"
#include "cache/client_thread.h"
#include "libc/alloc/rules.h"
#include "platform/memory.h"
#include "platform/proc_text.h"
#include "process/fatal.h"

namespace spw::process {

namespace {

// Of the process's anonymous memory outside of managed space, by what it is.
struct Kinds {
  uint64_t heap_bytes = 0, stack_bytes = 0, shared_bytes = 0, mapped_bytes = 0;
};

Kinds kinds_of_native_memory() {
  Kinds kinds;
  std::ifstream maps("/proc/self/smaps");
  uint64_t* kind = nullptr;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    int name = -1;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &name) >= 2 && name >= 0) {
      const std::string_view named = std::string_view(line).substr(static_cast<size_t>(name));
      kind = spw::is_managed(reinterpret_cast<void*>(begin)) ? nullptr
             : named == "[heap]"                             ? &kinds.heap_bytes
             : named.starts_with("[stack")                   ? &kinds.stack_bytes
             : named.starts_with("/dev/zero") || named.starts_with("/dev/shm/") ||
                     named.starts_with("/memfd:") || named.starts_with("/SYSV")
                 ? &kinds.shared_bytes
                 : &kinds.mapped_bytes;
      continue;
    }
    // What is shared in memory is not anonymous.
    const auto bytes = platform::kib_field(line, kind == &kinds.shared_bytes ? "Rss:" : "Anonymous:");
    if (kind != nullptr && bytes) *kind += *bytes;
  }
  return kinds;
}

std::string over_line(uint64_t held_bytes, uint64_t cap_bytes) {
  const Kinds kinds = kinds_of_native_memory();
  struct Named {
    uint64_t bytes;
    const char* what;
    const char* mend;
  };
  const Named all[] = {
      {kinds.heap_bytes, "on the heap that libc has by brk",
       "a lower --quota or --threshold has Spillway manage it"},
      {kinds.mapped_bytes, "in anonymous mappings", "a lower --threshold may have Spillway manage it"},
      {kinds.shared_bytes, "shared memory", "raise --memory, since Spillway does not manage it"},
      {kinds.stack_bytes, "on the stack", "raise --memory, since Spillway does not manage it"}};
  const Named& most = *std::max_element(std::begin(all), std::end(all),
                                        [](const Named& a, const Named& b) { return a.bytes < b.bytes; });
  return "the program holds " + format_size(held_bytes) + ", and --memory is " + format_size(cap_bytes) +
         ": " + format_size(most.bytes) + " of it is " + most.what + "; " + most.mend;
}

}  // namespace

NativeMemory::Outside NativeMemory::Outside::of_process(uint64_t cap_bytes) {
  return {[]() -> std::optional<uint64_t> {
            auto own = platform::process_memory();
            if (!own) return std::nullopt;
            return own->resident_anonymous_bytes + own->resident_shared_bytes;
          },
          [cap_bytes](uint64_t held_bytes) { warn(over_line(held_bytes, cap_bytes)); }};
}

uint64_t NativeMemory::taken_from_frames(uint64_t native_bytes, uint64_t frames_bytes) {
  const uint64_t over = native_bytes - std::min(native_bytes, kNativeAllowanceBytes);
  return std::min(over, frames_bytes - frames_bytes / kFramesShareMin);
}

bool NativeMemory::is_over(uint64_t held_bytes, uint64_t cap_bytes) {
  return held_bytes >
         cap_bytes + std::max(cap_bytes / kTolerance, kNativeAllowanceBytes + cap_bytes / kTolerance / 2);
}

Status NativeMemory::start() {
  auto thread = cache::start_client_thread(parts_.cache, [this](cache::Client& client) { keep(client); });
  if (!thread) return thread.status();
  thread_ = std::move(*thread);
  return {};
}

void NativeMemory::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void NativeMemory::keep(cache::Client& client) {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::nanoseconds(outside_.period_ns), [this] { return stopping_; })) {
    lock.unlock();
    look(client);
    lock.lock();
  }
}

// While the kernel has managed memory alone, all that is live may be in memory.
uint64_t NativeMemory::native_bytes(uint64_t held_bytes) const {
  const uint64_t frames_bytes = parts_.cache.frame_count() * parts_.frame_bytes;
  const uint64_t managed = parts_.engine.is_watching() ? parts_.cache.used_frames() * parts_.frame_bytes
                                                       : std::min(parts_.regions.live_bytes(), frames_bytes);
  const uint64_t planned = managed + parts_.cap_bytes - std::min(parts_.cap_bytes, frames_bytes);
  return held_bytes - std::min(held_bytes, planned);
}

void NativeMemory::look(cache::Client& client) {
  const auto held = outside_.held_bytes();
  if (!held) return;
  const uint64_t native = native_bytes(*held);
  peak_bytes_.store_relaxed(std::max(peak_bytes_.load_relaxed(), native));
  libc::set_native_over_quota(native > std::max(parts_.quota_bytes, kNativeAllowanceBytes));
  if (parts_.can_give_way) {
    const uint64_t frames_bytes = parts_.cache.frame_count() * parts_.frame_bytes;
    const uint64_t taken = taken_from_frames(native, frames_bytes);
    const uint64_t change = taken > taken_bytes_ ? taken - taken_bytes_ : taken_bytes_ - taken;
    if (change > frames_bytes / kStepShare || (taken == 0 && change > 0)) {
      if (taken > 0 && !parts_.engine.is_watching()) parts_.engine.watch();
      taken_bytes_ = taken;
      if (parts_.limit.leave_to_native(taken)) parts_.cache.make_room(client, 0, 0);
    }
  }
  // Twice, since frames may be giving way.
  over_ = is_over(*held, parts_.cap_bytes) ? over_ + 1 : 0;
  if (over_ == 2) tell(*held);
}

void NativeMemory::tell(uint64_t held_bytes) {
  if (outside_.is_over && !told_.exchange_acquire(true)) outside_.is_over(held_bytes);
}

void NativeMemory::at_end() {
  const auto held = outside_.held_bytes();
  if (held && is_over(*held, parts_.cap_bytes)) tell(*held);
}

void tell_if_over(uint64_t cap_bytes) {
  auto own = platform::process_memory();
  if (!own) return;
  const uint64_t held = own->resident_anonymous_bytes + own->resident_shared_bytes;
  if (NativeMemory::is_over(held, cap_bytes)) warn(over_line(held, cap_bytes));
}

}  // namespace spw::process
