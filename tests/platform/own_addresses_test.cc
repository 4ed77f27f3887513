#include "platform/own_addresses.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "platform/memory.h"

namespace spw::platform {
namespace {

bool is_unused(uintptr_t address, uint64_t bytes) {
  void* got = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED) munmap(got, bytes);
  return got != MAP_FAILED;
}

TEST(OwnAddresses, what_the_runtime_maps_is_never_where_something_was_unmapped) {
  own_addresses().reserve();
  // The one place in which the kernel would put the next small mapping: it takes the highest that is large enough.
  constexpr uint64_t kBytes = 64 * kMmuPageBytes;
  std::vector<uintptr_t> holes;
  std::vector<void*> reserved;
  for (int i = 0; i < 8; ++i) {
    void* range = mmap(nullptr, 3 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(range, MAP_FAILED);
    reserved.push_back(range);
    holes.push_back(reinterpret_cast<uintptr_t>(range) + kBytes);
    ASSERT_EQ(munmap(reinterpret_cast<void*>(holes.back()), kBytes), 0);
  }
  std::vector<Mapping> ours;
  for (uint64_t pages = 1; pages <= 64; ++pages) {
    auto made = map_anonymous(pages * kMmuPageBytes);
    ASSERT_TRUE(made);
    made->data()[0] = std::byte{1};
    ours.push_back(std::move(*made));
    auto shared = map_shared(pages * kMmuPageBytes);
    ASSERT_TRUE(shared);
    ours.push_back(std::move(*shared));
  }
  for (uintptr_t hole : holes) EXPECT_TRUE(is_unused(hole, kBytes));
  ours.clear();
  for (uintptr_t hole : holes) EXPECT_TRUE(is_unused(hole, kBytes));
  for (void* range : reserved) munmap(range, 3 * kBytes);
}

TEST(OwnAddresses, what_is_given_back_is_reserved_still_and_without_memory) {
  own_addresses().reserve();
  auto made = map_anonymous(2 * kMmuPageBytes);
  ASSERT_TRUE(made);
  made->data()[0] = std::byte{7};
  const auto address = reinterpret_cast<uintptr_t>(made->data());
  *made = Mapping();
  EXPECT_FALSE(is_unused(address, 2 * kMmuPageBytes));
  EXPECT_FALSE(is_page_present(address));
  auto again = map_anonymous(2 * kMmuPageBytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(again->data()), address);
  EXPECT_EQ(again->data()[0], std::byte{0});
}

TEST(OwnAddresses, ranges_are_aligned_and_do_not_overlap) {
  auto addresses = std::make_unique<OwnAddresses>();
  addresses->reserve();
  Rng rng(1);
  std::map<uintptr_t, uint64_t> taken;
  for (int i = 0; i < 20000; ++i) {
    if (!taken.empty() && rng.next() % 3 == 0) {
      auto one = std::next(taken.begin(), static_cast<long>(rng.next() % taken.size()));
      ASSERT_TRUE(addresses->give_back(one->first, one->second));
      taken.erase(one);
      continue;
    }
    const uint64_t bytes = (1 + rng.next() % 300) * kMmuPageBytes,
                   alignment = kMmuPageBytes << rng.next() % 10;
    const uintptr_t address = addresses->take(bytes, alignment);
    ASSERT_NE(address, 0u);
    ASSERT_EQ(address % alignment, 0u);
    auto next = taken.lower_bound(address);
    if (next != taken.end()) ASSERT_LE(address + bytes, next->first);
    if (next != taken.begin()) ASSERT_LE(std::prev(next)->first + std::prev(next)->second, address);
    taken[address] = bytes;
  }
}

TEST(OwnAddresses, threads_do_not_take_the_same_range) {
  auto addresses = std::make_unique<OwnAddresses>();
  addresses->reserve();
  std::vector<std::thread> threads;
  for (uint64_t number = 1; number <= 4; ++number) {
    threads.emplace_back([&, number] {
      Rng rng(number);
      for (int i = 0; i < 3000; ++i) {
        const uint64_t words = (1 + rng.next() % 40) * (kMmuPageBytes / 8);
        const uintptr_t address = addresses->take(words * 8, kMmuPageBytes);
        ASSERT_NE(address, 0u);
        auto* first = reinterpret_cast<uint64_t*>(address);
        ASSERT_EQ(mprotect(first, words * 8, PROT_READ | PROT_WRITE), 0);
        ASSERT_EQ(std::count(first, first + words, 0u), static_cast<long>(words));
        std::fill_n(first, words, number);
        std::this_thread::yield();
        ASSERT_EQ(std::count(first, first + words, number), static_cast<long>(words));
        ASSERT_TRUE(addresses->give_back(address, words * 8));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(OwnAddresses, a_large_range_and_a_limited_address_space_are_left_to_the_kernel) {
  auto addresses = std::make_unique<OwnAddresses>();
  EXPECT_EQ(addresses->take(kMmuPageBytes, kMmuPageBytes), 0u) << "nothing is reserved yet";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit limited{uint64_t{1} << 46, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  addresses->reserve();
  EXPECT_EQ(addresses->take(kMmuPageBytes, kMmuPageBytes), 0u);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  addresses->reserve();
  EXPECT_NE(addresses->take(kMmuPageBytes, kMmuPageBytes), 0u);
  EXPECT_EQ(addresses->take(OwnAddresses::kMappingBytesMax + kMmuPageBytes, kMmuPageBytes), 0u);
  void* kernels = mmap(nullptr, kMmuPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(kernels, MAP_FAILED);
  EXPECT_FALSE(addresses->give_back(reinterpret_cast<uintptr_t>(kernels), kMmuPageBytes));
  munmap(kernels, kMmuPageBytes);
}

}  // namespace
}  // namespace spw::platform
