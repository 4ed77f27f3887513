#include "process/native_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>

#include "abi/managed.h"
#include "base/atomic.h"
#include "base/units.h"
#include "cache/client_thread.h"
#include "libc/alloc/rules.h"
#include "platform/memory.h"
#include "platform/proc_text.h"
#include "platform/time.h"
#include "process/fatal.h"
#include "process/memory_adapter.h"

namespace spw::process {

namespace {

constexpr uint64_t kFullShare = 16;
// Of its frames, what a process keeps however many others there are.
constexpr uint64_t kTreeShareMin = 64;
// Of the members of a tree together; the rest of the allowance is for processes without managed memory.
constexpr uint64_t kTreeAllowanceBytes = NativeMemory::kNativeAllowanceBytes / 2;
constexpr uint64_t kOverNs = 1'000'000'000;

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
                     (named.starts_with("/memfd:") && !named.starts_with("/memfd:spillway-")) ||
                     named.starts_with("/SYSV")
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

std::string over_line(uint64_t held_bytes, uint64_t held_by_all, uint64_t cap_bytes) {
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
  const std::string who = held_by_all > held_bytes
                              ? "the processes of this run hold " + format_size(held_by_all) + ", process " +
                                    std::to_string(::getpid()) + " " + format_size(held_bytes)
                              : "the program holds " + format_size(held_bytes);
  return who + ", and --memory is " + format_size(cap_bytes) + ": " + format_size(most.bytes) + " of it is " +
         most.what + "; " + most.mend;
}

constinit Atomic<bool> g_has_forked{false};

// Anonymous and shared memory, and its page tables. The kernel walks all pages of a process to tell its part of what
// it has in common with others, so that is asked for so seldom that it costs little. In between, every block that was
// brought in counts as this process's alone: it may have taken the place of one that is still another's.
class HeldMemory {
 public:
  HeldMemory(const cache::SharedCache& cache, uint64_t frame_bytes, unsigned mapped_times, bool is_forked)
      : cache_(cache), frame_bytes_(frame_bytes), mapped_times_(mapped_times), is_forked_(is_forked) {}

  std::optional<NativeMemory::Held> look() {
    std::lock_guard lock(mutex_);
    if (!status_.is_open() && !open()) return std::nullopt;
    auto own = platform::process_memory(status_);
    if (!own) return std::nullopt;
    // The frames' own files are mapped as often as that, and count as often.
    const uint64_t files = cache_.memory_file_bytes();
    const uint64_t resident = own->resident_anonymous_bytes + files + own->resident_shared_bytes -
                              std::min(own->resident_shared_bytes, mapped_times_ * files);
    const uint64_t tables = own->page_table_bytes;
    if (!is_forked_ && !g_has_forked.load_relaxed())
      return NativeMemory::Held{resident + tables, cache_.occupied_frames()};
    const uint64_t now_ns = platform::monotonic_ns();
    if (now_ns >= next_ns_) measure(now_ns, resident);
    const uint64_t brought =
        (filled_blocks() - filled_) * frame_bytes_ + resident - std::min(resident, part_of_);
    return NativeMemory::Held{std::min(resident, part_ + brought) + tables, frames_};
  }

 private:
  static constexpr uint64_t kCostShare = 20;  // of the time

  // Kept open: whoever opens a file takes the lowest number, which the program may count on.
  bool open() {
    auto status = platform::open_file("/proc/self/status", O_RDONLY);
    auto rollup = platform::open_file("/proc/self/smaps_rollup", O_RDONLY);
    if (!status || !rollup) return false;
    status_ = std::move(*status);
    rollup_ = std::move(*rollup);
    return true;
  }
  void measure(uint64_t now_ns, uint64_t resident) {
    frames_ = cache_.occupied_frames();
    uint64_t part = 0, found = 0;
    if (auto text = platform::read_small_file(rollup_))
      for (const char* field : {"Pss_Anon:", "Pss_Shmem:"})
        if (const auto bytes = platform::kib_field(*text, field)) {
          part += *bytes;
          ++found;
        }
    part_ = found == 2 ? part : resident;
    part_of_ = resident;
    filled_ = filled_blocks();
    const uint64_t end_ns = platform::monotonic_ns();
    next_ns_ = end_ns + (end_ns - now_ns) * kCostShare;
  }

  const cache::SharedCache& cache_;
  const uint64_t frame_bytes_;
  const unsigned mapped_times_;
  const bool is_forked_;
  std::mutex mutex_;  // the end of the process looks, too
  platform::File status_, rollup_;
  uint64_t next_ns_ = 0;
  uint64_t filled_ = 0;              // blocks, then
  uint64_t frames_ = 0;              // occupied, then
  uint64_t part_ = 0, part_of_ = 0;  // bytes of this process, when so many were resident
};

}  // namespace

void note_fork() { g_has_forked.store_relaxed(true); }

NativeMemory::Outside NativeMemory::Outside::of_process(const Parts& parts, bool is_forked,
                                                        Closing& closing) {
  // The translated engine's view maps frames once more.
  auto memory =
      std::make_shared<HeldMemory>(parts.cache, parts.frame_bytes, parts.can_give_way ? 1 : 2, is_forked);
  return {[memory] { return memory->look(); },
          [&closing](uint64_t held_bytes, uint64_t needs_bytes) { closing.seen(held_bytes, needs_bytes); },
          [cap_bytes = parts.cap_bytes](uint64_t held_bytes, uint64_t held_by_all) {
            warn(over_line(held_bytes, held_by_all, cap_bytes));
          }};
}

uint64_t NativeMemory::taken_from_frames(uint64_t native_bytes, uint64_t frames_bytes) {
  const uint64_t over = native_bytes - std::min(native_bytes, kNativeAllowanceBytes);
  return std::min(over, frames_bytes - frames_bytes / kFramesShareMin);
}

uint64_t NativeMemory::taken_frames(const Held& held) const {
  return taken_from_frames(native_bytes(held), parts_.cache.frame_count() * parts_.frame_bytes) /
         parts_.frame_bytes;
}

bool NativeMemory::is_over(uint64_t held_bytes, uint64_t cap_bytes) {
  return held_bytes >
         cap_bytes + std::max(cap_bytes / kTolerance, kNativeAllowanceBytes + cap_bytes / kTolerance / 2);
}

// With what is granted so far, before there is anything in the frames.
Status NativeMemory::start() {
  over_since_ns_ = platform::monotonic_ns();
  frames_ = parts_.cache.frame_count();
  if (const auto held = outside_.held(); held && parts_.tree != nullptr) {
    parts_.tree->begin(counted_in_tree(*held));
    (void)give_way(*held);
  }
  auto looks = cache::start_client_thread(parts_.cache, [this](cache::Client&) { keep_looking(); });
  if (!looks) return looks.status();
  looks_ = std::move(*looks);
  if (!parts_.can_give_way) return {};
  auto evicts =
      cache::start_client_thread(parts_.cache, [this](cache::Client& client) { keep_evicting(client); });
  if (!evicts) return evicts.status();
  evicts_ = std::move(*evicts);
  return {};
}

void NativeMemory::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  looks_.join();
  evicts_.join();
}

void NativeMemory::keep_looking() {
  std::unique_lock lock(mutex_);
  const auto stops = [this] { return stopping_; };
  const auto is_hurried = [this] {
    return parts_.compressed_share != nullptr && parts_.engine.is_watching() &&
           parts_.compressed_share->is_moving();
  };
  const auto grows = [this] {
    return parts_.compressed_share != nullptr && parts_.compressed_share->is_growing();
  };
  for (uint64_t waited_ns = kPeriodNs, wait_ns = kTreePeriodNs;
       !wake_.wait_for(lock, std::chrono::nanoseconds(wait_ns), stops);
       wait_ns = is_hurried() ? kMovingPeriodNs : kTreePeriodNs) {
    waited_ns += wait_ns;
    if (waited_ns < kPeriodNs && !is_hurried() && !grows() &&
        (parts_.tree == nullptr || parts_.tree->is_alone()))
      continue;
    waited_ns = 0;
    lock.unlock();
    const bool is_above = look();
    lock.lock();
    if (!is_above) continue;
    is_above_ = true;
    wake_.notify_all();
  }
}

// Evictions wait for writes, while what others do goes on.
void NativeMemory::keep_evicting(cache::Client& client) {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return is_above_ || stopping_; });
    if (stopping_) return;
    is_above_ = false;
    lock.unlock();
    parts_.cache.make_room(client, 0, 0);
    if (parts_.compressed_share != nullptr) parts_.compressed_share->evict_to_budget();
    lock.lock();
  }
}

// Frames that blocks are in. While the kernel has managed memory alone, all that is live may be in memory.
uint64_t NativeMemory::frames_of(const Held& held) const {
  if (parts_.engine.is_watching()) return held.frames;
  const uint64_t live = parts_.regions.live_bytes() / parts_.frame_bytes;
  return std::min<uint64_t>({live, held.bytes / parts_.frame_bytes, parts_.cache.frame_count()});
}

uint64_t NativeMemory::native_bytes(const Held& held) const {
  const uint64_t frames_bytes = parts_.cache.frame_count() * parts_.frame_bytes;
  const uint64_t planned =
      frames_of(held) * parts_.frame_bytes + parts_.cap_bytes - std::min(parts_.cap_bytes, frames_bytes);
  const uint64_t compressed = parts_.compressed_share != nullptr ? parts_.compressed_share->held_bytes() : 0;
  return held.bytes - std::min(held.bytes, planned + compressed);
}

// What was spilled may be in frames as well; all of it is live.
uint64_t NativeMemory::needs_bytes(const Held& held) const {
  const uint64_t frames_bytes = frames_of(held) * parts_.frame_bytes;
  const uint64_t managed =
      std::min(parts_.regions.live_bytes(), frames_bytes + parts_.regions.spilled_bytes());
  return held.bytes - std::min(held.bytes, frames_bytes) + std::max(managed, frames_bytes);
}

bool NativeMemory::has_others() const { return parts_.tree != nullptr && parts_.tree->members() > 1; }

// Pages of files that the kernel serves within the cap.
uint64_t NativeMemory::mapped_bytes() const {
  return parts_.page_cache_share != nullptr ? parts_.page_cache_share->mapped_bytes() : 0;
}

uint64_t NativeMemory::counted_in_tree(const Held& held) const {
  return held.bytes - std::min(held.bytes, kTreeAllowanceBytes / parts_.tree->members()) + mapped_bytes();
}

// What is measured counts here, not the plan: several processes each have a plan for all of the cap.
uint64_t NativeMemory::frames_in_tree(const Held& held) {
  const uint64_t count = parts_.cache.frame_count(), limit = parts_.cache.frame_limit();
  const uint64_t counted = counted_in_tree(held);
  const bool is_pressed = parts_.page_cache_share != nullptr && parts_.page_cache_share->is_pressed();
  const bool is_full =
      parts_.engine.is_watching() && parts_.cache.occupied_frames() >= limit - limit / kFullShare;
  const int64_t granted = parts_.tree->look(counted, filled_blocks() * parts_.frame_bytes,
                                            is_full || is_pressed, platform::monotonic_ns());
  if (parts_.tree->members() == 1 && granted >= static_cast<int64_t>(parts_.cap_bytes)) return count;
  const uint64_t may_hold = static_cast<uint64_t>(std::max<int64_t>(granted, 0));
  const uint64_t used = frames_of(held) + mapped_bytes() / parts_.frame_bytes;
  // What still is another process's, too, gives back only a part of its bytes when it is evicted.
  const uint64_t frames =
      counted <= may_hold ? used + (may_hold - counted) / parts_.frame_bytes
                          : static_cast<uint64_t>(static_cast<unsigned __int128>(used) * may_hold / counted);
  return std::clamp(frames, count / kTreeShareMin, count);
}

namespace {
// Of `frames` that are frames' and compressed pages', what frames keep.
uint64_t frames_min(uint64_t frames) {
  return std::max(frames / CompressedShare::kFramesShareMin, std::min(frames, kCapFramesMin));
}
}  // namespace

uint64_t NativeMemory::left_to_frames(const Held& held) const {
  const uint64_t left = parts_.cache.frame_count() - taken_frames(held);
  // While the kernel has managed memory alone, none of it leaves.
  if (parts_.compressed_share == nullptr || !parts_.engine.is_watching()) return left;
  const uint64_t compressed = parts_.compressed_share->bytes() / parts_.frame_bytes;
  return std::max(left - std::min(left, compressed), frames_min(left));
}

// True: frames have to be evicted.
bool NativeMemory::give_way(const Held& held) {
  const uint64_t count = parts_.cache.frame_count();
  const uint64_t left = left_to_frames(held);
  const uint64_t granted = granted_ = parts_.tree != nullptr ? frames_in_tree(held) : count;
  const uint64_t frames = std::min(left, granted);
  // What others are to have is given up at once; else small changes are not worth theirs.
  const uint64_t change = frames > frames_ ? frames - frames_ : frames_ - frames;
  const bool is_moving = parts_.compressed_share != nullptr && parts_.compressed_share->is_moving();
  const bool is_small = !is_moving && change <= std::min(count / kStepShare, frames_ / kFullShare / 2);
  const bool is_given_up = frames < frames_ && granted < count;
  if (change == 0 || (is_small && frames != count && !is_given_up)) return false;
  if (!parts_.engine.is_watching() && parts_.regions.live_bytes() > frames * parts_.frame_bytes)
    parts_.engine.watch();
  if (!parts_.limit.leave((count - left) * parts_.frame_bytes, granted)) return false;
  const bool is_less = frames < frames_;
  frames_ = frames;
  return is_less;
}

void NativeMemory::share_with_compressed(const Held& held) {
  CompressedShare& share = *parts_.compressed_share;
  const uint64_t limit = parts_.cache.frame_limit();
  // Who lowered the cap has some, and others below the same cap what they were granted.
  const uint64_t bytes = parts_.frame_bytes;
  const uint64_t gone = (parts_.cap_bytes - std::min(parts_.cap_bytes, parts_.limit.chosen_bytes())) / bytes;
  uint64_t frames = parts_.cache.frame_count() - taken_frames(held);
  frames -= std::min(frames, gone);
  if (granted_ < parts_.cache.frame_count()) frames = std::min(frames, granted_ + share.held_bytes() / bytes);
  share.look({.memory_bytes = frames * bytes,
              .pool_bytes_max = (frames - frames_min(frames)) * bytes,
              .limit_bytes = (frames_ - std::min(frames_, gone)) * bytes,
              .is_watching = parts_.engine.is_watching(),
              .blocks_leave = parts_.engine.is_watching() && held.frames >= limit - limit / kFullShare},
             platform::monotonic_ns());
}

// True: frames, or compressed pages, have to be evicted.
bool NativeMemory::look() {
  const auto held = outside_.held();
  if (!held) return false;
  outside_.seen(held->bytes, needs_bytes(*held));
  const uint64_t native = native_bytes(*held);
  peak_bytes_.store_relaxed(std::max(peak_bytes_.load_relaxed(), native));
  libc::set_native_over_quota(native > std::max(parts_.quota_bytes, kNativeAllowanceBytes));
  if (parts_.compressed_share != nullptr) share_with_compressed(*held);
  const bool is_above = parts_.can_give_way && give_way(*held);
  // For a while, since frames may be giving way.
  const uint64_t cap = has_others() ? parts_.tree->cap_bytes() : parts_.cap_bytes;
  const uint64_t now_ns = platform::monotonic_ns();
  if (!is_over(has_others() ? parts_.tree->held_by_all() : held->bytes, cap)) over_since_ns_ = now_ns;
  if (now_ns - over_since_ns_ > kOverNs) tell(held->bytes);
  return is_above || (parts_.compressed_share != nullptr && parts_.compressed_share->is_above());
}

void NativeMemory::tell(uint64_t held_bytes) {
  if (told_.exchange_acquire(true)) return;
  if (has_others() && !parts_.tree->is_first_to_tell()) return;
  outside_.is_over(held_bytes, has_others() ? parts_.tree->held_by_all() : held_bytes);
}

void NativeMemory::at_end() {
  const auto held = outside_.held();
  if (held) outside_.seen(held->bytes, needs_bytes(*held));
  if (held && is_over(held->bytes, parts_.cap_bytes)) tell(held->bytes);
}

void tell_if_over(uint64_t cap_bytes) {
  auto own = platform::process_memory();
  if (!own) return;
  const uint64_t held = own->resident_anonymous_bytes + own->resident_shared_bytes;
  if (NativeMemory::is_over(held, cap_bytes)) warn(over_line(held, held, cap_bytes));
}

}  // namespace spw::process
