// Random accesses to data that compresses or does not: pages MIB KIND reads|updates ACCESSES [THREADS].
// KIND: fourfold, twofold (about what LZ4 makes of their pages) or noise. Fills so much memory, says so on its first
// line, makes ACCESSES of pages at random, and looks whether all is right. Prints seconds of the accesses as JSON.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kPageWords = 512;
constexpr uint64_t kCounter = 1;  // the word of a page that updates count in

uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

// Of so many words one is noise, in all but the word of the counter.
uint64_t noise_every(const char* kind) {
  return std::strcmp(kind, "fourfold") == 0 ? 8 : std::strcmp(kind, "twofold") == 0 ? 3 : 1;
}

class Data {
 public:
  Data(uint64_t mebibytes, uint64_t every)
      : every_(every), pages_((mebibytes << 20) / (kPageWords * sizeof(uint64_t))) {
    words_ = static_cast<uint64_t*>(std::malloc(mebibytes << 20));
    for (uint64_t page = 0; page < pages_; ++page)
      for (uint64_t i = 0; i < kPageWords; ++i)
        words_[page * kPageWords + i] = i == kCounter ? 0 : word(page, i);
  }

  uint64_t word(uint64_t page, uint64_t i) const {
    return i % every_ == 0 ? mixed(page * kPageWords + i + 1) : page;
  }
  // Of so many accesses those that found something wrong.
  uint64_t access(bool updates, uint64_t count, uint64_t seed) {
    uint64_t wrong = 0;
    for (uint64_t n = 0; n < count; ++n) {
      const uint64_t at = mixed(seed + n), page = at % pages_, i = (at >> 40) % (kPageWords - 2) + 2;
      wrong += words_[page * kPageWords + i] != word(page, i);
      if (updates) __atomic_fetch_add(&words_[page * kPageWords + kCounter], 1, __ATOMIC_RELAXED);
    }
    return wrong;
  }
  uint64_t updates() const {
    uint64_t sum = 0;
    for (uint64_t page = 0; page < pages_; ++page) sum += words_[page * kPageWords + kCounter];
    return sum;
  }

 private:
  const uint64_t every_, pages_;
  uint64_t* words_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) return 2;
  const bool updates = std::strcmp(arguments[3], "updates") == 0;
  const uint64_t accesses = std::strtoull(arguments[4], nullptr, 10);
  const uint64_t threads = count > 5 ? std::strtoull(arguments[5], nullptr, 10) : 1;
  const auto start = Clock::now();
  Data data(std::strtoull(arguments[1], nullptr, 10), noise_every(arguments[2]));
  const auto begin = Clock::now();
  std::printf("{\"timed_from_s\": %.3f}\n", std::chrono::duration<double>(begin - start).count());
  std::fflush(stdout);
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> all;
  for (uint64_t i = 0; i < threads; ++i)
    all.emplace_back([&, i] { wrong += data.access(updates, accesses / threads, i << 40); });
  for (std::thread& each : all) each.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const bool is_right = wrong == 0 && data.updates() == (updates ? accesses / threads * threads : 0);
  std::printf("{\"seconds\": %.6f, \"right\": %s}\n", seconds, is_right ? "true" : "false");
  return is_right ? 0 : 1;
}
