#include "durable/combining/write_combiner.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "durable/combining/size_choice.h"
#include "writes.h"

namespace spw::durable {
namespace {

CombinerOptions of(Technique technique) {
  CombinerOptions options;
  options.technique = technique;
  return options;
}

CombinerOptions fixed(uint32_t size) {
  CombinerOptions options = of(Technique::kFixed);
  options.fixed_size = size;
  return options;
}

CombinerOptions adaptive(uint64_t burst_writes) {
  CombinerOptions options;
  options.burst_writes = burst_writes;
  return options;
}

std::vector<Line> eager_model(const std::vector<Line>& trace) {
  std::vector<Line> flushed;
  for (const Line line : trace)
    if (line != kSectionEnd) flushed.push_back(line);
  return flushed;
}

std::vector<Line> lazy_model(const std::vector<Line>& trace) {
  std::vector<Line> flushed;
  std::set<Line> held;
  for (const Line line : trace) {
    if (line != kSectionEnd) {
      held.insert(line);
      continue;
    }
    flushed.insert(flushed.end(), held.begin(), held.end());
    held.clear();
  }
  return flushed;
}

std::vector<Line> table_model(const std::vector<Line>& trace) {
  std::vector<Line> flushed;
  std::map<Line, Line> held;  // by entry
  for (const Line line : trace) {
    if (line == kSectionEnd) {
      for (const auto& [entry, other] : held) flushed.push_back(other);
      held.clear();
      continue;
    }
    const auto [at, is_new] = held.emplace(line % 8, line);
    if (!is_new && at->second != line) flushed.push_back(std::exchange(at->second, line));
  }
  return flushed;
}

TEST(WriteCombiner, each_technique_flushes_what_its_model_does) {
  Rng rng(1);
  for (int round = 0; round < 60; ++round) {
    const std::vector<Line> trace = random_writes(rng, 3000, 1 + rng.below(120));
    EXPECT_EQ(flushes_of(of(Technique::kEager), trace), eager_model(trace));
    EXPECT_EQ(flushes_of(of(Technique::kLazy), trace), lazy_model(trace));
    EXPECT_EQ(flushes_of(of(Technique::kTable), trace), table_model(trace));
    EXPECT_EQ(flushes_of(of(Technique::kNone), trace), std::vector<Line>());
    for (const uint32_t size : {1u, 2u, 7u, 26u, 50u})
      EXPECT_EQ(flushes_of(fixed(size), trace), lru_model(trace, [&](size_t) { return size; })) << size;
  }
}

TEST(WriteCombiner, lazy_takes_any_number_of_lines_and_forgets_them_all) {
  std::vector<Line> trace;
  for (const uint64_t lines : {100'000u, 3u, 70u, 1u}) {
    for (uint64_t i = 0; i < 2 * lines; ++i) trace.push_back((i * 7919) % lines << 20);
    trace.push_back(kSectionEnd);
  }
  EXPECT_EQ(flushes_of(of(Technique::kLazy), trace), lazy_model(trace));
}

TEST(WriteCombiner, eager_flushes_a_store_at_the_next_call) {
  FlushLog log;
  const auto combiner = make_combiner(of(Technique::kEager), log);
  combiner->written(7);
  EXPECT_TRUE(log.lines.empty()) << "the store has not happened";
  combiner->written(7);
  EXPECT_EQ(log.lines, (std::vector<Line>{7}));
  combiner->end_section();
  EXPECT_EQ(log.lines, (std::vector<Line>{7, 7}));
  combiner->end_section();
  EXPECT_EQ(log.lines.size(), 2u);
}

// What is flushed was stored: dirty lines are clean again at each
// section's end, and none is flushed by the call that precedes its store.
class Memory final : public LineFlusher {
 public:
  void flush(Line line) override {
    EXPECT_EQ(dirty.erase(line), 1u) << "what is clean was flushed: " << line;
  }
  std::set<Line> dirty;
};

TEST(WriteCombiner, every_line_is_flushed_after_its_last_store_and_before_the_sections_end) {
  Rng rng(2);
  for (const CombinerOptions& options :
       {of(Technique::kEager), of(Technique::kLazy), of(Technique::kTable), fixed(1), fixed(13), adaptive(1),
        adaptive(500), adaptive(1 << 20)}) {
    Memory memory;
    const auto combiner = make_combiner(options, memory);
    for (const Line line : random_writes(rng, 30'000, 70)) {
      if (line == kSectionEnd) {
        combiner->end_section();
        ASSERT_TRUE(memory.dirty.empty());
        continue;
      }
      combiner->written(line);
      memory.dirty.insert(line);  // the store
      ASSERT_LE(memory.dirty.size(), combiner->size());
    }
  }
}

TEST(WriteCombiner, none_is_not_durable) {
  Memory memory;
  const auto combiner = make_combiner(of(Technique::kNone), memory);
  combiner->written(1);
  memory.dirty.insert(1);
  combiner->end_section();
  EXPECT_EQ(memory.dirty.size(), 1u);
}

TEST(WriteCombiner, of_a_persistent_array) {
  const std::vector<Line> trace = persistent_array();
  EXPECT_EQ(flushes_of(of(Technique::kEager), trace).size(), 1'000'000u);
  EXPECT_EQ(flushes_of(of(Technique::kLazy), trace).size(), 25u);
  EXPECT_EQ(flushes_of(of(Technique::kTable), trace).size(), 62'500u);
  EXPECT_EQ(flushes_of(fixed(26), trace).size(), 25u);
  EXPECT_EQ(flushes_of(fixed(24), trace).size(), 62'500u);
  EXPECT_EQ(flushes_of(of(Technique::kAdaptive), trace).size(), 62'500u)
      << "the burst is longer than the program";
  // 25 rounds at the size to start with, the rest at the one chosen.
  EXPECT_EQ(flushes_of(adaptive(10'000), trace).size(), 625u + 17u);
}

// Five stores to three lines in each section, as the paper's queue and linked list have: nothing does better than three
// flushes, and all but eager need no more.
TEST(WriteCombiner, of_short_sections) {
  std::vector<Line> trace;
  for (Line section = 0; section < 10'000; ++section) {
    for (const Line line : {3 * section, 3 * section, 3 * section + 1, 3 * section + 1, 3 * section + 2})
      trace.push_back(line);
    trace.push_back(kSectionEnd);
  }
  EXPECT_EQ(flushes_of(of(Technique::kEager), trace).size(), 50'000u);
  for (const CombinerOptions& options :
       {of(Technique::kLazy), of(Technique::kTable), adaptive(2000), adaptive(1 << 20)})
    EXPECT_EQ(flushes_of(options, trace).size(), 30'000u);
}

TEST(WriteCombiner, sections_that_share_their_lines_combine_nothing) {
  std::vector<Line> trace;
  for (int section = 0; section < 3000; ++section)
    for (const Line line : {Line{1}, Line{2}, kSectionEnd}) trace.push_back(line);
  for (const CombinerOptions& options : {of(Technique::kEager), of(Technique::kLazy), of(Technique::kTable),
                                         fixed(1), fixed(50), adaptive(100)})
    EXPECT_EQ(flushes_of(options, trace).size(), 6000u);
}

TEST(WriteCombiner, adaptive_and_profiles_see_no_reuse_across_a_sections_end) {
  const std::vector<Line> section = {1, 2, kSectionEnd};
  CombinerOptions options = adaptive(1000);
  options.profiles = true;
  FlushLog log;
  const auto combiner = make_combiner(options, log);
  for (int i = 0; i < 600; ++i) run(*combiner, section);
  EXPECT_EQ(combiner->size(), 50u)
      << "no size combines anything, so none is better; without the ends two lines would do";
  EXPECT_EQ(combiner->profiled_size(), 50u);
}

TEST(WriteCombiner, adaptive_chooses_once_after_the_burst) {
  FlushLog log;
  const auto combiner = make_combiner(adaptive(5000), log);
  const std::vector<Line> first = loop(200, 25), second = loop(500, 40);
  for (size_t i = 0; i < 4999; ++i) {
    combiner->written(first[i]);
    ASSERT_EQ(combiner->size(), 8u);
  }
  combiner->written(first[4999]);
  EXPECT_EQ(combiner->size(), 25u);
  run(*combiner, second);
  EXPECT_EQ(combiner->size(), 25u) << "it hibernates for ever";
}

TEST(WriteCombiner, adaptive_flushes_what_lru_of_its_size_does) {
  Rng rng(3);
  for (int round = 0; round < 30; ++round) {
    const std::vector<Line> trace = random_writes(rng, 5000, 1 + rng.below(60));
    FlushLog log;
    const auto combiner = make_combiner(adaptive(1 + rng.below(3000)), log);
    std::vector<uint32_t> sizes;
    for (const Line line : trace) {
      sizes.push_back(combiner->size());
      run(*combiner, {line});
      ASSERT_GE(combiner->size(), 1u);
      ASSERT_LE(combiner->size(), 50u);
    }
    sizes.push_back(combiner->size());
    EXPECT_EQ(log.lines, lru_model(trace, [&](size_t i) { return sizes[i]; }));
  }
}

TEST(WriteCombiner, adaptive_starts_within_its_limit) {
  FlushLog log;
  CombinerOptions options = adaptive(1000);
  options.size_max = 4;
  const auto combiner = make_combiner(options, log);
  EXPECT_EQ(combiner->size(), 4u);
  run(*combiner, loop(100, 25));
  EXPECT_EQ(combiner->size(), 4u);
}

TEST(WriteCombiner, a_profile_says_the_size_that_sc_offline_takes) {
  for (const Technique technique :
       {Technique::kEager, Technique::kLazy, Technique::kTable, Technique::kAdaptive, Technique::kNone}) {
    CombinerOptions options = of(technique);
    options.profiles = true;
    FlushLog log;
    const auto combiner = make_combiner(options, log);
    run(*combiner, loop(100, 25, 16));
    EXPECT_EQ(combiner->profiled_size(), 25u) << "of what was watched so far";
    run(*combiner, {kSectionEnd});
    EXPECT_EQ(combiner->profiled_size(), 25u);
    EXPECT_EQ(log.lines, flushes_of(of(technique),
                                    [] {
                                      std::vector<Line> trace = loop(100, 25, 16);
                                      trace.push_back(kSectionEnd);
                                      return trace;
                                    }()))
        << "watching changes nothing";
  }
  FlushLog log;
  EXPECT_EQ(make_combiner(of(Technique::kLazy), log)->profiled_size(), 0u);
}

TEST(WriteCombiner, sizes) {
  FlushLog log;
  EXPECT_EQ(make_combiner(of(Technique::kEager), log)->size(), 1u);
  EXPECT_EQ(make_combiner(of(Technique::kLazy), log)->size(), UINT32_MAX);
  EXPECT_EQ(make_combiner(of(Technique::kTable), log)->size(), 8u);
  EXPECT_EQ(make_combiner(fixed(26), log)->size(), 26u);
  EXPECT_EQ(make_combiner(of(Technique::kNone), log)->size(), 0u);
}

}  // namespace
}  // namespace spw::durable
