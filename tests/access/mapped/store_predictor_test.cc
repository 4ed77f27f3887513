#include "access/mapped/store_predictor.h"

#include <gtest/gtest.h>

namespace spw::access {
namespace {

constexpr unsigned kShift = 12;
constexpr uint64_t kAreaBlocks = StorePredictor::kAreaBytes >> kShift;

// So many load misses, of which `percent` are stored to. How many were predicted.
unsigned miss(StorePredictor& stores, uint64_t first, unsigned count, unsigned percent) {
  unsigned predicted = 0, came = 0, stored = 0;
  for (unsigned i = 0; i < count; ++i) {
    const BlockId block(first + i % kAreaBlocks);
    if (stores.predicts_store(block)) {
      ++predicted;
      continue;
    }
    stores.note_came(block);
    if (stored * 100 < ++came * percent) {
      stores.note_stored(block);
      ++stored;
    }
  }
  return predicted;
}

TEST(StorePredictorTest, nothing_is_predicted_before_enough_was_seen) {
  StorePredictor stores(kShift);
  EXPECT_EQ(miss(stores, 0, StorePredictor::kSamplesMin - 1, 100), 0u);
}

TEST(StorePredictorTest, blocks_that_are_stored_to_come_writable_but_for_samples) {
  StorePredictor stores(kShift);
  miss(stores, 0, StorePredictor::kSamplesMin, 100);
  const unsigned predicted = miss(stores, 0, 1600, 100);
  EXPECT_EQ(predicted, 1600u - 1600 / StorePredictor::kSampleEvery);
}

TEST(StorePredictorTest, blocks_that_are_only_read_come_protected) {
  StorePredictor stores(kShift);
  EXPECT_EQ(miss(stores, 0, 10'000, 0), 0u);
  EXPECT_EQ(miss(stores, 0, 10'000, 50), 0u);
}

TEST(StorePredictorTest, a_prediction_that_no_longer_holds_is_taken_back_by_its_samples) {
  StorePredictor stores(kShift);
  miss(stores, 0, 1000, 100);
  EXPECT_TRUE(miss(stores, 0, StorePredictor::kSampleEvery, 100) > 0);
  miss(stores, 0, 2 * StorePredictor::kSampleEvery * StorePredictor::kSamplesMin, 0);
  EXPECT_EQ(miss(stores, 0, 1000, 0), 0u);
}

TEST(StorePredictorTest, areas_learn_by_themselves) {
  StorePredictor stores(kShift);
  miss(stores, 0, 1000, 100);
  EXPECT_EQ(miss(stores, kAreaBlocks, 1000, 0), 0u);
  EXPECT_TRUE(stores.predicts_store(BlockId(1)) || stores.predicts_store(BlockId(1)));
}

}  // namespace
}  // namespace spw::access
