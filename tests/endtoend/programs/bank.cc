// Accounts in a persistent region, and threads that transfer between them under locks: bank FILE run THREADS SEED
// [DOMAIN] until it is killed, printing "THREAD COUNT" when a transfer is durable; bank FILE check prints how many
// transfers of each thread are there, or what is wrong. All stores are plain ones.
#include <spillway/durable.h>
#include <spillway/spillway.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

constexpr int kAccounts = 16, kThreads = 4;
constexpr int64_t kEach = 1000;

// The receipt of a thread's last transfer.
struct Receipt {
  uint64_t number;
  int from, to;
  int64_t amount;
  char text[200];
};
struct Bank {
  int64_t accounts[kAccounts];
  uint64_t transfers[kThreads];
  Receipt* last[kThreads];
};

std::mutex g_locks[kAccounts];
spw_durable* g_region;

void fail(const char* what) {
  std::printf("wrong: %s: %s\n", what, spw_error_message());
  std::fflush(stdout);
  _exit(3);
}

__attribute__((noinline)) void move(Bank* bank, int from, int to, int64_t amount) {
  bank->accounts[from] -= amount;
  bank->accounts[to] += amount;
}

__attribute__((noinline)) void give_receipt(Bank* bank, int thread, int from, int to, int64_t amount) {
  auto* receipt = static_cast<Receipt*>(spw_durable_alloc(g_region, sizeof(Receipt)));
  if (receipt == nullptr) fail("no receipt");
  const uint64_t number = bank->transfers[thread] + 1;
  *receipt = {number, from, to, amount, {}};
  std::memset(receipt->text, static_cast<int>(number & 0x7F), sizeof receipt->text);
  if (Receipt* before = bank->last[thread])
    if (spw_durable_free(before) != 0) fail("a receipt");
  bank->last[thread] = receipt;
  bank->transfers[thread] = number;
}

void transfer(Bank* bank, int thread, std::mt19937& dice) {
  int from = static_cast<int>(dice() % kAccounts), to = static_cast<int>(dice() % (kAccounts - 1));
  if (to >= from) ++to;
  std::mutex& first = g_locks[std::min(from, to)];
  std::mutex& second = g_locks[std::max(from, to)];
  first.lock();
  second.lock();
  const auto amount = static_cast<int64_t>(dice() % 50);
  move(bank, from, to, amount);
  // One of the locks is free before the section ends: others may see what is not durable yet.
  first.unlock();
  give_receipt(bank, thread, from, to, amount);
  second.unlock();
}

void run(Bank* bank, int thread, unsigned seed) {
  std::mt19937 dice(seed * 100 + static_cast<unsigned>(thread));
  for (;;) {
    transfer(bank, thread, dice);
    if (dice() % 4 != 0) continue;
    if (spw_durable_sync() != 0) fail("sync");
    char line[64];
    const int length = std::snprintf(line, sizeof line, "%d %llu\n", thread,
                                     static_cast<unsigned long long>(bank->transfers[thread]));
    if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) _exit(4);
  }
}

int check(const Bank* bank) {
  int64_t sum = 0;
  for (const int64_t amount : bank->accounts) sum += amount;
  if (sum != kAccounts * kEach)
    return std::printf("wrong: the accounts' sum is %lld\n", static_cast<long long>(sum)), 1;
  for (int t = 0; t < kThreads; ++t) {
    const Receipt* receipt = bank->last[t];
    const uint64_t number = receipt == nullptr ? 0 : receipt->number;
    if (number != bank->transfers[t]) return std::printf("wrong: thread %d's receipt\n", t), 1;
    for (size_t i = 0; receipt != nullptr && i < sizeof receipt->text; ++i)
      if (receipt->text[i] != static_cast<char>(number & 0x7F))
        return std::printf("wrong: a torn receipt\n"), 1;
    std::printf("%d %llu\n", t, static_cast<unsigned long long>(number));
  }
  return 0;
}

int main(int count, char** arguments) {
  spw_durable_options options{};
  options.size = sizeof options;
  options.capacity_bytes = 64 << 20;
  if (count > 5) options.domain = arguments[5];
  if (spw_durable_open(arguments[1], &options, &g_region) != 0) fail("open");
  auto* bank = static_cast<Bank*>(spw_durable_root(g_region, "bank"));
  if (bank == nullptr) {
    spw_durable_begin();
    bank = static_cast<Bank*>(spw_durable_alloc(g_region, sizeof(Bank)));
    *bank = {};
    for (int64_t& amount : bank->accounts) amount = kEach;
    if (spw_durable_set_root(g_region, "bank", bank) != 0 || spw_durable_end() != 0) fail("begin");
  }
  if (std::strcmp(arguments[2], "check") == 0) return check(bank);
  std::puts("begun");
  std::fflush(stdout);
  std::vector<std::thread> threads;
  for (int t = 0; t < std::atoi(arguments[3]); ++t)
    threads.emplace_back(run, bank, t, static_cast<unsigned>(std::atoi(arguments[4])));
  for (std::thread& thread : threads) thread.join();
}
