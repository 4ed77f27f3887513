// A balanced store for tests, of members that can be made to fail or to be slow.
#pragma once

#include "store/balanced_store.h"
#include "store_fixture.h"

namespace spw::store {

class BalancedFixture : public ::testing::Test {
 protected:
  static constexpr uint64_t kChunk = 16 * kKiB;
  static constexpr size_t kDepth = 16;

  void SetUp() override { directory_ = make_scratch_directory(); }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  // Members in memory of so many chunks, with the faults that `faults_` has for each.
  void create(std::vector<uint64_t> chunks, const std::vector<uint32_t>& tiers = {}) {
    std::vector<std::unique_ptr<Store>> members;
    for (size_t i = 0; i < chunks.size(); ++i) {
      auto member = MemoryStore::create(chunks[i] * kChunk, &faults_[i]);
      ASSERT_TRUE(member) << member.status().message();
      members.push_back(std::move(*member));
    }
    adopt(std::move(members), tiers);
  }
  // Spill files, whose queues a queue of the store's sleeps at itself (striped/direct_parts.h).
  void create_spill(size_t count, uint64_t chunks = kMiB / kChunk, const std::vector<uint32_t>& tiers = {}) {
    std::vector<std::unique_ptr<Store>> members;
    for (size_t i = 0; i < count; ++i) {
      auto member = FileStore::open_spill(directory_, {.faults = &faults_[i]}, chunks * kChunk);
      ASSERT_TRUE(member) << member.status().message();
      members.push_back(std::move(*member));
    }
    adopt(std::move(members), tiers);
  }
  void adopt(std::vector<std::unique_ptr<Store>> members, const std::vector<uint32_t>& tiers = {}) {
    for (const auto& member : members) members_.push_back(member.get());
    auto store = BalancedStore::create(std::move(members), kChunk, nullptr, tiers);
    ASSERT_TRUE(store) << store.status().message();
    store_ = std::move(*store);
  }

  int perform(Request request) { return store_->transfer(request).error(); }
  int write(uint64_t chunk) {
    return perform(transfer_of(Op::kWrite, chunk * kChunk, Buffer(kChunk, chunk + 1)));
  }
  bool is_as_written(uint64_t chunk) {
    Buffer read(kChunk);
    return perform(transfer_of(Op::kRead, chunk * kChunk, read)) == 0 && read == Buffer(kChunk, chunk + 1);
  }
  bool is_zero(uint64_t chunk) {
    Buffer read(kChunk);
    return perform(transfer_of(Op::kRead, chunk * kChunk, read)) == 0 && read.is_zero();
  }
  // Writes chunks [begin, end), kDepth at a time, and says what part of them the first member got.
  double first_ones_share(uint64_t begin, uint64_t end) {
    auto queue = store_->open_queue(kDepth);
    EXPECT_TRUE(queue);
    const uint64_t before = store_->chunks_of(0);
    Buffer buffer(kChunk, 1);
    std::vector<Request> requests;
    std::vector<Request*> pointers;
    for (uint64_t chunk = begin; chunk < end; ++chunk)
      requests.push_back(transfer_of(Op::kWrite, chunk * kChunk, buffer));
    for (Request& request : requests) pointers.push_back(&request);
    for (int error : StoreTest::drive(**queue, pointers)) EXPECT_EQ(error, 0);
    return static_cast<double>(store_->chunks_of(0) - before) / static_cast<double>(end - begin);
  }
  uint64_t assigned() const {
    uint64_t chunks = 0;
    for (size_t i = 0; i < members_.size(); ++i) chunks += store_->chunks_of(i);
    return chunks;
  }

  // Reads the chunk `times` times, one each tick in which uses are counted, and waits until `is_so` holds.
  void use(uint64_t chunk, unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
      EXPECT_TRUE(is_as_written(chunk));
      platform::sleep_ns(Heat::kTickNs);
    }
  }
  template <class IsSo>
  bool comes(IsSo is_so) {
    const uint64_t end_ns = platform::monotonic_ns() + 10'000'000'000;
    while (!is_so() && platform::monotonic_ns() < end_ns) platform::sleep_ns(1'000'000);
    return is_so();
  }

  std::string directory_;
  FaultPlan faults_[kStripedMembersMax];
  std::vector<Store*> members_;
  std::unique_ptr<BalancedStore> store_;
};

}  // namespace spw::store
