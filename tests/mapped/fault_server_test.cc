#include "front/mapped/fault_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic.h"
#include "base/check.h"
#include "base/units.h"
#include "platform/futex.h"
#include "platform/memory.h"

namespace spw::front {
namespace {

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

// Until every other thread of the process sleeps: those of the program in a fault, those of the server for work.
void wait_until_others_sleep() {
  const std::string self = std::to_string(::gettid());
  for (bool all_sleep = false; !all_sleep;) {
    all_sleep = true;
    std::error_code gone;  // a thread that ends meanwhile: look again
    for (std::filesystem::directory_iterator task("/proc/self/task", gone), end; !gone && task != end;
         task.increment(gone)) {
      std::ifstream file(task->path() / "stat");
      std::string stat;
      std::getline(file, stat);  // which throws nothing when the thread is gone, as a stream's buffer would
      const size_t name_end = stat.rfind(')');  // "PID (NAME) STATE ..."
      if (task->path().filename() == self || name_end == stat.npos) continue;
      all_sleep = all_sleep && stat.compare(name_end, 3, ") S") == 0;
    }
    all_sleep = all_sleep && !gone;
  }
}

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
  std::unique_ptr<FaultServer> serve_with(unsigned pollers, unsigned workers, FaultServer::Serve serve) {
    auto server =
        std::make_unique<FaultServer>(faults_, FaultServer::Options{pollers, workers}, std::move(serve));
    SPW_CHECK(server->start().is_ok());
    return server;
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

// All pollers bring batches in while nobody ends serving; whether they come together is up to the kernel, so a few times.
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

TEST_F(FaultServerTest, a_worker_that_has_no_help_takes_a_batch) {
  constexpr unsigned kThreads = 40;
  auto threads = fault_on(0, kThreads);
  wait_until_others_sleep();
  std::atomic<size_t> left{kThreads};
  auto server = serve_with(1, 1, [&](const FaultEvent& event) {
    if (left == kThreads) left = serve_what_waits();
    fill(event);
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(left, kThreads - 16);
  EXPECT_EQ(served_, kThreads);
}

TEST_F(FaultServerTest, as_many_faults_are_served_at_once_as_there_are_workers) {
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
}  // namespace spw::front
