// Loose blocks that other code and other calls touch while somebody holds them: aliases, ranges, errors, handlers.
#include <sys/wait.h>
#include <unistd.h>

#include "loose_blocks_fixture.h"
#include "store/file_store.h"

namespace spw::access {
namespace {

// ---- Aliases ----

TEST_F(LooseBlocks, are_seen_at_both_addresses_while_a_thread_holds_them) {
  Other other;
  const uint64_t placed = counted(Counter::placed_blocks), aliases = counted(Counter::loose_aliases);
  const uintptr_t raw = to_store(at(5));
  ASSERT_TRUE(is_raw(raw));
  put(raw, 1);
  other.run([&] {
    EXPECT_EQ(get(at(5)), 1u);
    EXPECT_EQ(get(at(5, 1)), at_first(5, 1));
    put(at(5, 1), 2);
  });
  EXPECT_EQ(get(raw + 8), 2u);
  put(raw, 3);
  other.run([&] { EXPECT_EQ(get(at(5)), 3u); });
  EXPECT_GE(counted(Counter::loose_aliases) - aliases, 1u);
  EXPECT_EQ(counted(Counter::placed_blocks), placed);
  EXPECT_TRUE(loses_its_alias(5));
  put(raw + 16, 4);
  other.run([&] { EXPECT_EQ(get(at(5, 2)), 4u); });
  let_go();
  EXPECT_TRUE(loses_its_alias(5));
  for (uint64_t word = 0; word < words(); ++word) {
    const uint64_t expected = word == 0 ? 3 : word == 1 ? 2 : word == 2 ? 4 : at_first(5, word);
    ASSERT_EQ(get(at(5, word)), expected);
  }
  EXPECT_EQ(counted(Counter::placed_blocks) - placed, 1u);
  EXPECT_EQ(to_load(at(5)), at(5));
  push_all_out();
  EXPECT_EQ(in_store(5, 0), 3u);
  EXPECT_EQ(in_store(5, 1), 2u);
  EXPECT_EQ(in_store(5, 2), 4u);
}

TEST_F(LooseBlocks, take_a_store_through_an_alias_that_was_made_for_a_load) {
  Other other;
  const uintptr_t raw = to_load(at(5));
  ASSERT_TRUE(is_raw(raw));
  other.run([&] { EXPECT_EQ(get(at(5)), at_first(5, 0)); });
  EXPECT_FALSE(cache_->is_dirty(id(at(5))));
  other.run([&] { put(at(5), 9); });
  EXPECT_EQ(get(raw), 9u);
  EXPECT_TRUE(cache_->is_dirty(id(at(5))));
  let_go();
  push_all_out();
  EXPECT_TRUE(comes([&] {
    push_all_out();
    return !is_cached(5);
  }));
  EXPECT_EQ(in_store(5, 0), 9u);
  EXPECT_EQ(get(at(5)), 9u);
}

TEST_F(LooseBlocks, may_be_accessed_plainly_by_the_thread_that_holds_them) {
  const uintptr_t raw = to_load(at(5));
  ASSERT_TRUE(is_raw(raw));
  EXPECT_EQ(get(at(5)), at_first(5, 0));
  put(at(5), 1);
  EXPECT_EQ(get(raw), 1u);
  put(raw, 2);
  EXPECT_EQ(get(at(5)), 2u);
  const uint64_t placed = counted(Counter::placed_blocks);
  EXPECT_EQ(to_store(at(5)), at(5)) << "it holds it no more, and nobody else does";
  EXPECT_EQ(counted(Counter::placed_blocks) - placed, 1u);
  EXPECT_EQ(get(at(5)), 2u);
  push_all_out();
  EXPECT_EQ(in_store(5, 0), 2u);
}

TEST_F(LooseBlocks, give_their_aliases_up_to_others_when_there_are_more_than_slots) {
  constexpr uint64_t kOthers = 6;
  std::array<Other, kOthers> others;
  const auto block_of = [](uint64_t i, uint32_t site) { return (i * SPW_REACHES_MAX + site) * 11; };
  std::array<std::array<uintptr_t, SPW_REACHES_MAX>, kOthers> raw;
  for (uint64_t i = 0; i < kOthers; ++i)
    others[i].run([&] {
      for (uint32_t site = 0; site < SPW_REACHES_MAX; ++site)
        ASSERT_TRUE(is_raw(raw[i][site] = to_store(at(block_of(i, site)), site)));
    });
  for (uint64_t turn = 0; turn < 20; ++turn)
    for (uint64_t i = 0; i < kOthers; ++i)
      for (uint32_t site = 0; site < SPW_REACHES_MAX; ++site) {
        put(at(block_of(i, site)), turn);
        ASSERT_EQ(get(raw[i][site]), turn);
        put(raw[i][site], turn + 1);
        ASSERT_EQ(get(at(block_of(i, site))), turn + 1);
      }
}

// While an alias goes there is no access for an instant, which is nobody's fault however often it is met.
TEST_F(LooseBlocks, may_be_accessed_without_end_while_aliases_come_and_go) {
  Other other;
  uintptr_t raw = 0;
  other.run([&] { put(raw = to_store(at(5)), 0); });
  ASSERT_TRUE(is_raw(raw));
  const uint64_t aliases = counted(Counter::loose_aliases);
  uint64_t added = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (counted(Counter::loose_aliases) - aliases < 20 && std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 10'000; ++i, ++added) add_one(at(5));
  EXPECT_GE(counted(Counter::loose_aliases) - aliases, 20u);
  EXPECT_EQ(get(raw), added);
}

TEST_F(LooseBlocks, have_the_rights_that_the_program_chose_while_they_have_aliases_and_afterwards) {
  Other other;
  uintptr_t raw = 0;
  other.run([&] { raw = to_load(at(5)); });
  ASSERT_TRUE(is_raw(raw));
  const uint64_t aliases = counted(Counter::loose_aliases);
  EXPECT_EQ(engine_->program_protects(at(5), block_bytes(), PROT_READ), 0);
  EXPECT_EQ(get(at(5)), at_first(5, 0));
  EXPECT_EQ(counted(Counter::loose_aliases) - aliases, 1u);
  EXPECT_TRUE(faults(at(5)));
  EXPECT_EQ(get(raw), at_first(5, 0));
  EXPECT_TRUE(loses_its_alias(5));
  other.run([&] { let_go(); });
  EXPECT_EQ(get(at(5)), at_first(5, 0));
  EXPECT_TRUE(faults(at(5)));
  EXPECT_EQ(engine_->program_protects(at(5), block_bytes(), PROT_READ | PROT_WRITE), 0);
  put(at(5), 7);
  EXPECT_EQ(get(at(5)), 7u);
}

class LooseBlocksInStreams : public LooseBlocks {
 protected:
  bool reads_ahead() const override { return true; }
};

TEST_F(LooseBlocksInStreams, are_read_ahead_around_where_aliases_were) {
  Other other;
  constexpr uint64_t kWalked = 128;
  for (const uint64_t block : {83, 3, 113, 43, 23, 93, 63, 13, 123, 53, 33, 103, 73}) {  // no stream
    ASSERT_TRUE(is_raw(to_store(at(block))));
    other.run([&] { put(at(block), block); });
    let_go();
  }
  for (uint64_t block = 3; block < kWalked; block += 10) ASSERT_TRUE(loses_its_alias(block));
  push_all_out();
  const uint64_t faults = counted(Counter::missing_faults);
  for (uint64_t block = 0; block < kWalked; ++block)
    ASSERT_EQ(get(at(block)), block % 10 == 3 ? block : at_first(block, 0));
  EXPECT_LT(counted(Counter::missing_faults) - faults, kWalked / 2);
  for (uint64_t block = 0; block < kWalked; ++block) put(at(block), block + 1);
  EXPECT_TRUE(regions_->flush(at(0), kWalked * block_bytes()));
  for (uint64_t block = 0; block < kWalked; ++block) ASSERT_EQ(in_store(block, 0), block + 1);
}

TEST_F(LooseBlocks, keep_the_alias_of_what_a_thread_sleeps_at) {
  Other other;
  uintptr_t raw = 0;
  other.run([&] { raw = to_store(at(5)); });
  ASSERT_TRUE(is_raw(raw));
  Window window;
  ASSERT_TRUE(engine_->keep(at(5), &window, cache::Access::kWrite));
  EXPECT_TRUE(has_page(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(has_page(5));
  put(at(5), 4);
  EXPECT_EQ(get(raw), 4u);
  engine_->let_go(window);
  EXPECT_TRUE(loses_its_alias(5));
}

// Who sleeps there may wait for the very thread that faults.
TEST_F(LooseBlocks, get_an_alias_though_as_many_threads_sleep_at_others_as_may) {
  std::array<Other, 3> others;
  const auto block_of = [](uint64_t i, uint32_t site) { return (i * SPW_REACHES_MAX + site) * 11; };
  for (uint64_t i = 0; i < others.size(); ++i)
    others[i].run([&] {
      for (uint32_t site = 0; site < SPW_REACHES_MAX; ++site)
        ASSERT_TRUE(is_raw(to_store(at(block_of(i, site)), site)));
    });
  std::vector<Window> kept;
  for (uint64_t i = 0; i < others.size(); ++i)
    for (uint32_t site = 0; site < SPW_REACHES_MAX - 1; ++site)
      if (Window window; engine_->keep(at(block_of(i, site)), &window, cache::Access::kRead))
        kept.push_back(window);
  EXPECT_GT(kept.size(), 8u);
  std::atomic<bool> is_done = false;
  std::thread accesses([&] {
    put(at(block_of(2, SPW_REACHES_MAX - 1)), 3);
    is_done = true;
  });
  EXPECT_TRUE(comes([&] { return is_done.load(); }));
  for (const Window& window : kept) engine_->let_go(window);
  accesses.join();
}

TEST_F(LooseBlocks, are_not_shared_with_a_forked_child) {
  Other other;
  const uintptr_t raw = to_store(at(5));
  ASSERT_TRUE(is_raw(raw));
  bool is_there = true;
  int status = 0;
  other.run([&] {
    put(at(5), 1);  // an alias
    const pid_t child = ::fork();
    if (child == 0) {
      unsigned char there = 0;
      const bool is_mapped = ::mincore(pointer(5), 4096, &there) == 0 ||
                             ::mincore(reinterpret_cast<void*>(raw & ~uintptr_t{4095}), 4096, &there) == 0;
      ::_exit(is_mapped ? 1 : 0);
    }
    is_there = has_page(5);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
  });
  if (!is_there) GTEST_SKIP() << "the alias has gone meanwhile";
  EXPECT_EQ(status, 0) << "the child could store to its parent's block";
}

// ---- Ranges ----

TEST_F(LooseBlocks, are_zero_when_they_are_handed_out_again_though_another_thread_holds_them) {
  constexpr uint64_t kBlocks = 8;
  const uintptr_t range = kMemory + 32 * kMiB;
  const auto address = [&](uint64_t block, uint64_t word) {
    return range + (block << block_shift()) + word * 8;
  };
  Other other;
  for (const bool is_freed : {true, false}) {
    for (uint64_t block = 0; block < kBlocks; ++block)
      for (uint64_t word = 0; word < words(); ++word) put(address(block, word), block + word + 1);
    push_all_out();
    std::array<uintptr_t, kBlocks> raw{};
    other.run([&] {
      for (uint32_t block = 0; block < kBlocks; ++block) {
        raw[block] = block % 2 == 0 ? to_store(address(block, 0), block) : to_load(address(block, 0), block);
        ASSERT_TRUE(is_raw(raw[block]));
        ASSERT_EQ(get(raw[block] + 8), block + 2);
        if (block % 2 == 0) put(raw[block], 1000);
      }
    });
    // Some have aliases by now, of either kind.
    EXPECT_EQ(get(address(1, 1)), 3u);
    put(address(2, 5), 1000);
    if (is_freed) {
      regions_->remove(range, kBlocks * block_bytes());
      regions_->add_anonymous(range, kBlocks * block_bytes());
    } else {
      regions_->discard(range, kBlocks * block_bytes());
    }
    for (uint64_t block = 0; block < kBlocks; ++block)
      for (uint64_t word = 0; word < words(); ++word) {
        ASSERT_EQ(get(address(block, word)), 0u) << block << ' ' << word;
        ASSERT_EQ(get(raw[block] + word * 8), 0u) << block << ' ' << word;
      }
    for (uint64_t block = 0; block < kBlocks; ++block) put(address(block, 3), block + 7);
    for (uint64_t block = 0; block < kBlocks; ++block) EXPECT_EQ(get(to_load(address(block, 3))), block + 7);
    let_go();
    other.run([&] { let_go(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    push_all_out();
    for (uint64_t block = 0; block < kBlocks; ++block) {
      EXPECT_EQ(get(to_load(address(block, 3))), block + 7);
      EXPECT_EQ(get(to_load(address(block, 0))), 0u);
    }
    let_go();
    for (uint64_t block = 0; block < kBlocks; ++block) EXPECT_EQ(get(address(block, 3)), block + 7);
  }
}

TEST_F(LooseBlocks, are_flushed_with_all_that_was_stored_to_them) {
  Other other;
  uintptr_t raw = 0;
  other.run([&] { put(raw = to_store(at(5)), 1); });
  ASSERT_TRUE(is_raw(raw));
  EXPECT_TRUE(regions_->flush(at(5), block_bytes()));
  EXPECT_EQ(in_store(5, 0), 1u);
  EXPECT_EQ(in_store(5, 1), at_first(5, 1));
  // The same hold, which was writable before the flush.
  other.run([&] { put(to_store(at(5)), 2); });
  put(at(5, 1), 3);  // an alias
  EXPECT_TRUE(regions_->sync(at(5), block_bytes()));
  EXPECT_EQ(in_store(5, 0), 2u);
  EXPECT_EQ(in_store(5, 1), 3u);
  other.run([&] { let_go(); });
  // And by the thread that held it.
  put(to_store(at(7)), 4);
  EXPECT_TRUE(regions_->flush(at(0), 16 * block_bytes()));
  EXPECT_EQ(in_store(7, 0), 4u);
  EXPECT_FALSE(cache_->is_dirty(id(at(7))));
  put(to_store(at(7)), 5);
  EXPECT_TRUE(cache_->is_dirty(id(at(7))));
  EXPECT_TRUE(regions_->flush(at(0), 16 * block_bytes()));
  EXPECT_EQ(in_store(7, 0), 5u);
}

TEST_F(LooseBlocks, are_clean_after_a_flush_though_they_have_aliases) {
  ASSERT_TRUE(is_raw(to_store(at(5))));
  put(at(5), 1);
  EXPECT_TRUE(regions_->flush(at(5), block_bytes()));
  EXPECT_EQ(in_store(5, 0), 1u);
  EXPECT_FALSE(cache_->is_dirty(id(at(5))));
  EXPECT_FALSE(has_page(5));
  put(at(5), 2);
  EXPECT_TRUE(cache_->is_dirty(id(at(5))));
}

TEST_F(LooseBlocks, are_written_once_more_when_a_store_comes_while_they_are_written) {
  put(to_store(at(5)), 1);
  let_go();
  ASSERT_TRUE(file_plan_.add("write:1+:delay:100000"));
  std::thread flushing([&] { EXPECT_TRUE(regions_->flush(at(5), block_bytes())); });
  ASSERT_TRUE(comes([&] { return !cache_->is_dirty(id(at(5))); }));
  put(to_store(at(5)), 2);
  EXPECT_TRUE(cache_->is_dirty(id(at(5))));
  put(at(5, 1), 3);
  flushing.join();
  file_plan_.clear();
  EXPECT_TRUE(regions_->flush(at(5), block_bytes()));
  EXPECT_EQ(in_store(5, 0), 2u);
  EXPECT_EQ(in_store(5, 1), 3u);
}

TEST_F(LooseBlocks, are_placed_when_the_program_changes_access_rights_and_there_are_no_others_from_then_on) {
  ASSERT_TRUE(is_raw(to_store(at(3))));
  put(to_store(at(3)), 33);
  ASSERT_FALSE(has_page(3));
  ASSERT_EQ(protect(pointer(0), 8 * block_bytes(), PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(has_page(3));
  EXPECT_EQ(get(at(3)), 33u);
  EXPECT_FALSE(is_raw(to_load(at(3))));
  EXPECT_FALSE(is_raw(to_load(at(100))));
}

// ---- Errors ----

class LooseErrors : public LooseBlocks {
 protected:
  static inline Atomic<uint64_t> told_{0};
  static void tell(void*, const Status& status) {
    EXPECT_EQ(status.error(), EIO);
    told_.fetch_add_relaxed(1);
  }
  void (*tells_errors() const)(void*, const Status&) override { return &tell; }
};

TEST_F(LooseErrors, of_a_read_are_told_and_leave_nothing_behind) {
  ASSERT_TRUE(file_plan_.add("read:1+:EIO"));
  const uint64_t fills = counted(Counter::loose_fills), told = told_.load_relaxed();
  for (uint64_t block = 0; block < 2 * frames(); ++block)
    ASSERT_EQ(to_load(at(block * 5 % blocks())), at(block * 5 % blocks()));
  EXPECT_EQ(told_.load_relaxed() - told, 2 * frames());
  EXPECT_EQ(counted(Counter::loose_fills), fills);
  file_plan_.clear();
  for (uint64_t block = 0; block < 2 * frames(); ++block)
    ASSERT_EQ(get(to_load(at(block * 5 % blocks()))), at_first(block * 5 % blocks(), 0));
  EXPECT_GT(counted(Counter::loose_fills), fills);
}

class LooseReadOnlyBlocks : public LooseBlocks {
 protected:
  region::Kind file_kind() const override { return region::Kind::kReadOnlyFile; }
};

TEST_F(LooseReadOnlyBlocks, are_not_reached_by_stores) {
  ASSERT_TRUE(is_raw(to_load(at(5), 0)));
  EXPECT_EQ(to_store(at(5), 1), at(5));
  EXPECT_EQ(to_store(at(5), 0), at(5)) << "though this very site holds it for loads";
  EXPECT_FALSE(cache_->is_dirty(id(at(5))));
  EXPECT_EQ(to_store(at(95), 0), at(95));
  EXPECT_TRUE(faults(at(95)));
  EXPECT_FALSE(faults(kMemory));
}

TEST_F(LooseReadOnlyBlocks, refuse_stores_through_their_aliases) {
  Other other;
  const uintptr_t raw = to_load(at(5), 0);
  ASSERT_TRUE(is_raw(raw));
  other.run([&] { EXPECT_EQ(get(at(5)), at_first(5, 0)); });
  EXPECT_TRUE(faults(at(5)));
  EXPECT_EQ(get(raw), at_first(5, 0));
  EXPECT_FALSE(cache_->is_dirty(id(at(5))));
  let_go();
  EXPECT_TRUE(loses_its_alias(5));
  EXPECT_EQ(get(at(5)), at_first(5, 0));
}

// ---- Signal handlers ----

using LooseInHandlers = LooseBlocks;

TEST_F(LooseInHandlers, there_are_no_raw_addresses_and_what_was_interrupted_stays_good) {
  const uintptr_t raw = to_store(at(5), 1);
  ASSERT_TRUE(is_raw(raw));
  put(raw, 1);
  handle([&] {
    EXPECT_EQ(to_load(at(5), 0), at(5));
    EXPECT_EQ(get(at(5)), 1u);
    EXPECT_EQ(to_store(at(45), 0), at(45));
    put(at(45), 2);
    handle([&] { EXPECT_EQ(to_load(at(85), 0), at(85)); });
    EXPECT_EQ(to_load(at(125), 0), at(125));
    push_all_out_elsewhere();
    put(at(5, 1), 3);
  });
  EXPECT_EQ(get(raw + 8), 3u);
  put(raw, 4);
  EXPECT_TRUE(loses_its_alias(5));
  push_all_out_elsewhere();
  ASSERT_TRUE(is_cached(5));
  put(raw + 16, 5);
  EXPECT_TRUE(is_raw(to_load(at(165), 2))) << "the handler has ended";
  let_go();
  push_all_out();
  EXPECT_EQ(in_store(5, 0), 4u);
  EXPECT_EQ(in_store(5, 1), 3u);
  EXPECT_EQ(in_store(5, 2), 5u);
  EXPECT_EQ(get(at(45)), 2u);
}

TEST_F(LooseInHandlers, a_call_that_ends_holds_elsewhere_ends_none_of_what_was_interrupted) {
  const uintptr_t raw = to_store(at(5));
  ASSERT_TRUE(is_raw(raw));
  put(raw, 1);
  handle([&] {
    EXPECT_TRUE(regions_->flush(at(100), block_bytes()));
    regions_->discard(kMemory + 48 * kMiB, block_bytes());
  });
  push_all_out_elsewhere();
  EXPECT_TRUE(is_cached(5)) << "the interrupted code goes on with the raw address";
  put(raw, 2);
  let_go();
  push_all_out();
  EXPECT_EQ(in_store(5, 0), 2u);
}

TEST_F(LooseInHandlers, raw_addresses_come_back_when_one_is_left_by_a_jump) {
  // It ran further down the stack, and its end is not told.
  const uintptr_t frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - 64 * kKiB;
  EXPECT_GT(engine_->handler_begins({frame, 0, 0, frame + 64}), 0);
  EXPECT_TRUE(is_raw(to_load(at(45))));
}

}  // namespace
}  // namespace spw::access
