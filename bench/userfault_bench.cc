// What it costs to put the contents of a run of pages at its address, and to take them away again: UFFDIO_COPY from
// staging that stays, against UFFDIO_MOVE, and UFFDIO_CONTINUE in a memory file, of pages that the kernel has to make
// anew each time. All end write-protected, as clean blocks are; MOVE needs a call of its own for that. What the device
// does in between is left out. bytes_per_second is of contents. `moved_whole` is of a huge page, which the kernel moves
// by one entry of a page table.
//
//     build/release/bin/userfault_bench
#include <benchmark/benchmark.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

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

}  // namespace
}  // namespace spw::platform

BENCHMARK_MAIN();
