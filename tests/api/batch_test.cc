// Batches of requests, over a memory of a quarter of the data.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "region_kit.h"

namespace spw::testing {
namespace {

class BatchTest : public RegionTest {
 protected:
  static constexpr unsigned kInFlight = 32;
  struct Read {
    spw_request request{};
    uint64_t words[kBlock / 8] = {};
    size_t block = 0;
    int times_done = 0;
  };

  void SetUp() override {
    RegionTest::SetUp();
    make_file();
    words_ = map(SPW_MAP_SHARED);
    batch_ = spw_batch_create(kInFlight);
    ASSERT_NE(batch_, nullptr) << spw_error_message();
  }
  void TearDown() override {
    spw_batch_destroy(batch_);
    EXPECT_EQ(spw_unmap(words_), 0);
    RegionTest::TearDown();
  }
  static void note_done(spw_request* request) { ++static_cast<Read*>(request->context)->times_done; }
  spw_request reading(Read& read, size_t block) {
    read.block = block;
    return {words_ + block * kBlock / 8, read.words, kBlock, SPW_READ, &note_done, &read};
  }
  static size_t wrong_words(const Read& read) {
    size_t wrong = 0;
    for (size_t i = 0; i < kBlock / 8; ++i) wrong += read.words[i] != word_of(read.block * kBlock / 8 + i);
    return wrong;
  }

  uint64_t* words_ = nullptr;
  spw_batch* batch_ = nullptr;
};

TEST_F(BatchTest, every_request_gets_its_block_and_is_done_once) {
  std::vector<Read> reads(4000);
  std::vector<spw_request> requests;
  std::mt19937 random(1);
  for (Read& read : reads) requests.push_back(reading(read, random() % (kDataBytes / kBlock)));
  for (size_t at = 0; at < requests.size(); at += 100) {
    ASSERT_EQ(spw_batch_submit(batch_, requests.data() + at, 100), 0) << spw_error_message();
    ASSERT_LE(spw_batch_in_flight(batch_), kInFlight);
  }
  spw_batch_wait(batch_, SIZE_MAX);
  EXPECT_EQ(spw_batch_in_flight(batch_), 0u);
  for (const Read& read : reads) {
    ASSERT_EQ(read.times_done, 1);
    ASSERT_EQ(wrong_words(read), 0u);
  }
}

TEST_F(BatchTest, what_is_in_memory_is_done_at_once) {
  uint64_t sum = 0;
  for (size_t block = 0; block < 64; ++block) sum += words_[block * kBlock / 8];
  EXPECT_NE(sum, 0u);
  std::vector<Read> reads(64);
  for (size_t block = 0; block < reads.size(); ++block) {
    spw_request request = reading(reads[block], block);
    ASSERT_EQ(spw_batch_submit(batch_, &request, 1), 0);
    ASSERT_EQ(reads[block].times_done, 1) << block;
  }
}

TEST_F(BatchTest, what_is_not_is_under_way_until_it_is_waited_for) {
  std::vector<Read> reads(10);
  std::vector<spw_request> requests;
  for (size_t i = 0; i < reads.size(); ++i) requests.push_back(reading(reads[i], 1000 + 500 * i));
  ASSERT_EQ(spw_batch_submit(batch_, requests.data(), requests.size()), 0);
  EXPECT_EQ(spw_batch_in_flight(batch_), reads.size());
  const size_t first = spw_batch_wait(batch_, 3);
  EXPECT_GE(first, 3u);
  EXPECT_EQ(spw_batch_in_flight(batch_), reads.size() - first);
  EXPECT_EQ(spw_batch_wait(batch_, 100), reads.size() - first);
  for (const Read& read : reads) EXPECT_EQ(wrong_words(read), 0u);
}

TEST_F(BatchTest, writes_reach_the_file) {
  uint64_t mine[3] = {1, 2, 3};
  static int done = 0;
  const auto count = [](spw_request*) { ++done; };
  // The second one crosses a block's end.
  spw_request requests[] = {{words_ + 512 * 700, mine, sizeof mine, SPW_WRITE, count, nullptr},
                            {words_ + 512 * 900 - 1, mine, sizeof mine, SPW_OVERWRITE, count, nullptr}};
  ASSERT_EQ(spw_batch_submit(batch_, requests, 2), 0);
  spw_batch_wait(batch_, 2);
  EXPECT_EQ(done, 2);
  ASSERT_EQ(spw_flush(words_, kDataBytes), 0);
  EXPECT_EQ(word_in_file(512 * 700 + 1), 2u);
  EXPECT_EQ(word_in_file(512 * 700 + 3), word_of(512 * 700 + 3));
  EXPECT_EQ(word_in_file(512 * 900 - 2), word_of(512 * 900 - 2));
  EXPECT_EQ(word_in_file(512 * 900 - 1), 1u);
  EXPECT_EQ(word_in_file(512 * 900 + 1), 3u);
}

TEST_F(BatchTest, writes_to_what_is_mapped_for_reading_are_refused) {
  uint64_t* const to_read = map(SPW_MAP_READ_ONLY);
  uint64_t word = 77;
  for (spw_access access : {SPW_WRITE, SPW_OVERWRITE}) {
    spw_request request = {to_read + 100, &word, 8, access, [](spw_request*) { FAIL(); }, nullptr};
    EXPECT_EQ(spw_batch_submit(batch_, &request, 1), -EINVAL);
    EXPECT_NE(
        std::string(spw_error_message()).find("request 0: it would write to memory that is mapped read-only"),
        std::string::npos);
    spw_pinned pin{};
    EXPECT_EQ(spw_pin(to_read + 100, 8, access, &pin), -EINVAL);
  }
  EXPECT_EQ(to_read[100], word_of(100));
  EXPECT_EQ(spw_unmap(to_read), 0);
}

// A walk: each block says which is next.
struct Walk {
  static constexpr int kSteps = 200;
  spw_batch* batch;
  const uint64_t* words;
  uint64_t word = 0;
  int steps_left = kSteps;
  uint64_t sum = 0;
  spw_request request{};
  static void step(spw_request* request) {
    Walk& walk = *static_cast<Walk*>(request->context);
    walk.sum += walk.word;
    if (--walk.steps_left == 0) return;
    walk.request.address = const_cast<uint64_t*>(walk.words + walk.word % kWords);
    EXPECT_EQ(spw_batch_submit(walk.batch, &walk.request, 1), 0);
  }
};

TEST_F(BatchTest, a_function_may_submit_the_next_request) {
  std::vector<Walk> walks(8);
  std::vector<uint64_t> expected;
  for (size_t i = 0; i < walks.size(); ++i) {
    walks[i].batch = batch_;
    walks[i].words = words_;
    walks[i].request = {words_ + i, &walks[i].word, 8, SPW_READ, &Walk::step, &walks[i]};
    uint64_t word = word_of(i), sum = 0;
    for (int step = 0; step < walks[i].steps_left; ++step, word = word_of(word % kWords)) sum += word;
    expected.push_back(sum);
  }
  for (Walk& walk : walks) ASSERT_EQ(spw_batch_submit(batch_, &walk.request, 1), 0);
  spw_batch_wait(batch_, SIZE_MAX);
  for (size_t i = 0; i < walks.size(); ++i) EXPECT_EQ(walks[i].sum, expected[i]);
}

TEST_F(BatchTest, a_long_walk_through_memory_needs_no_deep_stack) {
  Walk walk;
  walk.batch = batch_;
  walk.words = words_;
  walk.steps_left = 1'000'000;
  walk.request = {words_,
                  &walk.word,
                  8,
                  SPW_READ,
                  [](spw_request* request) {
                    Walk& here = *static_cast<Walk*>(request->context);
                    if (--here.steps_left > 0) {
                      EXPECT_EQ(spw_batch_submit(here.batch, request, 1), 0);
                      EXPECT_EQ(spw_batch_wait(here.batch, 1), 0u) << "not from here";
                    }
                  },
                  &walk};
  ASSERT_EQ(spw_batch_submit(batch_, &walk.request, 1), 0);
  EXPECT_EQ(spw_batch_wait(batch_, 3), 3u);
  EXPECT_EQ(spw_batch_in_flight(batch_), 1u);
  spw_batch_wait(batch_, SIZE_MAX);
  EXPECT_EQ(walk.steps_left, 0);
}

TEST_F(BatchTest, of_a_wrong_request_none_is_taken) {
  std::vector<Read> reads(2);
  spw_request good = reading(reads[0], 5), bad = reading(reads[1], 6);
  const auto refused = [&](spw_request wrong, const char* why) {
    spw_request both[] = {good, wrong};
    EXPECT_EQ(spw_batch_submit(batch_, both, 2), -EINVAL);
    EXPECT_NE(std::strstr(spw_error_message(), "request 1"), nullptr) << spw_error_message();
    EXPECT_NE(std::strstr(spw_error_message(), why), nullptr) << spw_error_message();
    EXPECT_EQ(reads[0].times_done, 0);
  };
  spw_request wrong = bad;
  wrong.bytes = 0;
  refused(wrong, "size");
  wrong = bad;
  wrong.done = nullptr;
  refused(wrong, "no function");
  wrong = bad;
  wrong.address = &wrong;
  refused(wrong, "not managed");
  wrong = bad;
  wrong.address = reinterpret_cast<char*>(words_) + kDataBytes - 8;
  refused(wrong, "not managed");
  EXPECT_EQ(spw_batch_create(0), nullptr);
  EXPECT_EQ(spw_batch_submit(nullptr, &good, 1), -EINVAL);
  EXPECT_EQ(spw_batch_wait(nullptr, 1), 0u);
  spw_batch_destroy(nullptr);
}

}  // namespace
}  // namespace spw::testing
