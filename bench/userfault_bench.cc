// What it costs to put the contents of a run of pages at its address, and to take them away again: UFFDIO_COPY from
// staging that stays, against UFFDIO_MOVE, and UFFDIO_CONTINUE in a memory file, of pages that the kernel has to make
// anew each time. All end write-protected, as clean blocks are; MOVE needs a call of its own for that. What the device
// does in between is left out. bytes_per_second is of contents. `moved_whole` is of a huge page, which the kernel moves
// by one entry of a page table.
//
// `left` is of dirty pages that leave: 64 that lie apart, to one piece of memory that a device could write from, the
// time a page. /protected: each is write-protected, copied, and all are given up together; /lifted: a pipe takes
// references to all of them (vmsplice), all are given up together, and the pipe is read, so that one interrupt of the
// processors that run the program is enough for all. The second argument: whether a thread of the program runs beside.
//
//     build/release/bin/userfault_bench
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/units.h"
#include "platform/memory.h"
#include "platform/userfault.h"

#ifndef UFFDIO_MOVE  // Linux 6.8
struct uffdio_move {
  __u64 dst, src, len, mode;
  __s64 move;
};
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif
#ifndef UFFDIO_CONTINUE_MODE_WP  // Linux 6.4
#define UFFDIO_CONTINUE_MODE_WP (uint64_t{1} << 1)
#endif

namespace spw::platform {
namespace {

constexpr uint64_t kAreaBytes = uint64_t{64} << 20;

struct Area {
  UserFault faults;
  Mapping target;
  Mapping staging;
};

bool make(Area& area, uint64_t staging_bytes, bool huge, benchmark::State& state) {
  auto faults = UserFault::open();
  auto target = map_anonymous(kAreaBytes);
  auto staging = map_anonymous(std::max(staging_bytes, uint64_t{2} << 20), uint64_t{2} << 20);
  if (!faults || !target || !staging || !faults->register_range(target->data(), kAreaBytes)) {
    state.SkipWithError("userfaultfd is not allowed here");
    return false;
  }
  if (huge) (void)advise(staging->data(), staging->bytes(), Advice::kHugePage);
  (void)advise(staging->data(), staging->bytes(), Advice::kPopulateWrite);
  area = {std::move(*faults), std::move(*target), std::move(*staging)};
  return true;
}

void copied(benchmark::State& state) {
  const auto bytes = static_cast<uint64_t>(state.range(0));
  Area area;
  if (!make(area, bytes, true, state)) return;
  uint64_t at = 0;
  for (auto _ : state) {
    std::byte* target = area.target.data() + at;
    if (!area.faults.copy(target, area.staging.data(), bytes, true)) state.SkipWithError("a copy failed");
    (void)advise(target, bytes, Advice::kDontNeed);
    at = (at + bytes) % kAreaBytes;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}
BENCHMARK(copied)->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);

void moved(benchmark::State& state) {
  const auto bytes = static_cast<uint64_t>(state.range(0));
  Area area;
  if (!make(area, bytes, false, state)) return;
  uint64_t at = 0;
  for (auto _ : state) {
    std::byte* target = area.target.data() + at;
    // What the device would write to.
    (void)advise(area.staging.data(), bytes, Advice::kPopulateWrite);
    uffdio_move wish{reinterpret_cast<uint64_t>(target), reinterpret_cast<uint64_t>(area.staging.data()),
                     bytes, 0, 0};
    if (::ioctl(area.faults.fd(), UFFDIO_MOVE, &wish) != 0) {
      state.SkipWithError("a move failed; it came with Linux 6.8");
      return;
    }
    (void)area.faults.write_protect(target, bytes, true);
    (void)advise(target, bytes, Advice::kDontNeed);
    at = (at + bytes) % kAreaBytes;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}
BENCHMARK(moved)->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);

// Huge pages, there and back (cache/extents): the memory stays, and nothing is protected.
void moved_whole(benchmark::State& state) {
  constexpr uint64_t kHuge = uint64_t{2} << 20;
  Area area;
  if (!make(area, 2 * kHuge, true, state)) return;
  (void)advise(area.staging.data(), kHuge, Advice::kCollapse);
  std::byte* const target =
      area.target.data() + (kHuge - reinterpret_cast<uintptr_t>(area.target.data()) % kHuge);
  if (!area.faults.moves() || !area.faults.register_range(area.staging.data(), kHuge))
    return state.SkipWithError("memory cannot be moved here; that came with Linux 6.8");
  for (auto _ : state) {
    (void)advise(target, kHuge, Advice::kDontNeed);
    if (!area.faults.move(target, area.staging.data(), kHuge) ||
        !area.faults.move(area.staging.data(), target, kHuge))
      return state.SkipWithError("a move failed");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kHuge));
}
BENCHMARK(moved_whole);

// The device writes to the file's pages through one mapping, the program has another.
void continued(benchmark::State& state) {
  const auto bytes = static_cast<uint64_t>(state.range(0));
  auto faults = UserFault::open();
  auto file = create_memory_file("userfault_bench", kAreaBytes);
  if (!faults || !file) return state.SkipWithError("userfaultfd is not allowed here");
  auto target = map_file(*file, 0, kAreaBytes, Protection::kReadWrite);
  auto staging = map_file(*file, 0, kAreaBytes, Protection::kReadWrite);
  if (!target || !staging) return state.SkipWithError("no memory");
  uffdio_register range{{reinterpret_cast<uint64_t>(target->data()), kAreaBytes},
                        UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP,
                        0};
  if (::ioctl(faults->fd(), UFFDIO_REGISTER, &range) != 0)
    return state.SkipWithError("minor faults cannot be had here");
  uint64_t at = 0;
  for (auto _ : state) {
    (void)advise(staging->data() + at, bytes, Advice::kPopulateWrite);
    uffdio_continue wish{
        {reinterpret_cast<uint64_t>(target->data() + at), bytes}, UFFDIO_CONTINUE_MODE_WP, 0};
    if (::ioctl(faults->fd(), UFFDIO_CONTINUE, &wish) != 0) return state.SkipWithError("a continue failed");
    (void)advise(staging->data() + at, bytes, Advice::kRemove);
    at = (at + bytes) % kAreaBytes;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}
BENCHMARK(continued)->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);

enum class Way : uint8_t { kProtected, kLifted };

class Leaving {
 public:
  static constexpr uint64_t kPages = kAreaBytes / kMmuPageBytes, kBatch = 64;

  explicit Leaving(Area& area) : area_(area), order_(kPages) {
    for (uint64_t i = 0; i < kPages; ++i) order_[i] = i;
    std::shuffle(order_.begin(), order_.end(), random_);
    self_ = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
    is_ready_ =
        self_ >= 0 && ::pipe(pipe_) == 0 && ::fcntl(pipe_[1], F_SETPIPE_SZ, kBatch * kMmuPageBytes) >= 0;
  }
  ~Leaving() {
    for (const int fd : {self_, pipe_[0], pipe_[1]})
      if (fd >= 0) ::close(fd);
  }
  bool is_ready() const { return is_ready_; }

  // The next pages, which are dirty.
  bool next() {
    if (at_ % kPages == 0) {
      for (uint64_t page = 0; page < kPages; ++page) {
        std::byte* const to = area_.target.data() + page * kMmuPageBytes;
        if (!area_.faults.copy(to, area_.staging.data(), kMmuPageBytes, false)) return false;
        *to = static_cast<std::byte>(page);
      }
    }
    for (iovec& page : pages_)
      page = {area_.target.data() + order_[at_++ % kPages] * kMmuPageBytes, kMmuPageBytes};
    return true;
  }
  bool leave(Way way) { return way == Way::kProtected ? leave_protected() : leave_lifted(); }

 private:
  bool leave_protected() {
    for (uint64_t i = 0; i < kBatch; ++i) {
      auto* const page = static_cast<std::byte*>(pages_[i].iov_base);
      if (!area_.faults.write_protect(page, kMmuPageBytes, true)) return false;
      std::memcpy(area_.staging.data() + i * kMmuPageBytes, page, kMmuPageBytes);
    }
    return give_up();
  }
  bool leave_lifted() {
    constexpr auto kBytes = static_cast<ssize_t>(kBatch * kMmuPageBytes);
    if (::vmsplice(pipe_[1], pages_, kBatch, 0) != kBytes || !give_up()) return false;
    for (ssize_t done = 0; done < kBytes;) {
      const ssize_t got = ::read(pipe_[0], area_.staging.data() + done, static_cast<size_t>(kBytes - done));
      if (got <= 0) return false;
      done += got;
    }
    return true;
  }
  bool give_up() const {
    return ::syscall(SYS_process_madvise, self_, pages_, kBatch, MADV_DONTNEED, 0) ==
           static_cast<long>(kBatch * kMmuPageBytes);
  }

  Area& area_;
  std::vector<uint64_t> order_;
  std::mt19937 random_{1};
  iovec pages_[kBatch];
  uint64_t at_ = 0;
  int self_ = -1, pipe_[2] = {-1, -1};
  bool is_ready_ = false;
};

void left(benchmark::State& state, Way way) {
  Area area;
  if (!make(area, Leaving::kBatch * kMmuPageBytes, true, state)) return;
  Leaving leaving(area);
  if (!leaving.is_ready()) return state.SkipWithError("no pipe of 256 KiB, or no process_madvise");
  std::atomic<bool> is_over{false};
  std::thread beside;
  if (state.range(0) != 0)
    beside = std::thread([&] {
      while (!is_over.load(std::memory_order_relaxed)) benchmark::ClobberMemory();
    });
  for (auto _ : state) {
    if (!leaving.next()) {
      state.SkipWithError("a copy failed");
      break;
    }
    const auto begin = std::chrono::steady_clock::now();
    if (!leaving.leave(way)) {
      state.SkipWithError(
          "pages cannot leave this way; process_madvise() of one's own memory came with Linux 6.13");
      break;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(took.count() / Leaving::kBatch);
  }
  is_over = true;
  if (beside.joinable()) beside.join();
}
BENCHMARK_CAPTURE(left, protected, Way::kProtected)->Arg(0)->Arg(1)->UseManualTime()->Iterations(2048);
BENCHMARK_CAPTURE(left, lifted, Way::kLifted)->Arg(0)->Arg(1)->UseManualTime()->Iterations(2048);

}  // namespace
}  // namespace spw::platform

BENCHMARK_MAIN();
