// Pages by access rights: what is there and to whom, and that few areas are enough. A handler of SIGSEGV does what the
// engine would, of rights alone.
#include "access/mapped/protected_pages.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "telemetry/counters.h"

namespace spw::access {
namespace {

using telemetry::Counter;

constexpr unsigned kShift = 12;
constexpr uint64_t kBlock = uint64_t{1} << kShift;
constexpr uint64_t kWindow = 512;  // blocks
constexpr uint64_t kWindows = 64;
constexpr uint64_t kSpaceBytes = kWindows * kWindow * kBlock;

ProtectedPages* g_pages = nullptr;
std::byte* g_base = nullptr;
thread_local sigjmp_buf t_refused;
thread_local Admitted t_admitted = Admitted::kYes;

void on_fault(int, siginfo_t* info, void* context) {
  const bool is_store = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  t_admitted = g_pages->admit(reinterpret_cast<uintptr_t>(info->si_addr), is_store);
  if (t_admitted != Admitted::kYes) siglongjmp(t_refused, 1);
}

uint64_t reopened() { return telemetry::total(telemetry::read_totals(), Counter::reopen_faults); }

class ProtectedPagesTest : public testing::Test {
 protected:
  void make(uint64_t edges_max) {
    (void)telemetry::thread_counters();  // a handler is to find them
    space_ = std::move(*platform::reserve_range(0, kSpaceBytes));
    g_base = space_.data();
    (void)platform::advise(g_base, kSpaceBytes, platform::Advice::kNoHugePage);
    auto pages = ProtectedPages::create(g_base, kSpaceBytes, kShift, edges_max);
    if (!pages) GTEST_SKIP() << pages.status().message();
    pages_ = std::move(*pages);
    g_pages = static_cast<ProtectedPages*>(pages_.get());
    struct sigaction action{};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before_);
    is_made_ = true;
    ASSERT_TRUE(pages_->begin(0).is_ok());
  }
  void TearDown() override {
    if (is_made_) sigaction(SIGSEGV, &before_, nullptr);
  }
  static std::byte* at(uint64_t block) { return g_base + block * kBlock; }
  static uint64_t& word(uint64_t block, uint64_t i = 0) { return reinterpret_cast<uint64_t*>(at(block))[i]; }
  void put(uint64_t block, uint64_t value, bool is_writable) {
    std::vector<uint64_t> source(kBlock / 8, value);
    ASSERT_TRUE(
        pages_->copy(at(block), reinterpret_cast<std::byte*>(source.data()), kBlock, is_writable).is_ok());
  }
  // So many others come and go that all that may be closed is.
  void crowd() {
    std::vector<iovec> ranges;
    for (uint64_t block = 2 * kWindow; block < 20 * kWindow; block += 2) {
      put(block, block, true);
      ranges.push_back({at(block), kBlock});
    }
    pages_->release(ranges);
  }
  void release(std::initializer_list<uint64_t> blocks) {
    std::vector<iovec> ranges;
    for (const uint64_t block : blocks) ranges.push_back({at(block), kBlock});
    pages_->release(ranges);
  }
  int protects(uintptr_t address, uint64_t bytes, int protection) {
    return pages_->program_protects(address, bytes, protection, [] {});
  }
  // What a load of, or a store to, the block's first word finds.
  static Admitted touch(uint64_t block, bool is_store) {
    volatile uint64_t* address = &word(block);
    t_admitted = Admitted::kYes;
    if (sigsetjmp(t_refused, 1) != 0) return t_admitted;
    if (is_store)
      *address = *address + 1;
    else
      (void)*address;
    return Admitted::kYes;
  }
  // Areas of the kernel within the space.
  static size_t areas() {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) {
      const uint64_t begin = std::stoull(line, nullptr, 16);
      count += begin - reinterpret_cast<uintptr_t>(g_base) < kSpaceBytes;
    }
    return count;
  }

  platform::Mapping space_;
  std::unique_ptr<PlacedPages> pages_;
  struct sigaction before_{};
  bool is_made_ = false;
};

TEST_F(ProtectedPagesTest, a_block_is_absent_then_readable_then_writable_then_absent) {
  make(1000);
  if (IsSkipped()) return;
  EXPECT_EQ(touch(7, false), Admitted::kNot);
  put(7, 70, false);
  EXPECT_EQ(word(7, 511), 70u);
  EXPECT_EQ(touch(7, true), Admitted::kNot);
  ASSERT_TRUE(pages_->allow_stores(at(6), 3 * kBlock).is_ok());  // those that are there
  EXPECT_EQ(touch(7, true), Admitted::kYes);
  EXPECT_EQ(touch(6, false), Admitted::kNot);
  EXPECT_EQ(touch(8, false), Admitted::kNot);
  EXPECT_EQ(word(7), 71u);
  ASSERT_TRUE(pages_->begin_writeback(at(7), kBlock).is_ok());
  EXPECT_EQ(touch(7, true), Admitted::kNot);
  pages_->end_writeback(at(7), kBlock);
  EXPECT_EQ(word(7), 71u);
  release({7});
  EXPECT_EQ(touch(7, false), Admitted::kNot);
  put(7, 0, true);
  EXPECT_EQ(word(7), 0u);
  EXPECT_EQ(touch(7, true), Admitted::kYes);
}

TEST_F(ProtectedPagesTest, neighbours_with_the_same_rights_are_one_area_again) {
  make(1000);
  if (IsSkipped()) return;
  const size_t at_first = areas();
  for (uint64_t block = 0; block < kWindow; block += 2) put(block, block, true);
  for (uint64_t block = 0; block < kWindow; block += 2)
    word(block) += 1;  // so that they have memory of their own
  EXPECT_GT(areas(), at_first + kWindow / 2);
  for (uint64_t block = 1; block < kWindow; block += 2) put(block, block, true);
  EXPECT_LE(areas(), at_first + 2);
}

TEST_F(ProtectedPagesTest, so_many_edges_and_no_more_whatever_is_there) {
  constexpr uint64_t kEdges = 6000;
  make(kEdges);
  if (IsSkipped()) return;
  for (uint64_t block = 0; block < kWindows * kWindow; block += 2) {
    put(block, block + 1, block % 4 == 0);
    if (block % 1024 == 0) ASSERT_LE(areas(), kEdges + 2 * kWindow);
  }
  const uint64_t before = reopened();
  for (uint64_t block = 0; block < kWindows * kWindow; block += 2) {
    ASSERT_EQ(word(block), block + 1);
    ASSERT_EQ(touch(block, true), block % 4 == 0 ? Admitted::kYes : Admitted::kNot);
    ASSERT_EQ(touch(block + 1, false), Admitted::kNot);
  }
  EXPECT_GT(reopened() - before, kWindows * kWindow / 4);
  EXPECT_LE(areas(), kEdges + 2 * kWindow);
}

TEST_F(ProtectedPagesTest, a_run_is_opened_as_a_whole) {
  make(1000);
  if (IsSkipped()) return;
  for (uint64_t block = 0; block < 100; ++block) put(block, block, true);
  for (uint64_t block = kWindow; block < 16 * kWindow; block += 2)
    put(block, block, true);  // closes the first
  const uint64_t before = reopened();
  for (uint64_t block = 0; block < 100; ++block) ASSERT_EQ(word(block), block);
  EXPECT_EQ(reopened() - before, 1u);
}

TEST_F(ProtectedPagesTest, what_is_kept_open_or_written_is_not_closed) {
  make(200);
  if (IsSkipped()) return;
  for (const uint64_t block : {0, 4}) put(block, block, true);
  pages_->keep_open(at(0));
  put(kWindow, 5, false);
  ASSERT_TRUE(pages_->begin_writeback(at(kWindow), kBlock).is_ok());
  const auto is_readable_to_the_kernel = [](uint64_t block) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const bool is = write(ends[1], at(block), 8) == 8;
    close(ends[0]);
    close(ends[1]);
    return is;
  };
  crowd();
  EXPECT_TRUE(is_readable_to_the_kernel(0));
  EXPECT_TRUE(is_readable_to_the_kernel(kWindow));
  pages_->let_close(at(0));
  pages_->end_writeback(at(kWindow), kBlock);
  crowd();
  EXPECT_FALSE(is_readable_to_the_kernel(0));
  EXPECT_FALSE(is_readable_to_the_kernel(kWindow));
  EXPECT_EQ(word(0), 0u);
  EXPECT_EQ(word(kWindow), 5u);
  pages_->keep_open(at(4));
  EXPECT_TRUE(is_readable_to_the_kernel(4));
  pages_->let_close(at(4));
}

// A stack: whatever else is opened, nothing of it faults, until its blocks are released.
TEST_F(ProtectedPagesTest, a_run_that_is_kept_open_until_it_is_released_does_not_fault) {
  make(200);
  if (IsSkipped()) return;
  for (uint64_t block = 10; block < 20; ++block) put(block, block, block % 2 == 0);
  pages_->keep_open_until_released(at(12), 6 * kBlock);
  ASSERT_TRUE(pages_->allow_stores(at(12), 6 * kBlock).is_ok());
  for (int again = 0; again < 3; ++again) {
    crowd();
    const uint64_t before = reopened();
    for (uint64_t block = 12; block < 18; ++block)
      EXPECT_EQ(word(block)++, block + static_cast<uint64_t>(again));
    EXPECT_EQ(reopened(), before);
    EXPECT_EQ(word(10), 10u);
    EXPECT_GT(reopened(), before) << "its neighbours are closed";
  }
  release({12, 13, 14, 15, 16, 17});
  for (uint64_t block = 12; block < 18; ++block) put(block, block, true);
  crowd();
  const uint64_t before = reopened();
  for (uint64_t block = 12; block < 18; ++block) EXPECT_EQ(word(block), block);
  EXPECT_GT(reopened(), before);
}

// Opposite wishes for a page at the same time: whichever comes last, a write that found it readable can read it.
TEST_F(ProtectedPagesTest, a_write_can_read_what_it_found_readable_whoever_changes_rights_meanwhile) {
  make(1000);
  if (IsSkipped()) return;
  put(1, 1, true);
  const auto address = reinterpret_cast<uintptr_t>(at(1));
  std::atomic<bool> is_over{false};
  std::atomic<int> writing{0};
  const auto changes = [&](int protection) {
    (void)telemetry::thread_counters();
    while (!is_over)
      EXPECT_EQ(pages_->program_protects(address, kBlock, protection,
                                         [&] {
                                           while (writing != 0) std::this_thread::yield();
                                         }),
                0);
  };
  std::thread takes([&] { changes(PROT_NONE); }), gives([&] { changes(PROT_READ | PROT_WRITE); });
  int ends[2], read_in_place = 0;
  ASSERT_EQ(pipe(ends), 0);
  // However seldom one of the two comes to run.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (read_in_place < 2000 / SPW_SLOWED && std::chrono::steady_clock::now() < end) {
    writing = 1;
    const bool is_readable = pages_->is_readable(at(1), kBlock);
    ASSERT_TRUE(pages_->begin_writeback(at(1), kBlock).is_ok());
    if (uint64_t value = 0; is_readable) {
      const ssize_t written = write(ends[1], at(1), sizeof value);
      EXPECT_EQ(written, static_cast<ssize_t>(sizeof value));
      if (written < 0) break;
      EXPECT_EQ(read(ends[0], &value, sizeof value), static_cast<ssize_t>(sizeof value));
      ++read_in_place;
    }
    pages_->end_writeback(at(1), kBlock);
    writing = 0;
    if (!is_readable) std::this_thread::yield();
  }
  is_over = true, writing = 0;
  takes.join();
  gives.join();
  EXPECT_GT(read_in_place, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST(ProgramRightsTest, are_those_of_a_list_page_by_page) {
  constexpr uint64_t kPages = 64;
  ProgramRights rights;
  std::vector<int> listed(kPages, ProgramRights::kUsual);
  Rng rng(5);
  for (int step = 0; step < 5000; ++step) {
    const uint64_t begin = rng.below(kPages), end = begin + 1 + rng.below(kPages - begin);
    const int chosen = step % 3 == 0 ? ProgramRights::kUsual : static_cast<int>(rng.below(8));
    rights.set(begin, end, chosen);
    std::fill(listed.begin() + static_cast<ptrdiff_t>(begin), listed.begin() + static_cast<ptrdiff_t>(end),
              chosen);
    std::vector<int> visited;
    EXPECT_TRUE(rights.for_each(0, kPages, [&](uintptr_t from, uintptr_t to, int part) {
      EXPECT_EQ(from, visited.size());
      visited.resize(to, part);
      return true;
    }));
    ASSERT_EQ(visited, listed);
    for (uint64_t page = 0; page < kPages; ++page) ASSERT_EQ(rights.at(page), listed[page]);
    EXPECT_EQ(rights.any(), std::count(listed.begin(), listed.end(), ProgramRights::kUsual) != kPages);
  }
}

TEST_F(ProtectedPagesTest, rights_of_the_program_s_come_on_top) {
  make(1000);
  if (IsSkipped()) return;
  for (uint64_t block = 0; block < 8; ++block) put(block, block, true);
  EXPECT_EQ(protects(reinterpret_cast<uintptr_t>(at(2)), 2 * kBlock, PROT_READ), 0);
  EXPECT_EQ(protects(reinterpret_cast<uintptr_t>(at(5)), 1, PROT_NONE), 0);
  EXPECT_EQ(protects(reinterpret_cast<uintptr_t>(at(5)), 1, 1 << 20), EINVAL);
  const auto check = [&] {
    for (uint64_t block = 0; block < 8; ++block) {
      const bool is_read_only = block == 2 || block == 3;
      EXPECT_EQ(touch(block, false), block == 5 ? Admitted::kRefused : Admitted::kYes) << block;
      EXPECT_EQ(touch(block, true), block == 5 || is_read_only ? Admitted::kRefused : Admitted::kYes)
          << block;
    }
  };
  check();
  for (uint64_t block = kWindow; block < 16 * kWindow; block += 2) put(block, block, true);  // closes them
  check();
  release({2, 3, 4, 5});
  EXPECT_EQ(touch(5, false), Admitted::kRefused);
  EXPECT_EQ(touch(3, false), Admitted::kNot);
  for (uint64_t block = 2; block < 6; ++block) put(block, block, true);
  check();
  EXPECT_EQ(protects(reinterpret_cast<uintptr_t>(at(0)), 8 * kBlock, PROT_READ | PROT_WRITE), 0);
  for (uint64_t block = 0; block < 8; ++block) EXPECT_EQ(touch(block, true), Admitted::kYes) << block;
}

TEST_F(ProtectedPagesTest, a_guard_page_is_copied_out_and_is_one_meanwhile) {
  make(1000);
  if (IsSkipped()) return;
  for (uint64_t block = 0; block < 3; ++block) put(block, block, true);
  EXPECT_EQ(protects(reinterpret_cast<uintptr_t>(at(1)), kBlock, PROT_NONE), 0);
  EXPECT_TRUE(pages_->is_readable(at(0), kBlock));
  EXPECT_FALSE(pages_->is_readable(at(1), kBlock));
  ASSERT_TRUE(pages_->begin_writeback(at(1), kBlock).is_ok());
  std::vector<uint64_t> copied(kBlock / sizeof(uint64_t), 99);
  ASSERT_TRUE(pages_->copy_out(reinterpret_cast<std::byte*>(copied.data()), at(1), kBlock).is_ok());
  EXPECT_EQ(copied, std::vector<uint64_t>(kBlock / sizeof(uint64_t), 1));
  EXPECT_EQ(touch(1, false), Admitted::kRefused);
  pages_->end_writeback(at(1), kBlock);
  EXPECT_EQ(touch(1, false), Admitted::kRefused);
  pages_->forget_rights(reinterpret_cast<uintptr_t>(at(1)), reinterpret_cast<uintptr_t>(at(2)));
  EXPECT_EQ(word(1), 1u);
}

TEST_F(ProtectedPagesTest, a_guard_page_that_has_to_be_read_in_place_is_one_again_afterwards) {
  make(1000);
  if (IsSkipped()) return;
  for (uint64_t block = 0; block < 3; ++block) put(block, block, true);
  EXPECT_EQ(protects(reinterpret_cast<uintptr_t>(at(1)), kBlock, PROT_NONE), 0);
  ASSERT_TRUE(pages_->begin_writeback(at(0), 3 * kBlock).is_ok());
  EXPECT_EQ(touch(1, false), Admitted::kRefused);
  ASSERT_TRUE(pages_->let_read(at(0), 3 * kBlock).is_ok());
  EXPECT_EQ(word(1), 1u);
  pages_->end_writeback(at(0), kBlock);
  EXPECT_EQ(word(1), 1u) << "only its neighbour has been written";
  pages_->end_writeback(at(1), 2 * kBlock);
  EXPECT_EQ(touch(1, false), Admitted::kRefused);
  EXPECT_EQ(word(0), 0u);
  EXPECT_EQ(word(2), 2u);
}

TEST_F(ProtectedPagesTest, a_page_that_becomes_a_guard_while_it_is_written_is_one_once_it_has_been) {
  make(1000);
  if (IsSkipped()) return;
  for (uint64_t block = 0; block < 3; ++block) put(block, block, true);
  const auto address = reinterpret_cast<uintptr_t>(at(0));
  ASSERT_TRUE(pages_->is_readable(at(1), kBlock));
  int waits = 0;
  const auto another = [&] {
    EXPECT_EQ(pages_->program_protects(address, 2 * kBlock, PROT_NONE, [&] { ++waits; }), 0);
    EXPECT_EQ(word(1), 1u) << "the first has not seen the write end";
  };
  EXPECT_EQ(pages_->program_protects(address, 3 * kBlock, PROT_NONE,
                                     [&] {
                                       ++waits;
                                       // That nobody may read it had not been seen by this one.
                                       ASSERT_TRUE(pages_->begin_writeback(at(1), kBlock).is_ok());
                                       EXPECT_EQ(word(1), 1u);
                                       another();
                                       EXPECT_FALSE(pages_->is_readable(at(2), kBlock));
                                     }),
            0);
  EXPECT_EQ(waits, 2);
  for (uint64_t block = 0; block < 3; ++block) EXPECT_EQ(touch(block, false), Admitted::kRefused);
  pages_->end_writeback(at(1), kBlock);
  EXPECT_EQ(touch(1, false), Admitted::kRefused);
  // Nothing of it can be being written by one that does not know.
  EXPECT_EQ(pages_->program_protects(address, 3 * kBlock, PROT_NONE, [&] { ++waits; }), 0);
  EXPECT_EQ(waits, 2);
}

TEST_F(ProtectedPagesTest, few_blocks_that_are_being_written_keep_no_others_open) {
  constexpr uint64_t kEdges = 600;
  make(kEdges);
  if (IsSkipped()) return;
  for (uint64_t window = 0; window < kWindows; ++window) {
    put(window * kWindow, window, true);
    ASSERT_TRUE(pages_->begin_writeback(at(window * kWindow), kBlock).is_ok());
  }
  for (uint64_t block = 2; block < kWindows * kWindow; block += 2)
    if (block % kWindow != 0) put(block, block, true);
  EXPECT_LE(areas(), kEdges + 16 * kWindow);
  for (uint64_t window = 0; window < kWindows; ++window) {
    EXPECT_EQ(write(fileno(stderr), at(window * kWindow), 0), 0);
    EXPECT_EQ(word(window * kWindow), window);
    pages_->end_writeback(at(window * kWindow), kBlock);
  }
}

TEST_F(ProtectedPagesTest, what_may_be_stored_to_may_be_read_and_nothing_is_executed_without_leave) {
  make(1000);
  if (IsSkipped()) return;
  put(1, 1, true);
  const auto address = reinterpret_cast<uintptr_t>(at(1));
  EXPECT_FALSE(pages_->may_execute(address));
  EXPECT_EQ(protects(address, kBlock, PROT_WRITE), 0);
  EXPECT_EQ(touch(1, false), Admitted::kYes);
  EXPECT_EQ(protects(address, kBlock, PROT_EXEC), 0);
  EXPECT_TRUE(pages_->may_execute(address));
  EXPECT_EQ(protects(address, 2 * kSpaceBytes, PROT_READ), ENOMEM);
}

TEST_F(ProtectedPagesTest, what_was_there_before_is_adopted_and_faults_once) {
  make(1000);
  if (IsSkipped()) return;
  ASSERT_TRUE(platform::protect(g_base, 64 * kBlock, platform::Protection::kReadWrite).is_ok());
  for (uint64_t block = 0; block < 64; ++block) word(block) = block + 9;
  ASSERT_TRUE(pages_->begin(64 * kBlock).is_ok());
  pages_->adopt(at(0), 64 * kBlock);
  const uint64_t before = reopened();
  for (uint64_t block = 0; block < 64; ++block) EXPECT_EQ(word(block)++, block + 9);
  EXPECT_EQ(reopened() - before, 1u);
}

// Each thread has blocks of its own, in windows that all of them have blocks in, and changes them in every way. Few
// edges, so that others take the rights away all the time.
TEST_F(ProtectedPagesTest, threads_that_close_each_others_windows_find_what_they_stored) {
  make(300);
  if (IsSkipped()) return;
  constexpr uint64_t kThreads = 4, kSteps = 60'000 / SPW_SLOWED;
  std::vector<std::thread> threads;
  for (uint64_t self = 0; self < kThreads; ++self)
    threads.emplace_back([self, this] {
      (void)telemetry::thread_counters();
      constexpr uint64_t kOwn = 512;
      enum { kAbsent, kClean, kStored };
      std::vector<int> states(kOwn, kAbsent);
      std::vector<uint64_t> values(kOwn, 0);
      Rng rng(self);
      for (uint64_t step = 0; step < kSteps; ++step) {
        const uint64_t own = rng.below(kOwn), block = own * 64 + self * 2;
        switch (rng.below(4)) {
          case 0:
            if (states[own] != kAbsent) break;
            put(block, values[own], false);
            states[own] = kClean;
            break;
          case 1:
            if (states[own] == kAbsent) break;
            if (states[own] == kClean) ASSERT_TRUE(pages_->allow_stores(at(block), kBlock).is_ok());
            states[own] = kStored;
            ASSERT_EQ(touch(block, true), Admitted::kYes);
            ++values[own];
            break;
          case 2:
            ASSERT_EQ(touch(block, false), states[own] == kAbsent ? Admitted::kNot : Admitted::kYes);
            if (states[own] != kAbsent) ASSERT_EQ(word(block), values[own]);
            break;
          default:
            if (states[own] == kAbsent) break;
            ASSERT_TRUE(pages_->begin_writeback(at(block), kBlock).is_ok());
            ASSERT_EQ(word(block), values[own]);
            pages_->end_writeback(at(block), kBlock);
            states[own] = kClean;
            ASSERT_EQ(touch(block, true), Admitted::kNot);
            if (rng.below(2) == 0) break;
            const iovec range{at(block), kBlock};
            pages_->release({&range, 1});
            states[own] = kAbsent;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(areas(), 1200u);
  EXPECT_GT(reopened(), kSteps / 10);
}

}  // namespace
}  // namespace spw::access
