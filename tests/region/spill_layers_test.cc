#include "region/spill_layers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "fakes.h"

namespace spw::region {
namespace {

constexpr unsigned kShift = 12;
constexpr uint64_t kBlocks = 1 << 16;
using testing::FakeStore;

// Layers whose stores are counted, and forks of them: a child lives until end_child(), for the locks' sake as a
// process.
struct SpillLayersTest : ::testing::Test {
  SpillLayersTest() : layers(first, kShift) {
    EXPECT_TRUE(layers.allocate(memory, kBlocks).is_ok());
    layers.prepare({[this]() -> Result<std::unique_ptr<store::Store>> {
                      auto made = std::make_unique<FakeStore>(kBlocks << kShift);
                      opened.push_back(made.get());
                      return std::unique_ptr<store::Store>(std::move(made));
                    },
                    [](const Status& status) { FAIL() << status.message(); }});
    EXPECT_TRUE(live.allocate(memory, kBlocks).is_ok());
    live.set_range(0, kBlocks);
    EXPECT_EQ(::pipe(to_child), 0);
  }
  ~SpillLayersTest() override {
    end_child();
    layers.check_invariants();
  }
  store::Store* write(uint64_t block) {
    const cache::Backing place = layers.place_for(BlockId(block));
    EXPECT_EQ(place.offset_bytes, block << kShift);
    layers.written_back(BlockId(block), place.store);
    return place.store;
  }
  store::Store* where(uint64_t block) {
    const cache::Backing found = layers.find(BlockId(block));
    return found.has_contents ? found.store : nullptr;
  }
  // `body` runs in the child, which fails with what EXPECT says there.
  void fork(const std::function<void()>& body = [] {}) {
    layers.lock_for_fork();
    child = ::fork();
    if (child == 0) {
      layers.in_child();
      body();
      char byte;
      (void)!::read(to_child[0], &byte, 1);
      ::_exit(HasFailure() ? 1 : 0);
    }
    layers.unlock_after_fork();
  }
  // Nothing is being written.
  void look() {
    std::vector<std::unique_ptr<store::Store>> closed;
    if (layers.expect_quiet()) layers.look(&closed);
  }
  void end_child() {
    if (child == 0) return;
    int status = 0;
    EXPECT_EQ(::write(to_child[1], "x", 1), 1);
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    child = 0;
  }

  FakeStore first{kBlocks << kShift};
  std::vector<FakeStore*> opened;
  NativeMemory memory;
  SparseBits live;
  SpillLayers layers;
  int to_child[2];
  pid_t child = 0;
};

TEST_F(SpillLayersTest, without_a_fork_there_is_one_store) {
  EXPECT_EQ(where(7), nullptr);
  EXPECT_EQ(write(7), &first);
  EXPECT_EQ(where(7), &first);
  layers.forget(BlockId(7), 1, live);
  EXPECT_EQ(where(7), nullptr);
  EXPECT_EQ(layers.count(), 1u);
}

TEST_F(SpillLayersTest, what_is_written_after_a_fork_goes_elsewhere_on_both_sides) {
  write(7);
  write(8);
  fork([this] {
    EXPECT_EQ(where(7), &first);
    EXPECT_EQ(where(8), &first);
    store::Store* const own = write(7);
    EXPECT_NE(own, &first);
    EXPECT_EQ(where(7), own);
    EXPECT_EQ(where(8), &first);
  });
  store::Store* const own = write(8);
  EXPECT_NE(own, &first);
  EXPECT_EQ(where(7), &first);
  EXPECT_EQ(where(8), own);
  EXPECT_EQ(first.discards, 0u);
}

TEST_F(SpillLayersTest, what_is_freed_after_a_fork_is_given_back_when_nobody_else_reads_it) {
  write(7);
  write(8);
  fork();
  layers.forget(BlockId(7), 1, live);
  layers.flush_holes();
  write(8);
  EXPECT_EQ(first.discards, 0u);
  end_child();
  look();
  EXPECT_EQ(first.discarded_bytes, 2u << kShift);
  EXPECT_EQ(where(7), nullptr);
  EXPECT_EQ(where(8), opened[0]);
}

TEST_F(SpillLayersTest, a_layer_that_is_alone_again_is_written_to) {
  write(7);
  fork();
  EXPECT_NE(write(8), &first);
  end_child();
  look();
  EXPECT_EQ(write(8), &first);
  EXPECT_EQ(where(8), &first);
  EXPECT_EQ(write(9), &first);
}

TEST_F(SpillLayersTest, a_child_that_writes_nothing_costs_no_layer) {
  write(7);
  fork();
  end_child();
  EXPECT_EQ(write(7), &first);
  EXPECT_EQ(layers.count(), 1u);
}

TEST_F(SpillLayersTest, what_was_freed_before_a_fork_costs_no_layer) {
  write(7);
  write(8);
  layers.forget(BlockId(7), 1, live);
  layers.flush_holes();
  fork();
  end_child();
  EXPECT_EQ(write(8), &first);
  EXPECT_EQ(layers.count(), 1u);
}

TEST_F(SpillLayersTest, a_layer_without_contents_stays_its_parents) {
  fork([this] { EXPECT_NE(write(7), &first); });
  EXPECT_EQ(write(7), &first);
  EXPECT_EQ(layers.count(), 1u);
}

TEST_F(SpillLayersTest, a_write_that_was_under_way_at_a_fork_is_where_it_was_begun) {
  write(6);
  const cache::Backing begun = layers.place_for(BlockId(7));
  fork([this] { EXPECT_EQ(where(7), nullptr); });
  layers.written_back(BlockId(7), begun.store);
  EXPECT_EQ(where(7), &first);
  EXPECT_NE(write(7), &first);
}

TEST_F(SpillLayersTest, a_child_takes_over_what_its_parent_has_given_up) {
  write(7);
  write(8);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  fork([&] {
    char byte;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    look();
    EXPECT_NE(write(7), &first);
  });
  EXPECT_EQ(::write(ready[1], "x", 1), 1);
  end_child();
}

TEST_F(SpillLayersTest, many_forks_whose_children_end_make_no_chain) {
  for (uint64_t round = 0; round < 200; ++round) {
    for (uint64_t block = 0; block < 50; ++block) write((round * 37 + block) % 500);
    fork();
    for (uint64_t block = 0; block < 20; ++block) write((round * 11 + block) % 500);
    end_child();
    look();
    // As the engine does it, by way of the cache.
    while (layers.count() > SpillLayers::kLayersWanted) {
      const auto runs = layers.to_be_moved(64);
      for (const cache::BlockRun& run : runs)
        for (uint64_t i = 0; i < run.count; ++i) write(run.first.value + i);
      if (runs.empty()) break;
    }
    layers.check_invariants();
    ASSERT_LE(layers.count(), SpillLayers::kLayersMax);
    for (uint64_t block = 0; block < 500 && round > 50; ++block) ASSERT_NE(where(block), nullptr);
  }
}

}  // namespace
}  // namespace spw::region
