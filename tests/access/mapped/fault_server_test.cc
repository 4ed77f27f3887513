#include "access/mapped/fault_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "../../thread_states.h"
#include "base/atomic.h"
#include "base/check.h"
#include "base/units.h"
#include "platform/futex.h"
#include "platform/memory.h"

namespace spw::access {
namespace {

// Those of the program sleep in a fault, those of the server for work.
using tests::wait_until_others_sleep;

using platform::FaultEvent;

// What every page is served with.
constexpr std::byte kServed{0x5a};

// A door that threads wait at until it is opened.
class Gate {
 public:
  void pass() {
    arrived_.fetch_add(1);
    while (open_.load_acquire() == 0) platform::futex_wait(open_, 0);
  }
  void open() {
    open_.store_release(1);  // pairs with the acquire in pass()
    platform::futex_wake_all(open_);
  }
  void wait_for(unsigned threads) const {
    while (arrived_.load() < threads) std::this_thread::yield();
  }
  unsigned arrived() const { return arrived_.load(); }

 private:
  Atomic<uint32_t> open_{0};
  std::atomic<unsigned> arrived_{0};
};

// A poller that begins nothing.
class NoReads : public FaultReads {
 public:
  explicit NoReads(FaultServer::Serve serve) : serve_(std::move(serve)) {}
  size_t room() const override { return 64; }
  size_t in_flight() const override { return 0; }
  bool begin(const FaultEvent&) override { return false; }
  void start() override {}
  size_t end_some() override { return 0; }
  uint64_t sleep(std::vector<int>*) override { return UINT64_MAX; }
  bool serve(const FaultEvent& event) override {
    serve_(event);
    return true;
  }

 private:
  const FaultServer::Serve serve_;
};

// Reads that are done when the test says so.
class HeldReads final : public FaultReads {
 public:
  struct Watched {
    std::atomic<bool> are_done{false};
    std::atomic<size_t> begun{0}, begun_at_first_start{0}, most{0}, ended{0};
  };
  HeldReads(Watched& watched, size_t room, FaultServer::Serve serve)
      : watched_(watched), places_(room), serve_(std::move(serve)) {}
  size_t room() const override { return places_ - held_.size(); }
  size_t in_flight() const override { return held_.size(); }
  bool begin(const FaultEvent& event) override {
    held_.push_back(event);
    ++watched_.begun;
    watched_.most = std::max(watched_.most.load(), held_.size());
    return true;
  }
  void start() override {
    if (watched_.begun_at_first_start == 0) watched_.begun_at_first_start = watched_.begun.load();
  }
  size_t end_some() override {
    if (!watched_.are_done) return 0;
    for (const FaultEvent& event : held_) serve_(event);
    watched_.ended += held_.size();
    return std::exchange(held_, {}).size();
  }
  uint64_t sleep(std::vector<int>*) override { return held_.empty() ? UINT64_MAX : 1'000'000; }
  bool serve(const FaultEvent& event) override {
    serve_(event);
    return true;
  }

 private:
  Watched& watched_;
  const size_t places_;
  const FaultServer::Serve serve_;
  std::vector<FaultEvent> held_;
};

class FaultServerTest : public testing::Test {
 protected:
  static constexpr uint64_t kPages = 1 << 16;

  void SetUp() override {
    auto opened = platform::UserFault::open();
    if (!opened) GTEST_SKIP() << opened.status().message();
    faults_ = std::move(*opened);
    memory_ = std::move(*platform::map_anonymous(kPages * kMmuPageBytes, 2 * kMiB));
    SPW_CHECK(platform::advise(memory_.data(), memory_.bytes(), platform::Advice::kNoHugePage).is_ok());
    SPW_CHECK(faults_.register_range(memory_.data(), memory_.bytes()).is_ok());
    contents_ = std::move(*platform::map_anonymous(kMmuPageBytes));
    std::fill_n(contents_.data(), kMmuPageBytes, kServed);
  }

  void fill(const FaultEvent& event) {
    served_.fetch_add(1);  // first, so that who is woken finds itself counted
    // EEXIST: another thread's fault on the page was served first.
    (void)faults_.copy(reinterpret_cast<void*>(event.address), contents_.data(), kMmuPageBytes, false);
  }
  // `reads`: what each poller begins; without, all is left to the fillers.
  std::unique_ptr<FaultServer> serve_with(unsigned pollers, unsigned fillers, FaultServer::Serve serve,
                                          FaultServer::MakeReads reads = nullptr) {
    if (!reads) reads = [serve] { return std::make_unique<NoReads>(serve); };
    auto server = std::make_unique<FaultServer>(faults_, FaultServer::Options{pollers, fillers},
                                                std::move(serve), std::move(reads));
    SPW_CHECK(server->start().is_ok());
    return server;
  }
  // Pollers with room for so many reads each, which are done when the test says so; one filler.
  std::unique_ptr<FaultServer> serve_held(unsigned pollers, HeldReads::Watched& watched, size_t room) {
    const auto serve = [this](const FaultEvent& event) { fill(event); };
    return serve_with(pollers, 1, serve,
                      [&watched, room, serve] { return std::make_unique<HeldReads>(watched, room, serve); });
  }
  std::byte read_page(uint64_t page) const {
    return *static_cast<const volatile std::byte*>(memory_.data() + page * kMmuPageBytes);
  }
  // So many threads, each of which reads one page of its own, from `first` on.
  std::vector<std::thread> fault_on(uint64_t first, unsigned count) {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < count; ++t)
      threads.emplace_back([this, page = first + t] { EXPECT_EQ(read_page(page), kServed); });
    return threads;
  }
  // Every thread in turn reads a page that all others read, too, and one of its own, and all begin each round together.
  void fault_together(unsigned threads, unsigned rounds) {
    ASSERT_LE(uint64_t{rounds} * (threads + 1), kPages);
    std::barrier together(threads);
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
      running.emplace_back([&, t] {
        for (uint64_t round = 0; round < rounds; ++round) {
          const uint64_t shared = round * (threads + 1);
          together.arrive_and_wait();
          EXPECT_EQ(read_page(shared + 1 + t), kServed);
          EXPECT_EQ(read_page(shared), kServed);
        }
      });
    for (std::thread& thread : running) thread.join();
    EXPECT_GE(served_, uint64_t{rounds} * (threads + 1));
  }
  // How many events wait in the kernel; they are served here.
  size_t serve_what_waits() {
    auto awake = platform::WakeFd::create();
    SPW_CHECK(awake.is_ok());
    awake->wake();
    FaultEvent some[16];
    size_t total = 0;
    while (size_t count = faults_.wait_events(some, awake->fd())) {
      for (size_t i = 0; i < count; ++i) fill(some[i]);
      total += count;
    }
    return total;
  }

  platform::UserFault faults_;
  platform::Mapping memory_, contents_;
  std::atomic<uint64_t> served_{0};
};

TEST_F(FaultServerTest, one_poller_serves_hundreds_of_threads) {
  auto server = serve_with(1, 16, [this](const FaultEvent& event) { fill(event); });
  fault_together(300, 12);
}

TEST_F(FaultServerTest, several_pollers_serve_hundreds_of_threads) {
  auto server = serve_with(4, 16, [this](const FaultEvent& event) { fill(event); });
  fault_together(300, 12);
}

// All pollers bring batches in while nobody ends serving; whether
// they come together is up to the kernel, so a few times.
TEST_F(FaultServerTest, batches_of_dozens_of_pollers_find_room) {
  constexpr unsigned kRounds = 4, kWorkers = 256, kThreads = 1500;
  for (unsigned round = 0; round < kRounds; ++round) {
    Gate serving, faulting;
    auto server = serve_with(64, kWorkers, [&](const FaultEvent& event) {
      serving.pass();
      fill(event);
    });
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        faulting.pass();
        EXPECT_EQ(read_page(round * kThreads + t), kServed);
      });
    wait_until_others_sleep();
    faulting.open();
    serving.wait_for(kWorkers);
    serving.open();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(served_, kRounds * kThreads);
}

TEST_F(FaultServerTest, dozens_of_pollers_serve_hundreds_of_threads) {
  auto server = serve_with(32, 64, [this](const FaultEvent& event) { fill(event); });
  fault_together(300, 12);
}

TEST_F(FaultServerTest, more_pollers_than_the_queue_has_room_for_are_not_too_many) {
  auto server = serve_with(200, 256, [this](const FaultEvent& event) { fill(event); });
  fault_together(600, 10);
}

TEST_F(FaultServerTest, a_filler_that_has_no_help_serves_all_that_was_handed_to_it) {
  constexpr unsigned kThreads = 40;
  auto threads = fault_on(0, kThreads);
  wait_until_others_sleep();
  Gate gate;
  auto server = serve_with(1, 1, [&](const FaultEvent& event) {
    gate.pass();
    fill(event);
  });
  gate.wait_for(1);
  gate.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served_, kThreads);
}

TEST_F(FaultServerTest, no_event_waits_behind_one_that_is_being_served) {
  constexpr unsigned kThreads = 12;
  auto threads = fault_on(0, kThreads);
  wait_until_others_sleep();
  Gate gate;
  auto server = serve_with(1, 2, [&](const FaultEvent& event) {
    if (event.address == reinterpret_cast<uintptr_t>(memory_.data())) gate.pass();
    fill(event);
  });
  gate.wait_for(1);
  while (served_ < kThreads - 1) std::this_thread::yield();
  gate.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served_, kThreads);
}

TEST_F(FaultServerTest, a_batch_is_begun_as_a_whole_before_it_is_started) {
  constexpr unsigned kThreads = 12;
  auto threads = fault_on(0, kThreads);
  wait_until_others_sleep();
  HeldReads::Watched watched;
  auto server = serve_held(1, watched, 64);
  while (watched.begun < kThreads) std::this_thread::yield();
  EXPECT_EQ(served_, 0u);
  watched.are_done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(watched.begun_at_first_start, kThreads);
  EXPECT_EQ(served_, kThreads);
}

TEST_F(FaultServerTest, a_poller_has_no_more_in_flight_than_it_has_room_for) {
  constexpr unsigned kThreads = 50;
  constexpr size_t kRoom = 20;
  auto threads = fault_on(0, kThreads);
  wait_until_others_sleep();
  HeldReads::Watched watched;
  auto server = serve_held(1, watched, kRoom);
  while (watched.begun < kRoom) std::this_thread::yield();
  watched.are_done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(watched.most, kRoom);
  EXPECT_EQ(served_, kThreads);
}

TEST_F(FaultServerTest, another_poller_takes_what_one_has_no_room_for) {
  constexpr unsigned kThreads = 20;
  HeldReads::Watched watched;
  auto server = serve_held(2, watched, 10);
  auto threads = fault_on(0, kThreads);
  while (watched.begun < kThreads) std::this_thread::yield();  // all at once, in two pollers
  watched.are_done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served_, kThreads);
}

TEST_F(FaultServerTest, stop_serves_what_is_being_read) {
  constexpr unsigned kThreads = 8;
  HeldReads::Watched watched;
  auto server = serve_held(1, watched, 64);
  auto threads = fault_on(0, kThreads);
  while (watched.begun < kThreads) std::this_thread::yield();
  std::thread stopper([&] { server->stop(); });
  wait_until_others_sleep();
  watched.are_done = true;
  stopper.join();
  EXPECT_EQ(watched.ended, kThreads);
  for (std::thread& thread : threads) thread.join();
}

// The first fault of all holds its poller up until a gate opens.
class StuckOnce final : public NoReads {
 public:
  StuckOnce(Gate& gate, std::atomic<bool>& was_stuck, FaultServer::Serve serve)
      : NoReads(std::move(serve)), gate_(gate), was_stuck_(was_stuck) {}
  bool begin(const FaultEvent&) override {
    if (!was_stuck_.exchange(true)) gate_.pass();
    return false;
  }

 private:
  Gate& gate_;
  std::atomic<bool>& was_stuck_;
};

// At once, and when nothing has happened for so long that the deputy rests.
TEST_F(FaultServerTest, another_poller_takes_faults_while_one_is_held_up) {
  uint64_t page = 0;
  for (const auto quiet : {std::chrono::milliseconds(0), std::chrono::milliseconds(500)}) {
    Gate gate;
    std::atomic<bool> was_stuck{false};
    const auto serve = [this](const FaultEvent& event) { fill(event); };
    auto server =
        serve_with(2, 1, serve, [&] { return std::make_unique<StuckOnce>(gate, was_stuck, serve); });
    std::this_thread::sleep_for(quiet);
    auto kept = fault_on(page++, 1);
    gate.wait_for(1);
    const uint64_t before = served_;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(read_page(page++), kServed);
    EXPECT_EQ(served_, before + 20);
    gate.open();
    kept[0].join();
  }
}

TEST_F(FaultServerTest, as_many_faults_are_served_at_once_as_there_are_fillers) {
  constexpr unsigned kWorkers = 4, kThreads = 24;
  Gate gate;
  auto server = serve_with(1, kWorkers, [&](const FaultEvent& event) {
    gate.pass();
    fill(event);
  });
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kWorkers; ++t) {
    for (std::thread& thread : fault_on(t, 1)) threads.push_back(std::move(thread));
    gate.wait_for(t + 1);
  }
  // While all workers are busy: these wait for them.
  for (std::thread& thread : fault_on(kWorkers, kThreads - kWorkers)) threads.push_back(std::move(thread));
  wait_until_others_sleep();
  EXPECT_EQ(gate.arrived(), kWorkers);
  gate.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served_, kThreads);
}

// A poller that leaves all to the fillers, whoever faults.
class LeavesAll final : public NoReads {
 public:
  using NoReads::NoReads;
  bool serve(const FaultEvent&) override { return false; }
};

TEST_F(FaultServerTest, a_thread_that_faults_alone_is_left_to_a_filler_where_it_has_to_wait) {
  const auto serve = [this](const FaultEvent& event) { fill(event); };
  auto server = serve_with(1, 1, serve, [&] { return std::make_unique<LeavesAll>(serve); });
  for (uint64_t page = 0; page < 100; ++page) ASSERT_EQ(read_page(page), kServed);
  EXPECT_EQ(served_, 100u);
}

TEST_F(FaultServerTest, a_thread_that_faults_alone_is_served_between_others) {
  auto server = serve_with(1, 4, [this](const FaultEvent& event) { fill(event); });
  for (uint64_t page = 0; page < 100; ++page) ASSERT_EQ(read_page(page), kServed);
  fault_together(8, 10);
  std::thread other([this] {
    for (uint64_t page = 2000; page < 2100; ++page) ASSERT_EQ(read_page(page), kServed);
  });
  for (uint64_t page = 3000; page < 3100; ++page) ASSERT_EQ(read_page(page), kServed);
  other.join();
}

// The faults that nobody serves any more end when the descriptor closes: on plain memory.
TEST_F(FaultServerTest, stop_comes_back_while_faults_are_in_flight) {
  constexpr unsigned kThreads = 64, kPagesEach = 512;
  for (const unsigned pollers : {1u, 4u}) {
    auto server = serve_with(pollers, 8, [this](const FaultEvent& event) { fill(event); });
    std::atomic<uint64_t> plain{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (uint64_t page = t * kPagesEach; page < (t + 1) * kPagesEach; ++page) {
          const std::byte found = read_page(page);
          EXPECT_TRUE(found == kServed || found == std::byte{0});
          plain += found == std::byte{0};
        }
      });
    while (served_ < kThreads * kPagesEach / 8) std::this_thread::yield();
    server->stop();
    const uint64_t served = served_;
    wait_until_others_sleep();
    EXPECT_EQ(served_, served) << "after stop()";
    server.reset();
    faults_ = platform::UserFault();
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(plain, 0u);
    TearDown();
    served_ = 0;
    SetUp();
  }
}

TEST_F(FaultServerTest, stop_serves_what_is_queued) {
  constexpr unsigned kThreads = 12;
  Gate gate;
  auto server = serve_with(2, 1, [&](const FaultEvent& event) {
    gate.pass();
    fill(event);
  });
  auto threads = fault_on(0, kThreads);
  gate.wait_for(1);
  wait_until_others_sleep();  // one event is being served, the others are queued
  std::thread stopper([&] { server->stop(); });
  wait_until_others_sleep();
  gate.open();
  stopper.join();
  EXPECT_EQ(served_, kThreads);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(FaultServerTest, stop_waits_for_what_is_being_served) {
  Gate gate;
  auto server = serve_with(1, 2, [&](const FaultEvent& event) {
    gate.pass();
    fill(event);
  });
  auto threads = fault_on(0, 1);
  gate.wait_for(1);
  std::atomic<uint64_t> served_at_stop{0};
  std::thread stopper([&] {
    server->stop();
    served_at_stop = served_.load();
  });
  wait_until_others_sleep();
  gate.open();
  stopper.join();
  EXPECT_EQ(served_at_stop, 1u);
  threads[0].join();
}

}  // namespace
}  // namespace spw::access
