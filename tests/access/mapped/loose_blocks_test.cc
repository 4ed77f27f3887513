// Loose blocks: how they come, are placed and are held.

#include "loose_blocks_fixture.h"

namespace spw::access {
namespace {

// ---- Coming, and being placed ----

TEST_F(LooseBlocks, come_without_a_page_at_their_own_address) {
  const uint64_t fills = counted(Counter::loose_fills);
  const uint64_t faults = counted(Counter::missing_faults) + counted(Counter::protect_faults);
  const uintptr_t raw = to_load(at(5, 3));
  ASSERT_TRUE(is_raw(raw));
  for (uint64_t word = 0; word < words(); ++word) ASSERT_EQ(get(raw - 24 + word * 8), at_first(5, word));
  EXPECT_LT(hint(pointer(5)), 0);
  EXPECT_FALSE(has_page(5));
  EXPECT_FALSE(platform::is_page_present(at(5)));
  EXPECT_EQ(counted(Counter::loose_fills) - fills, 1u);
  EXPECT_EQ(counted(Counter::missing_faults) + counted(Counter::protect_faults), faults);
  EXPECT_EQ(to_load(at(5, 3), 1), raw);
  EXPECT_EQ(counted(Counter::loose_fills) - fills, 1u);
}

TEST_F(LooseBlocks, that_were_never_written_come_to_their_own_address) {
  const uintptr_t address = kMemory + 40 * kMiB;
  EXPECT_EQ(to_store(address), address);
  put(address, 7);
  EXPECT_EQ(get(address), 7u);
}

TEST_F(LooseBlocks, keep_what_is_stored_to_them_when_they_are_evicted) {
  std::vector<uint64_t> order(blocks());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  const uint64_t evictions = counted(Counter::evictions), fills = counted(Counter::loose_fills);
  for (const uint64_t block : order) put(to_store(at(block, 9)), block * 7);
  EXPECT_GT(counted(Counter::evictions) - evictions, blocks() / 2);
  EXPECT_GT(counted(Counter::loose_fills) - fills, blocks() / 2);
  std::shuffle(order.begin(), order.end(), std::mt19937(2));
  for (const uint64_t block : order) {
    ASSERT_EQ(get(to_load(at(block, 9))), block * 7);
    ASSERT_EQ(get(to_load(at(block, 10))), at_first(block, 10));
  }
  let_go();
  for (uint64_t block = 0; block < blocks(); ++block) {
    ASSERT_EQ(get(at(block, 9)), block * 7);
    ASSERT_EQ(get(at(block, 8)), at_first(block, 8));
  }
}

TEST_F(LooseBlocks, are_placed_by_a_fault_once_nobody_holds_them) {
  const uint64_t placed = counted(Counter::placed_blocks);
  const uintptr_t raw = to_store(at(5, 1));
  ASSERT_TRUE(is_raw(raw));
  put(raw, 77);
  let_go();
  EXPECT_FALSE(has_page(5));
  EXPECT_EQ(get(at(5, 1)), 77u);
  EXPECT_EQ(get(at(5, 2)), at_first(5, 2));
  EXPECT_TRUE(has_page(5));
  EXPECT_EQ(counted(Counter::placed_blocks) - placed, 1u);
  EXPECT_EQ(to_load(at(5, 1)), at(5, 1));
  EXPECT_EQ(to_store(at(5, 1)), at(5, 1));
  put(at(5, 2), 78);
  push_all_out();
  EXPECT_EQ(get(at(5, 1)), 77u);
  EXPECT_EQ(get(at(5, 2)), 78u);
}

TEST_F(LooseBlocks, that_were_placed_clean_have_their_first_store_noticed) {
  ASSERT_TRUE(is_raw(to_load(at(5))));
  let_go();
  EXPECT_EQ(get(at(5)), at_first(5, 0));
  EXPECT_GT(hint(pointer(5)), 0);
  EXPECT_FALSE(cache_->is_dirty(id(at(5))));
  put(at(5), 1);
  EXPECT_TRUE(cache_->is_dirty(id(at(5))));
  push_all_out();
  EXPECT_EQ(in_store(5, 0), 1u);
}

TEST_F(LooseBlocks, are_placed_by_a_hint_too) {
  ASSERT_TRUE(is_raw(to_store(at(5))));
  put(to_store(at(5)), 3);
  let_go();
  engine_->hint(at(5), false);
  EXPECT_TRUE(has_page(5));
  EXPECT_EQ(get(at(5)), 3u);
}

TEST_F(LooseBlocks, are_placed_for_a_call_though_this_thread_held_them) {
  const uint64_t placed = counted(Counter::placed_blocks), aliases = counted(Counter::loose_aliases);
  for (const bool is_store : {false, true}) {
    const uint64_t block = is_store ? 45 : 5;
    put(to_store(at(block)), block);
    ASSERT_TRUE(is_raw(to_load(at(block, 1), 1)));
    EXPECT_EQ(engine_->reach(at(block), SPW_FOR_A_CALL, 0, is_store), at(block));
    EXPECT_TRUE(has_page(block));
    EXPECT_EQ(get(at(block)), block);
  }
  EXPECT_EQ(counted(Counter::placed_blocks) - placed, 2u);
  EXPECT_EQ(counted(Counter::loose_aliases), aliases);
}

TEST_F(LooseBlocks, are_placed_when_they_are_used_often) {
  const uint64_t placed = counted(Counter::placed_blocks);
  ASSERT_TRUE(is_raw(to_store(at(5))));
  put(to_store(at(5)), 3);
  uint64_t uses = 0;
  while (is_raw(to_load(at(5)))) ASSERT_LT(++uses, 256u);
  EXPECT_GT(uses, 2u);
  EXPECT_EQ(counted(Counter::placed_blocks) - placed, 1u);
  EXPECT_EQ(get(at(5)), 3u);
  push_all_out();
  EXPECT_TRUE(is_raw(to_load(at(5)))) << "it begins anew";
  EXPECT_EQ(get(to_load(at(5))), 3u);
}

TEST_F(LooseBlocks, are_not_placed_while_another_thread_holds_them_but_need_no_raw_address_any_more) {
  Other other;
  const uint64_t placed = counted(Counter::placed_blocks), aliases = counted(Counter::loose_aliases);
  uintptr_t raw = 0;
  other.run([&] { raw = to_store(at(5)); });
  ASSERT_TRUE(is_raw(raw));
  uint64_t uses = 0;
  while (to_load(at(5)) == raw) ASSERT_LT(++uses, 256u);
  EXPECT_GT(uses, 2u);
  EXPECT_EQ(to_load(at(5)), at(5));
  EXPECT_EQ(counted(Counter::placed_blocks), placed);
  EXPECT_EQ(counted(Counter::loose_aliases) - aliases, 1u);
  other.run([&] {
    put(raw, 2);
    EXPECT_EQ(get(at(5)), 2u);
    put(raw, 3);
    EXPECT_EQ(to_load(at(5)), at(5)) << "by who holds it as well";
  });
  EXPECT_EQ(get(at(5)), 3u);
  EXPECT_EQ(to_load(at(5)), at(5));
  EXPECT_EQ(counted(Counter::placed_blocks) - placed, 1u);
  EXPECT_EQ(get(at(5)), 3u);
}

TEST_F(LooseBlocks, stay_where_they_are_while_the_same_thread_holds_them_at_another_site) {
  const uintptr_t raw = to_store(at(5), 0);
  ASSERT_TRUE(is_raw(raw));
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(to_load(at(5), 1), raw);
  put(raw, 3);
  EXPECT_EQ(to_load(at(5), 0), at(5)) << "a new segment: it is held no more, and was used often";
  EXPECT_EQ(get(at(5)), 3u);
}

TEST_F(LooseBlocks, are_at_their_own_addresses_where_a_range_crosses_two) {
  const uintptr_t last = at(6) - 4;
  uint64_t value = 0;
  ASSERT_EQ(engine_->reach(last, 8, 0, true), last);
  value = 0x1122334455667788;
  std::memcpy(reinterpret_cast<void*>(last), &value, sizeof value);
  // And where both are loose, of which one is held.
  Other other;
  uintptr_t raw = 0;
  other.run([&] { raw = to_load(at(10, words() - 1)); });
  ASSERT_TRUE(is_raw(raw) && is_raw(to_load(at(11))));
  ASSERT_EQ(engine_->reach(at(11) - 4, 8, 0, true), at(11) - 4);
  std::memcpy(reinterpret_cast<void*>(at(11) - 4), &value, sizeof value);
  other.run([&] { EXPECT_EQ(get(raw), (at_first(10, words() - 1) & 0xFFFFFFFF) | value << 32); });
  other.end();
  push_all_out();
  for (const uint64_t block : {6, 11}) {
    std::memcpy(&value, reinterpret_cast<void*>(at(block) - 4), sizeof value);
    EXPECT_EQ(value, 0x1122334455667788u);
    EXPECT_EQ(get(at(block, 1)), at_first(block, 1));
  }
}

// The writeback reads them where they are.
TEST_F(LooseBlocks, are_not_placed_while_they_are_written) {
  for (const uint64_t block : {5, 45, 85}) put(to_store(at(block)), block);
  let_go();
  ASSERT_TRUE(file_plan_.add("write:1+:delay:200000"));
  const uint64_t placed = counted(Counter::placed_blocks);
  std::thread flushing([&] { EXPECT_TRUE(regions_->flush(at(0), 100 * block_bytes())); });
  ASSERT_TRUE(comes([&] { return !cache_->is_dirty(id(at(5))); }));
  EXPECT_EQ(get(at(5)), 5u);
  put(at(45), 46);
  engine_->hint(at(85), true);
  for (int i = 0; i < 100; ++i) (void)to_load(at(85));
  EXPECT_EQ(counted(Counter::placed_blocks), placed);
  flushing.join();
  file_plan_.clear();
  let_go();
  for (const uint64_t block : {5, 45, 85}) EXPECT_EQ(in_store(block, 0), block);
  for (const uint64_t block : {5, 45}) EXPECT_TRUE(loses_its_alias(block));
  EXPECT_EQ(get(at(45)), 46u);
  EXPECT_EQ(to_load(at(85)), at(85));
  push_all_out();
  EXPECT_EQ(in_store(45, 0), 46u);
}

// There nobody could let an access of the kernel's wait while an alias goes.
class LooseByEvents : public LooseBlocks {
 protected:
  FaultChoice faults_by() const override { return FaultChoice::kEvents; }
  void SetUp() override {
    if (!has_userfault()) GTEST_SKIP() << "no threads serve faults of access rights";
    LooseBlocks::SetUp();
  }
};

TEST_F(LooseByEvents, there_are_none) {
  const uint64_t fills = counted(Counter::loose_fills), faults = counted(Counter::missing_faults);
  for (const uint64_t block : {5, 45, 85}) {
    EXPECT_EQ(to_load(at(block)), at(block));
    EXPECT_TRUE(has_page(block));
    EXPECT_EQ(to_store(at(block)), at(block));
    put(at(block), block);
  }
  EXPECT_EQ(counted(Counter::loose_fills), fills);
  EXPECT_EQ(counted(Counter::missing_faults), faults);
  push_all_out();
  for (const uint64_t block : {5, 45, 85}) EXPECT_EQ(get(to_load(at(block))), block);
}

// ---- Holds ----

TEST_F(LooseBlocks, are_let_go_by_sites_of_the_same_or_a_lower_number) {
  std::vector<uintptr_t> raw;
  for (uint32_t site = 0; site < 4; ++site) raw.push_back(to_store(at(5 + 40 * site), site));
  for (uint32_t site = 0; site < 4; ++site) {
    ASSERT_TRUE(is_raw(raw[site]));
    put(raw[site], site);
  }
  push_all_out_elsewhere();
  for (uint32_t site = 0; site < 4; ++site) {
    EXPECT_TRUE(is_cached(5 + 40 * site)) << site;
    put(raw[site], site + 100);
  }
  ASSERT_TRUE(is_raw(to_load(at(500), 2)));
  push_all_out_elsewhere();
  EXPECT_TRUE(is_cached(5));
  EXPECT_TRUE(is_cached(45));
  EXPECT_FALSE(is_cached(85));
  EXPECT_FALSE(is_cached(125));
  EXPECT_TRUE(is_cached(500));
  ASSERT_TRUE(is_raw(to_load(at(600), 0)));
  push_all_out_elsewhere();
  for (const uint64_t block : {5, 45, 85, 125, 500}) EXPECT_FALSE(is_cached(block)) << block;
  for (uint32_t site = 0; site < 4; ++site) EXPECT_EQ(get(to_load(at(5 + 40 * site))), site + 100);
}

TEST_F(LooseBlocks, are_kept_by_a_site_that_asks_for_what_it_held) {
  const uintptr_t raw = to_load(at(5), 3);
  ASSERT_TRUE(is_raw(raw));
  EXPECT_EQ(to_store(at(5, 1), 1), raw + 8);
  put(raw + 8, 1);
  push_all_out_elsewhere();
  ASSERT_TRUE(is_cached(5));
  put(raw + 16, 2);
  push_all_out_elsewhere();
  let_go();
  push_all_out_elsewhere();
  EXPECT_FALSE(is_cached(5));
  EXPECT_EQ(get(at(5, 1)), 1u);
  EXPECT_EQ(get(at(5, 2)), 2u);
}

TEST_F(LooseBlocks, are_let_go_by_a_thread_that_ends) {
  Other other;
  other.run([&] {
    for (uint32_t site = 0; site < SPW_REACHES_MAX; ++site) put(to_store(at(5 + 40 * site), site), site);
  });
  push_all_out();
  EXPECT_TRUE(is_cached(5));
  other.end();
  push_all_out();
  for (uint32_t site = 0; site < SPW_REACHES_MAX; ++site) {
    EXPECT_FALSE(is_cached(5 + 40 * site));
    EXPECT_EQ(get(at(5 + 40 * site)), site);
  }
}

TEST_F(LooseBlocks, leave_room_to_evict_however_many_threads_hold_them) {
  std::vector<std::unique_ptr<Other>> others;
  for (uint64_t i = 0; i < 64; ++i) {
    others.push_back(std::make_unique<Other>());
    others.back()->run([&] {
      for (uint32_t site = 0; site < SPW_REACHES_MAX; ++site)
        put(to_store(at((i * SPW_REACHES_MAX + site) * 7), site), i + site);
    });
  }
  push_all_out();
  others.clear();
  for (uint64_t i = 0; i < 64; ++i)
    for (uint32_t site = 0; site < SPW_REACHES_MAX; ++site)
      ASSERT_EQ(get(at((i * SPW_REACHES_MAX + site) * 7)), i + site);
}

}  // namespace
}  // namespace spw::access
