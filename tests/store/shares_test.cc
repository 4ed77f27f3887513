// Who gets the next chunk, on devices whose times are made up: nothing here waits.
#include "store/balanced/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <queue>
#include <vector>

#include "base/rng.h"
#include "base/units.h"

namespace spw::store {
namespace {

// Writes of a chunk each to devices that take `service_ns` for one, `at_once` of them at a time, the others waiting;
// give or take `noise` of it. `depth` are under way all the time.
struct Devices {
  struct Device {
    double service_ns;
    size_t at_once;
    uint64_t chunks = 0;
    std::vector<double> busy_until_ns{};
  };
  struct Write {
    double ends_ns;
    double begun_ns;
    size_t device;
    bool operator<(const Write& other) const { return ends_ns > other.ends_ns; }
  };

  explicit Devices(std::vector<Device> of) : devices(std::move(of)), shares(devices.size()) {
    for (Device& device : devices) device.busy_until_ns.assign(device.at_once, 0);
  }

  // What part of the next `chunks` each device gets.
  std::vector<double> run(size_t depth, uint64_t chunks, double noise = 0) {
    for (Device& device : devices) device.chunks = 0;
    for (uint64_t i = 0; i < chunks; ++i) {
      if (under_way.size() >= depth) end_one();
      begin_one(noise);
    }
    std::vector<double> parts;
    for (const Device& device : devices)
      parts.push_back(static_cast<double>(device.chunks) / static_cast<double>(chunks));
    return parts;
  }

  void begin_one(double noise) {
    const auto chosen = shares.choose((uint32_t{1} << devices.size()) - 1);
    ASSERT_TRUE(chosen);
    Device& device = devices[*chosen];
    ++device.chunks;
    shares.begun(*chosen);
    double& free_ns = *std::ranges::min_element(device.busy_until_ns);
    const double off = noise * (static_cast<double>(rng.below(2001)) / 1000 - 1);
    free_ns = std::max(free_ns, now_ns) + device.service_ns * (1 + off);
    under_way.push({free_ns, now_ns, *chosen});
  }
  void end_one() {
    const Write write = under_way.top();
    under_way.pop();
    now_ns = write.ends_ns;
    shares.ended(write.device, Op::kWrite, 256 * kKiB, static_cast<uint64_t>(now_ns - write.begun_ns), true);
  }

  std::vector<Device> devices;
  Shares shares;
  std::priority_queue<Write> under_way;
  double now_ns = 0;
  Rng rng{7};
};

constexpr double kUs = 1000;
constexpr size_t kMany = 64;

TEST(Shares, equal_devices_get_equal_shares_whatever_the_noise) {
  for (const size_t depth : {1, 4, 32, 128})
    for (const size_t at_once : {size_t{1}, kMany}) {
      Devices four({{100 * kUs, at_once}, {100 * kUs, at_once}, {100 * kUs, at_once}, {100 * kUs, at_once}});
      for (const double part : four.run(depth, 4000, 0.9))
        EXPECT_NEAR(part, 0.25, 0.03) << depth << " " << at_once;
    }
}

// One at a time, or as many as come: with little or much under way a device four times as slow gets a fifth.
TEST(Shares, a_slower_device_gets_less_by_as_much) {
  for (const size_t depth : {1, 2, 8, 32, 128})
    for (const size_t at_once : {size_t{1}, kMany}) {
      Devices two({{400 * kUs, at_once}, {100 * kUs, at_once}});
      two.run(depth, 500, 0.3);
      const double slow = two.run(depth, 4000, 0.3)[0];
      EXPECT_LT(slow, 0.25) << depth << " " << at_once;
      EXPECT_GT(slow, 0.1) << depth << " " << at_once;
    }
}

// Where requests wait for one another, no device waits for them: all together do what they can.
TEST(Shares, all_devices_are_busy_under_load) {
  Devices three({{1000 * kUs, 1}, {300 * kUs, 1}, {100 * kUs, 1}});
  three.run(64, 2000);
  const double begin_ns = three.now_ns;
  constexpr double kChunks = 10'000;
  three.run(64, static_cast<uint64_t>(kChunks));
  const double at_best_ns = kChunks / (1 / (1000 * kUs) + 1 / (300 * kUs) + 1 / (100 * kUs));
  EXPECT_LT(three.now_ns - begin_ns, 1.1 * at_best_ns);
}

TEST(Shares, a_device_that_was_slow_is_found_out_to_be_fast_again) {
  for (const size_t depth : {1, 32}) {
    Devices two({{100 * kUs, 1}, {100 * kUs, 1}});
    two.devices[0].service_ns = 20'000 * kUs;
    two.run(depth, 1000);
    const double slow = two.run(depth, 2000)[0];
    EXPECT_LT(slow, 0.04) << depth;
    EXPECT_GT(slow, 0) << depth << ": it would never show what it can";
    two.devices[0].service_ns = 100 * kUs;
    two.run(depth, 8000);
    EXPECT_NEAR(two.run(depth, 2000)[0], 0.5, 0.1) << depth;
  }
}

TEST(Shares, a_device_that_hangs_gets_hardly_anything_before_it_has_answered) {
  Devices two({{100 * kUs, kMany}, {100 * kUs, kMany}});
  two.run(16, 1000);
  two.devices[0].service_ns = 1e12;
  EXPECT_LT(two.run(64, 2000)[0], 0.1) << "those that are under way there";
}

TEST(Shares, kinds_and_sizes_of_requests_are_compared_with_their_own) {
  Shares shares(2);
  for (int i = 0; i < 200; ++i) {
    shares.begun(0);
    shares.ended(0, Op::kWrite, 256 * kKiB, 1'000'000, true);  // large writes here
    shares.begun(1);
    shares.ended(1, Op::kRead, 4 * kKiB, 50'000, true);  // small reads there
    shares.begun(1);
    shares.ended(1, Op::kWrite, 256 * kKiB, 1'000'000, true);
    shares.begun(0);
    shares.ended(0, Op::kRead, 4 * kKiB, 50'000, true);
    shares.begun(1);
    shares.ended(1, Op::kRead, 1024 * kKiB, 5'000'000, true);
  }
  EXPECT_NEAR(shares.slowness(0), shares.slowness(1), 0.01);
  shares.begun(0);
  shares.ended(0, Op::kRead, 4 * kKiB, 500'000'000, false);
  EXPECT_NEAR(shares.slowness(0), shares.slowness(1), 0.01) << "what fails fast, or late, says nothing";
}

TEST(Shares, only_the_eligible_are_chosen_and_full_ones_for_a_while_not) {
  Shares shares(3);
  EXPECT_FALSE(shares.choose(0));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(shares.choose(0b100), 2u);
  shares.note_full(1, 5, false);
  EXPECT_TRUE(shares.is_full(1, 5 + Shares::kFullPauseNs - 1));
  EXPECT_FALSE(shares.is_full(1, 5 + Shares::kFullPauseNs));
  EXPECT_FALSE(shares.has_no_room(1, 5));
  shares.note_full(1, 5, true);
  EXPECT_TRUE(shares.has_no_room(1, 5 + Shares::kNoRoomPauseNs - 1));
  EXPECT_FALSE(shares.has_no_room(1, 5 + Shares::kNoRoomPauseNs));
}

}  // namespace
}  // namespace spw::store
