#include "store/checked_store.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "liar.h"

namespace spw::store {
namespace {

class Checked : public ::testing::Test {
 protected:
  Checked() {
    auto liar = std::make_unique<Liar>();
    liar_ = liar.get();
    store_ = std::move(*CheckedStore::around(std::move(liar)));
  }
  Status transfer(Op op, uint64_t page, Contents& contents) {
    return transfer_page(*store_, op, page, contents);
  }

  Liar* liar_;
  std::unique_ptr<Store> store_;
};

TEST_F(Checked, no_corruption_goes_by) { expect_no_corruption_goes_by(*store_, *liar_); }

class EachChecksum : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    __builtin_cpu_init();
    if (!kChecksums[GetParam()].is_there())
      GTEST_SKIP() << "this processor has no " << kChecksums[GetParam()].name;
    Rng rng(7);
    for (std::byte& byte : secret_.bytes) byte = std::byte(rng.next());
  }
  uint32_t sum(const Contents& contents) { return kChecksums[GetParam()].function(contents.bytes, secret_); }
  ChecksumSecret secret_;
};

TEST_P(EachChecksum, every_bit_counts) {
  Rng rng(8);
  for (Contents contents : {random_contents(rng), Contents{}}) {
    const uint32_t right = sum(contents);
    for (uint64_t bit = 0; bit < 8 * kUnit; ++bit) {
      contents.bytes[bit / 8] ^= std::byte(1 << bit % 8);
      ASSERT_NE(sum(contents), right) << "bit " << bit;
      contents.bytes[bit / 8] ^= std::byte(1 << bit % 8);
    }
    ASSERT_EQ(sum(contents), right);
  }
}

// All zero but for one word. By chance two of these 2,048 would be equal once in 2,000 secrets.
TEST_P(EachChecksum, pages_that_are_alike_have_other_sums) {
  std::set<uint32_t> sums;
  uint64_t pages = 0;
  for (const uint64_t word : {uint64_t{1}, uint64_t{1} << 63, ~uint64_t{0}, uint64_t{0x0101010101010101}})
    for (uint64_t at = 0; at < kUnit; at += 8, ++pages) {
      Contents contents = {};
      std::memcpy(contents.bytes + at, &word, 8);
      sums.insert(sum(contents));
    }
  EXPECT_EQ(sums.size(), pages);
}

TEST_P(EachChecksum, bits_of_sums_are_as_often_one_as_zero) {
  constexpr int kSums = 4096;
  int ones[32] = {};
  Contents contents = {};
  for (int i = 0; i < kSums; ++i) {
    std::memcpy(contents.bytes + 1000, &i, sizeof i);
    const uint32_t made = sum(contents);
    for (int bit = 0; bit < 32; ++bit) ones[bit] += made >> bit & 1;
  }
  for (const int count : ones) EXPECT_NEAR(count, kSums / 2, 6 * 32);  // six standard deviations
}

TEST_P(EachChecksum, another_secret_gives_other_sums) {
  const uint32_t before = sum(Contents{});
  for (size_t at = 0; at < kSecretBytes; at += 32) {
    secret_.bytes[at] ^= std::byte{1};
    if (at < 128) EXPECT_NE(sum(Contents{}), before) << at;
    secret_.bytes[at] ^= std::byte{1};
  }
}

INSTANTIATE_TEST_SUITE_P(ways, EachChecksum, ::testing::Range<size_t>(0, std::size(kChecksums)),
                         [](const auto& info) { return std::string(kChecksums[info.param].name); });

TEST_F(Checked, the_error_names_the_store_and_the_place) {
  Contents contents = {};
  ASSERT_TRUE(transfer(Op::kWrite, 3, contents));
  liar_->pages[3].bytes[17] = std::byte{1};
  const Status status = transfer(Op::kRead, 3, contents);
  EXPECT_EQ(status.error(), kNotAsWritten);
  EXPECT_NE(status.message().find("offset 12288 of a liar"), std::string::npos) << status.message();
}

TEST_F(Checked, what_was_never_written_or_was_discarded_is_not_compared) {
  Contents contents = {};
  liar_->pages[1].bytes[0] = std::byte{1};
  EXPECT_TRUE(transfer(Op::kRead, 1, contents));
  ASSERT_TRUE(transfer(Op::kWrite, 2, contents));
  Request request = discard_of(2 * kUnit, kUnit);
  ASSERT_TRUE(store_->transfer(request));
  liar_->pages[2].bytes[0] = std::byte{2};
  EXPECT_TRUE(transfer(Op::kRead, 2, contents));
}

TEST_F(Checked, threads_do_not_see_each_others_sums) {
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i)
    threads.emplace_back([this, i] {
      Rng rng(i);
      for (int turn = 0; turn < 500; ++turn)
        for (uint64_t page = i; page < kPages; page += 4) {
          Contents written = random_contents(rng), got;
          ASSERT_TRUE(transfer(Op::kWrite, page, written));
          ASSERT_TRUE(transfer(Op::kRead, page, got));
          ASSERT_EQ(got, written);
        }
    });
  for (std::thread& thread : threads) thread.join();
}

// A device of bytes, which takes requests of any size anywhere and does them at once.
class Bytes final : public Store {
 public:
  std::string describe() const override { return "a device of bytes"; }
  uint64_t size_bytes() const override { return sizeof bytes; }
  uint64_t alignment_bytes() const override { return 1; }
  Status reserve(uint64_t, uint64_t) override { return {}; }
  Status transfer(Request& request) override {
    std::byte* at = bytes + request.offset_bytes;
    for (const iovec& segment : segments_of(request)) {
      if (request.op == Op::kWrite) std::memcpy(at, segment.iov_base, segment.iov_len);
      if (request.op == Op::kRead) std::memcpy(segment.iov_base, at, segment.iov_len);
      at += segment.iov_len;
    }
    return {};
  }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override {
    return std::unique_ptr<IoQueue>(std::make_unique<Queue>(*this, depth));
  }

  std::byte bytes[16 * kUnit] = {};

 private:
  class Queue final : public IoQueue {
   public:
    Queue(Bytes& store, size_t depth) : store_(store), depth_(depth) {}
    size_t enqueue(std::span<Request* const> requests) override {
      const size_t taken = std::min(requests.size(), depth_ - done_.size());
      for (Request* request : requests.first(taken)) {
        EXPECT_TRUE(store_.transfer(*request));
        done_.push_back(request);
      }
      return taken;
    }
    size_t reap(std::span<Completion> out) override {
      const size_t count = std::min(out.size(), done_.size());
      for (Completion& each : out.first(count)) {
        each = {done_.back(), 0};
        done_.pop_back();
      }
      return count;
    }
    void kick() override {}
    void wait(uint64_t) override { EXPECT_FALSE(done_.empty()) << "nothing is under way"; }
    void wake() override {}
    size_t in_flight() const override { return done_.size(); }
    size_t depth() const override { return depth_; }

   private:
    Bytes& store_;
    const size_t depth_;
    std::vector<Request*> done_;
  };
};

Request piece(Op op, uint64_t offset, Buffer& buffer, uint64_t from, uint64_t bytes) {
  Request request;
  request.op = op;
  request.offset_bytes = offset;
  request.segment_count = 1;
  request.segments[0] = {buffer.data() + from, bytes};
  return request;
}

TEST(CheckedPieces, are_refused_whatever_the_device_takes_and_change_nothing) {
  auto device = std::make_unique<Bytes>();
  Bytes* const bytes = device.get();
  auto store = std::move(*CheckedStore::around(std::move(device)));
  auto queue = std::move(*store->open_queue(4));
  Buffer contents(2 * kUnit, 1), others(2 * kUnit, 2), got(2 * kUnit);
  Request whole = piece(Op::kWrite, 0, contents, 0, 2 * kUnit);
  ASSERT_TRUE(store->transfer(whole));
  std::vector<Request> requests;
  for (const Op op : {Op::kWrite, Op::kRead}) {
    requests.push_back(piece(op, 0, others, 0, 512));
    requests.push_back(piece(Op::kWrite, 8 * kUnit, contents, 0, kUnit));
    requests.push_back(piece(op, 512, others, 0, kUnit));
    requests.push_back(piece(op, kUnit, others, 512, kUnit));
    requests.push_back(piece(op, kUnit, others, 0, kUnit + 512));
    requests.push_back(piece(Op::kRead, 0, got, 0, kUnit));
  }
  std::vector<Request*> pointers;
  std::vector<int> by_transfer;
  for (Request& request : requests) {
    pointers.push_back(&request);
    by_transfer.push_back(store->transfer(request).error());
  }
  const std::vector<int> expected{EINVAL, 0, EINVAL, EINVAL, EINVAL, 0, EINVAL, 0, EINVAL, EINVAL, EINVAL, 0};
  EXPECT_EQ(by_transfer, expected);
  EXPECT_EQ(StoreTest::drive(*queue, pointers), expected);
  EXPECT_EQ(std::memcmp(bytes->bytes, contents.data(), 2 * kUnit), 0);
  EXPECT_EQ(others, Buffer(2 * kUnit, 2)) << "nothing was read";
}

// Through a real file and every engine.
class CheckedWays : public StoreTest {};

TEST_P(CheckedWays, a_wrong_read_is_done_again_and_a_wrong_write_is_found) {
  Buffer first(4 * kUnit, 1), second(4 * kUnit, 2), got(4 * kUnit);
  const auto one = [&](Request request) {
    std::vector<Request> requests{request};
    return perform(requests)[0];
  };
  ASSERT_EQ(one(transfer_of(Op::kWrite, 0, first)), 0);
  ASSERT_EQ(one(transfer_of(Op::kWrite, 4 * kUnit, second)), 0);
  for (const char* how : {"flip", "zeros", "torn", "lost", "elsewhere"}) {
    faults_.clear();
    ASSERT_TRUE(faults_.add("read:" + std::to_string(faults_.requests(Op::kRead) + 1) + ":" + how));
    const uint64_t failures =
        telemetry::total(telemetry::read_totals(), telemetry::Counter::checksum_failures);
    std::memset(got.data(), 0, got.bytes());
    EXPECT_EQ(one(transfer_of(Op::kRead, 0, got)), 0) << how;
    EXPECT_EQ(got, first) << how;
    EXPECT_EQ(telemetry::total(telemetry::read_totals(), telemetry::Counter::checksum_failures), failures + 1)
        << how;

    faults_.clear();
    ASSERT_TRUE(faults_.add("read:" + std::to_string(faults_.requests(Op::kRead) + 1) + "+:" + how));
    std::memset(got.data(), 0, got.bytes());
    EXPECT_EQ(one(transfer_of(Op::kRead, 0, got)), kNotAsWritten) << how;

    faults_.clear();
    ASSERT_TRUE(faults_.add("write:" + std::to_string(faults_.requests(Op::kWrite) + 1) + ":" + how));
    ASSERT_EQ(one(transfer_of(Op::kWrite, 8 * kUnit, second)), 0);
    EXPECT_EQ(one(transfer_of(Op::kRead, 8 * kUnit, got)), kNotAsWritten) << how;
    faults_.clear();
    ASSERT_EQ(one(transfer_of(Op::kWrite, 0, first)), 0);  // some of it went there
    ASSERT_EQ(one(transfer_of(Op::kWrite, 4 * kUnit, second)), 0);
    ASSERT_EQ(one(transfer_of(Op::kWrite, 8 * kUnit, first)), 0);
    EXPECT_EQ(one(transfer_of(Op::kRead, 8 * kUnit, got)), 0) << how;
  }
}

std::vector<Case> checked_cases() {
  std::vector<Case> all = cases({Way::kTransfer, Way::kUring, Way::kAio, Way::kThreads});
  std::erase_if(
      all, [](const Case& each) { return each.kind != Kind::kChecked && each.kind != Kind::kEncrypted; });
  return all;
}
INSTANTIATE_TEST_SUITE_P(ways, CheckedWays, ::testing::ValuesIn(checked_cases()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace spw::store
