#include "store/compressed_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "liar.h"
#include "store/compression_probe.h"
#include "store/memory_store.h"

namespace spw::store {
namespace {

using telemetry::Counter;

// What a page may be filled with.
enum class Filling : uint8_t { kZeros, kText, kNoise };

Contents contents_of(Filling filling, uint64_t salt) {
  Rng rng(salt * 3 + 1);
  if (filling == Filling::kNoise) return random_contents(rng);
  Contents made = {};
  if (filling == Filling::kText)
    for (uint64_t at = 0; at < kUnit; ++at)
      made.bytes[at] = std::byte('a' + (at % 16 < 12 ? at % 16 : rng.below(16)));
  return made;
}

class Compressed : public ::testing::TestWithParam<Compression> {
 protected:
  static constexpr uint64_t kStoreBytes = 16 * kMiB;
  static constexpr uint64_t kStorePages = kStoreBytes / kUnit;

  void SetUp() override { open(kMiB); }
  void open(uint64_t budget_bytes) {
    store_.reset();
    auto codec = PageCodec::load(GetParam());
    if (!codec && codec.status().error() == ENOPKG) GTEST_SKIP() << codec.status().message();
    ASSERT_TRUE(codec) << codec.status().message();
    memory_ = std::make_unique<CompressedMemory>(std::move(*codec), budget_bytes);
    auto device = MemoryStore::create(kStoreBytes, &faults_);
    ASSERT_TRUE(device);
    device_ = device->get();
    auto store = CompressedStore::around(std::move(*device), *memory_);
    ASSERT_TRUE(store) << store.status().message();
    store_ = std::move(*store);
  }
  Status transfer(Op op, uint64_t page, Contents& contents) {
    return transfer_page(*store_, op, page, contents);
  }
  static uint64_t counted(Counter counter) { return telemetry::read_totals()[static_cast<size_t>(counter)]; }

  FaultPlan faults_;
  std::unique_ptr<CompressedMemory> memory_;
  Store* device_ = nullptr;
  std::unique_ptr<Store> store_;
};

TEST_P(Compressed, what_compresses_stays_in_memory_and_reads_as_it_was) {
  const uint64_t writes = counted(Counter::store_writes);
  for (const Filling filling : {Filling::kText, Filling::kZeros}) {
    Contents written = contents_of(filling, 1), got = contents_of(Filling::kNoise, 2);
    ASSERT_TRUE(transfer(Op::kWrite, 5, written));
    ASSERT_TRUE(transfer(Op::kRead, 5, got));
    EXPECT_EQ(got, written);
  }
  EXPECT_EQ(counted(Counter::store_writes), writes) << "the device was written to";
}

TEST_P(Compressed, what_does_not_compress_goes_to_the_device) {
  Contents written = contents_of(Filling::kNoise, 1), got;
  ASSERT_TRUE(transfer(Op::kWrite, 5, written));
  ASSERT_TRUE(transfer_page(*device_, Op::kRead, 5, got));
  EXPECT_EQ(got, written);
  ASSERT_TRUE(transfer(Op::kRead, 5, got));
  EXPECT_EQ(got, written);
}

TEST_P(Compressed, newer_contents_take_the_place_of_older_ones_wherever_either_is) {
  for (const Filling first : {Filling::kZeros, Filling::kText, Filling::kNoise})
    for (const Filling second : {Filling::kZeros, Filling::kText, Filling::kNoise}) {
      Contents older = contents_of(first, 1), newer = contents_of(second, 2), got;
      ASSERT_TRUE(transfer(Op::kWrite, 7, older));
      ASSERT_TRUE(transfer(Op::kWrite, 7, newer));
      ASSERT_TRUE(transfer(Op::kRead, 7, got));
      EXPECT_EQ(got, newer);
    }
}

TEST_P(Compressed, with_less_of_a_budget_the_rest_goes_to_the_device) {
  for (uint64_t page = 0; page < 512; ++page) {
    Contents text = contents_of(Filling::kText, page);
    ASSERT_TRUE(transfer(Op::kWrite, page, text));
  }
  const uint64_t held = memory_->budget.bytes.load_relaxed();
  memory_->budget.bytes_max.store_relaxed(held / 4);
  for (int round = 0; round < 100 && memory_->budget.bytes.load_relaxed() > held / 4; ++round)
    memory_->evict_to_budget();
  EXPECT_LE(memory_->budget.bytes.load_relaxed(), held / 4);
  EXPECT_GE(memory_->budget.bytes_peak.load_relaxed(), held);
  (void)memory_->take_device_reads();
  for (uint64_t page = 0; page < 512; ++page) {
    Contents got;
    ASSERT_TRUE(transfer(Op::kRead, page, got));
    ASSERT_EQ(got, contents_of(Filling::kText, page));
  }
  const auto reads = memory_->take_device_reads();
  EXPECT_GT(reads.pages, 100);
  EXPECT_GT(reads.ns, 0);
  EXPECT_EQ(memory_->take_device_reads().pages, 0);
}

TEST_P(Compressed, without_a_budget_some_are_tried_and_none_kept) {
  memory_->budget.bytes_max.store_relaxed(0);
  for (uint64_t page = 0; page < 620; ++page) {
    Contents text = contents_of(Filling::kText, page);
    ASSERT_TRUE(transfer(Op::kWrite, page, text));
  }
  const auto totals = memory_->codec->totals();
  EXPECT_EQ(totals.tried, 20u);
  EXPECT_EQ(totals.fitted, 20u);
  EXPECT_GT(totals.fitted_bytes, 0u);
  EXPECT_LT(totals.fitted_bytes, 20 * kUnit / 2);
  EXPECT_EQ(memory_->budget.bytes.load_relaxed(), 0u);
}

TEST_P(Compressed, noise_is_hardly_tried_after_a_while) {
  const uint64_t misfits = counted(Counter::compression_misfits);
  for (uint64_t page = 0; page < 512; ++page) {
    Contents noise = contents_of(Filling::kNoise, page);
    ASSERT_TRUE(transfer(Op::kWrite, page, noise));
  }
  EXPECT_EQ(counted(Counter::compression_misfits) - misfits, 512u);
  EXPECT_LT(memory_->codec->totals().tried, 60u);
  for (uint64_t page = 0; page < 64; ++page) {
    Contents text = contents_of(Filling::kText, page);
    ASSERT_TRUE(transfer(Op::kWrite, page, text));
  }
  const uint64_t kept = counted(Counter::compressed_pages);
  Contents text = contents_of(Filling::kText, 1);
  ASSERT_TRUE(transfer(Op::kWrite, 65, text));
  EXPECT_EQ(counted(Counter::compressed_pages), kept + 1) << "a probe finds that it compresses again";
}

TEST_P(Compressed, requests_that_are_not_of_whole_pages_are_refused) {
  Contents contents = {};
  Request request;
  request.op = Op::kWrite;
  request.segment_count = 1;
  request.segments[0] = {contents.bytes + 8, kUnit};
  EXPECT_EQ(store_->transfer(request).error(), EINVAL);
}

// Requests of several pages, some of which compress, against a model; twenty times what fits into memory.
class CompressedModel : public Compressed {
 protected:
  struct Job {
    Request request;
    std::vector<Contents> pages;
  };
  static constexpr uint64_t kPagesMax = 24;

  // Of pages p with p % parts == part, in groups of kPagesMax.
  void run(uint64_t seed, uint64_t rounds, uint64_t part, uint64_t parts) {
    Rng rng(seed);
    auto queue = store_->open_queue(8);
    ASSERT_TRUE(queue);
    std::map<uint64_t, std::pair<Filling, uint64_t>> model;
    std::vector<Contents> pages(kPagesMax);
    for (uint64_t round = 0; round < rounds; ++round) {
      const uint64_t count = 1 + rng.below(kPagesMax);
      const uint64_t area = rng.below(kStorePages / kPagesMax / parts) * parts + part;
      const uint64_t first = area * kPagesMax + rng.below(kPagesMax - count + 1);
      Request request;
      request.op = rng.below(10) == 0 ? Op::kDiscard : rng.below(2) == 0 ? Op::kWrite : Op::kRead;
      request.offset_bytes = first * kUnit;
      request.discard_bytes = count * kUnit;
      request.segment_count = 1 + static_cast<uint32_t>(count > 1);
      request.segments[0] = {pages[0].bytes, (count > 1 ? count / 2 : count) * kUnit};
      if (count > 1) request.segments[1] = {pages[count / 2].bytes, (count - count / 2) * kUnit};
      for (uint64_t i = 0; i < count; ++i) {
        if (request.op == Op::kDiscard) model.erase(first + i);
        if (request.op != Op::kWrite) continue;
        const auto filling = static_cast<Filling>(rng.below(8) < 6 ? 1 : rng.below(2) * 2);
        model[first + i] = {filling, rng.next() % 64};
        pages[i] = contents_of(filling, model[first + i].second);
      }
      const uint64_t error = perform(**queue, request, rng.below(2) == 0);
      ASSERT_EQ(error, 0u);
      if (request.op != Op::kRead) continue;
      for (uint64_t i = 0; i < count; ++i) {
        const auto known = model.find(first + i);
        const Contents right =
            known == model.end() ? Contents{} : contents_of(known->second.first, known->second.second);
        ASSERT_EQ(pages[i], right) << "page " << first + i << " in round " << round;
      }
    }
  }
  uint64_t perform(IoQueue& queue, Request& request, bool is_queued) {
    if (!is_queued) return static_cast<uint64_t>(store_->transfer(request).error());
    Request* const one[] = {&request};
    EXPECT_EQ(queue.submit(one), 1u);
    Completion done;
    while (queue.reap({&done, 1}) == 0) queue.wait(UINT64_MAX);
    EXPECT_EQ(done.request, &request);
    EXPECT_EQ(queue.in_flight(), 0u);
    return static_cast<uint64_t>(done.error);
  }
};

TEST_P(CompressedModel, what_is_read_is_what_was_written) {
  const uint64_t evictions = counted(Counter::compressed_evictions);
  run(1, 8000 / SPW_SLOWED, 0, 1);
  EXPECT_GT(counted(Counter::compressed_evictions) - evictions, 100u) << "memory was never short";
  EXPECT_LE(memory_->budget.bytes.load_relaxed(),
            memory_->budget.bytes_max.load_relaxed() + 4 * ObjectPool::kSlabBytes);
}

TEST_P(CompressedModel, by_threads_too) {
  std::vector<std::thread> threads;
  for (uint64_t part = 0; part < 4; ++part)
    threads.emplace_back([this, part] { run(part + 10, 2000 / SPW_SLOWED, part, 4); });
  for (std::thread& each : threads) each.join();
}

// As threads do that share a partition: one at a time submits or reaps, and kicks when it is no longer the one. Who
// waits for ever hangs where an end is not told.
TEST_P(CompressedModel, whoever_kicks_does_so_beside_others) {
  constexpr uint64_t kThreads = 3, kRequestsEach = 3000 / SPW_SLOWED, kPagesEach = 4;
  auto queue = store_->open_queue(8);
  ASSERT_TRUE(queue);
  std::mutex baton;
  const auto contents_at = [](uint64_t thread, uint64_t number) {
    return contents_of(number % 8 == 0 ? Filling::kNoise : Filling::kText, number * kThreads + thread);
  };
  const auto first_of = [](uint64_t thread, uint64_t number) {
    return (number % 300 * kThreads + thread) * kPagesEach;
  };
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      std::vector<Contents> pages(kPagesEach);
      for (uint64_t number = 0; number < kRequestsEach; ++number) {
        for (Contents& page : pages) page = contents_at(thread, number);
        Atomic<bool> is_done{false};
        Request request;
        request.op = Op::kWrite;
        request.user = &is_done;
        request.offset_bytes = first_of(thread, number) * kUnit;
        request.segment_count = 1;
        request.segments[0] = {pages[0].bytes, kPagesEach * kUnit};
        Request* const one[] = {&request};
        {
          std::lock_guard lock(baton);
          ASSERT_EQ((*queue)->enqueue(one), 1u);
        }
        (*queue)->kick();
        while (!is_done.load_acquire()) std::this_thread::yield();
      }
    });
  for (uint64_t left = kThreads * kRequestsEach; left > 0;) {
    Completion done[4];
    size_t count = 0;
    {
      std::lock_guard lock(baton);
      count = (*queue)->reap(done);
    }
    for (const Completion& each : std::span(done).first(count)) {
      EXPECT_EQ(each.error, 0);
      static_cast<Atomic<bool>*>(each.request->user)->store_release(true);
    }
    left -= count;
    if (count == 0) (*queue)->wait(UINT64_MAX);
  }
  for (std::thread& each : threads) each.join();
  for (uint64_t thread = 0; thread < kThreads; ++thread)
    for (uint64_t number = kRequestsEach - std::min<uint64_t>(kRequestsEach, 300); number < kRequestsEach;
         ++number)
      for (uint64_t page = 0; page < kPagesEach; ++page) {
        Contents got;
        ASSERT_TRUE(transfer(Op::kRead, first_of(thread, number) + page, got));
        ASSERT_EQ(got, contents_at(thread, number)) << number << " of " << thread;
      }
}

TEST_P(CompressedModel, evictions_that_fail_lose_nothing) {
  ASSERT_TRUE(faults_.add("write:1:EIO:x200"));
  std::vector<Contents> pages;
  auto queue = store_->open_queue(8);
  ASSERT_TRUE(queue);
  uint64_t failed = 0;
  std::map<uint64_t, uint64_t> written;
  for (uint64_t page = 0; page < kStorePages / 2; ++page) {
    Contents text = contents_of(Filling::kText, page);
    Request request;
    request.op = Op::kWrite;
    request.offset_bytes = page * kUnit;
    request.segment_count = 1;
    request.segments[0] = {text.bytes, kUnit};
    if (perform(**queue, request, true) == 0)
      written[page] = page;
    else
      ++failed;
  }
  queue->reset();
  EXPECT_GT(written.size(), 500u);
  for (const auto& [page, salt] : written) {
    Contents got;
    ASSERT_TRUE(transfer(Op::kRead, page, got));
    ASSERT_EQ(got, contents_of(Filling::kText, salt)) << page << ", beside " << failed << " that failed";
  }
}

TEST_P(CompressedModel, a_forked_child_has_a_copy) {
  for (uint64_t page = 0; page < 300; ++page) {
    Contents text = contents_of(Filling::kText, page);
    ASSERT_TRUE(transfer(Op::kWrite, page, text));
  }
  store_->lock_for_fork();
  const pid_t child = ::fork();
  if (child == 0) {
    store_->in_child();
    bool is_right = true;
    for (uint64_t page = 0; page < 300; ++page) {
      Contents got;
      is_right =
          is_right && transfer(Op::kRead, page, got).error() == 0 && got == contents_of(Filling::kText, page);
    }
    ::_exit(is_right ? 0 : 1);
  }
  store_->unlock_after_fork();
  Contents newer = contents_of(Filling::kText, 1000);
  ASSERT_TRUE(transfer(Op::kWrite, 3, newer));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

constexpr auto kName = [](const auto& info) { return info.param == Compression::kLz4 ? "lz4" : "zstd"; };
INSTANTIATE_TEST_SUITE_P(By, Compressed, ::testing::Values(Compression::kLz4, Compression::kZstd), kName);
INSTANTIATE_TEST_SUITE_P(By, CompressedModel, ::testing::Values(Compression::kLz4, Compression::kZstd),
                         kName);

TEST(ObjectPool, gives_back_slabs_of_which_nothing_is_used) {
  PoolBudget budget(kMiB);
  auto pool = ObjectPool::create(budget);
  ASSERT_TRUE(pool);
  std::vector<ObjectPool::Place> places;
  Rng rng(1);
  for (uint64_t page = 0;; ++page) {
    const auto place = (*pool)->take(1 + rng.below(ObjectPool::kObjectBytesMax), page);
    if (!place) break;
    std::memset((*pool)->contents(*place), static_cast<int>(page), 1);
    places.push_back(*place);
  }
  (*pool)->check_invariants();
  EXPECT_EQ(budget.bytes.load_relaxed(), kMiB);
  EXPECT_TRUE((*pool)->take(kUnit, 0, true)) << "what has to be kept is";
  for (uint64_t page = 0; page < places.size(); ++page)
    EXPECT_EQ(*(*pool)->contents(places[page]), std::byte(page)) << page;
  for (const auto place : places) (*pool)->give_back(place);
  (*pool)->check_invariants();
  EXPECT_EQ(budget.bytes.load_relaxed(), ObjectPool::kSlabBytes);
}

TEST(ObjectPool, takes_what_others_leave_and_no_more) {
  struct Others final : SharesMemory {
    uint64_t left_bytes() const override { return left; }
    uint64_t left = kMiB / 2;
  } others;
  PoolBudget budget(kMiB);
  budget.others.store_release(&others);
  auto pool = ObjectPool::create(budget);
  ASSERT_TRUE(pool);
  const auto fill = [&] {
    while ((*pool)->take(ObjectPool::kObjectBytesMax, 0)) {
    }
    return budget.bytes.load_relaxed();
  };
  EXPECT_EQ(fill(), kMiB / 2);
  others.left = 3 * kMiB / 4;
  EXPECT_EQ(fill(), 3 * kMiB / 4);
  others.left = 2 * kMiB;
  EXPECT_EQ(fill(), kMiB);
}

// ---- A look at some pages ----

TEST(CompressionProbe, finds_what_compressing_would_come_to_and_changes_nothing) {
  auto codec = PageCodec::load(Compression::kLz4);
  if (!codec) GTEST_SKIP() << codec.status().message();
  ProbedPages found(std::move(*codec));
  constexpr uint64_t kPages = 4096;
  auto device = MemoryStore::create(kPages * kUnit, nullptr);
  ASSERT_TRUE(device);
  auto store = CompressionProbe::around(std::move(*device), found);
  auto queue = store->open_queue(4);
  ASSERT_TRUE(queue);
  const auto filling_of = [](uint64_t page) { return page % 4 == 0 ? Filling::kNoise : Filling::kText; };
  for (uint64_t page = 0; page < kPages; ++page) {
    Contents written = contents_of(filling_of(page), page);
    if (page % 2 == 0) {
      ASSERT_TRUE(transfer_page(*store, Op::kWrite, page, written));
      continue;
    }
    Request request = page_request(Op::kWrite, page, written);
    Request* const one[] = {&request};
    ASSERT_EQ((*queue)->submit(one), 1u);
    Completion done[1];
    while ((*queue)->reap(done) == 0) (*queue)->wait(UINT64_MAX);
    ASSERT_EQ(done[0].error, 0);
  }
  for (uint64_t page = 0; page < kPages; ++page) {
    Contents got;
    ASSERT_TRUE(transfer_page(*store, Op::kRead, page, got));
    ASSERT_EQ(got, contents_of(filling_of(page), page)) << page;
  }
  const auto totals = found.codec->totals();
  const auto looked_at = static_cast<double>(totals.tried);
  EXPECT_NEAR(looked_at, kPages / ProbedPages::kEvery, kPages / ProbedPages::kEvery / 3);
  EXPECT_NEAR(static_cast<double>(totals.fitted) / looked_at, 0.75, 0.15);
  EXPECT_LT(totals.fitted_bytes, totals.fitted * kUnit / 2);
  EXPECT_GT(found.open_ns.load_relaxed(), 0u);
}

}  // namespace
}  // namespace spw::store
