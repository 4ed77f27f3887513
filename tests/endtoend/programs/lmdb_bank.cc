// A bank in an LMDB database whose data is in a persistent region (bench/durable/lmdb): threads transfer between
// accounts, each transfer a write transaction. lmdb_bank DIRECTORY run THREADS SEED [DOMAIN] until it is killed,
// printing "THREAD COUNT" when mdb_txn_commit() has returned; lmdb_bank DIRECTORY check prints how many transfers of
// each thread are there, or what is wrong.
//
// Of each thread there are a count, a receipt of its last transfer, which may take several pages, and a note of each of
// the last kNotes transfers. So a transaction changes seven keys or more; some of them are aborted.
#include <lmdb.h>
#include <lmdb_region.h>
#include <spillway/spillway.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

constexpr int kAccounts = 200, kThreads = 4;
constexpr uint64_t kNotes = 150;
constexpr int64_t kEach = 1000;
constexpr size_t kMapBytes = 16 << 20, kReceiptBytesMax = 9000;

MDB_env* g_env;
MDB_dbi g_database;

void fail(const char* what, int error) {
  std::printf("wrong: %s: %s (%s)\n", what, mdb_strerror(error), spw_error_message());
  std::fflush(stdout);
  _exit(3);
}
void must(const char* what, int error) {
  if (error != 0) fail(what, error);
}

std::string name_of(const char* kind, uint64_t first, uint64_t second = 0) {
  char name[64];
  std::snprintf(name, sizeof name, "%s %llu %llu", kind, static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(second));
  return name;
}
std::string receipt_of(uint64_t number, size_t bytes) {
  std::string text(bytes, static_cast<char>('a' + number % 26));
  return std::to_string(number) + " " + text;
}
std::string note_of(uint64_t number) { return std::string(number % 90, '.') + std::to_string(number); }

class Transaction {
 public:
  explicit Transaction(bool reads) {
    must("begin", mdb_txn_begin(g_env, nullptr, reads ? MDB_RDONLY : 0, &txn_));
  }
  // Empty: there is none.
  std::string get(const std::string& name) {
    MDB_val key = value_of(name), value;
    const int error = mdb_get(txn_, g_database, &key, &value);
    if (error == MDB_NOTFOUND) return {};
    must("get", error);
    return {static_cast<const char*>(value.mv_data), value.mv_size};
  }
  int64_t number(const std::string& name) {
    const std::string text = get(name);
    return text.empty() ? 0 : std::stoll(text);
  }
  void put(const std::string& name, const std::string& text) {
    MDB_val key = value_of(name), value = value_of(text);
    must("put", mdb_put(txn_, g_database, &key, &value, 0));
  }
  void erase(const std::string& name) {
    MDB_val key = value_of(name);
    must("del", mdb_del(txn_, g_database, &key, nullptr));
  }
  std::map<std::string, std::string> all() {
    std::map<std::string, std::string> found;
    MDB_cursor* cursor = nullptr;
    must("cursor", mdb_cursor_open(txn_, g_database, &cursor));
    MDB_val key, value;
    int error = 0;
    while ((error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
      found.emplace(std::string(static_cast<char*>(key.mv_data), key.mv_size),
                    std::string(static_cast<char*>(value.mv_data), value.mv_size));
    if (error != MDB_NOTFOUND) fail("walk", error);
    mdb_cursor_close(cursor);
    MDB_stat statistics;
    must("stat", mdb_stat(txn_, g_database, &statistics));
    if (statistics.ms_entries != found.size()) fail("the number of entries", 0);
    return found;
  }
  void commit() { must("commit", mdb_txn_commit(txn_)); }
  void abort() { mdb_txn_abort(txn_); }

 private:
  static MDB_val value_of(const std::string& text) { return {text.size(), const_cast<char*>(text.data())}; }
  MDB_txn* txn_ = nullptr;
};

void open(const char* directory, const char* domain) {
  lmdb_region_options.domain = domain;
  must("create", mdb_env_create(&g_env));
  must("mapsize", mdb_env_set_mapsize(g_env, kMapBytes));
  must("open", mdb_env_open(g_env, directory, MDB_WRITEMAP | MDB_NOSYNC | MDB_NOMETASYNC, 0644));
  MDB_txn* txn = nullptr;
  must("begin", mdb_txn_begin(g_env, nullptr, 0, &txn));
  must("dbi", mdb_dbi_open(txn, nullptr, 0, &g_database));
  must("commit", mdb_txn_commit(txn));
  Transaction first(false);
  if (first.get(name_of("account", 0)).empty())
    for (int i = 0; i < kAccounts; ++i) first.put(name_of("account", i), std::to_string(kEach));
  first.commit();
}

uint64_t transfer(Transaction& transaction, unsigned thread, std::mt19937& dice) {
  for (int i = 0; i < 2; ++i) {
    const std::string from = name_of("account", dice() % kAccounts),
                      to = name_of("account", dice() % kAccounts);
    const int64_t amount = dice() % 50;
    transaction.put(from, std::to_string(transaction.number(from) - amount));
    transaction.put(to, std::to_string(transaction.number(to) + amount));
  }
  const uint64_t number = static_cast<uint64_t>(transaction.number(name_of("count", thread))) + 1;
  transaction.put(name_of("receipt", thread), receipt_of(number, dice() % kReceiptBytesMax));
  transaction.put(name_of("note", thread, number), note_of(number));
  if (number > kNotes) transaction.erase(name_of("note", thread, number - kNotes));
  transaction.put(name_of("count", thread), std::to_string(number));
  return number;
}

void run(unsigned thread, unsigned seed) {
  std::mt19937 dice(seed * 100 + thread);
  for (;;) {
    Transaction transaction(false);
    const uint64_t number = transfer(transaction, thread, dice);
    if (dice() % 16 == 0) {
      transaction.abort();
      continue;
    }
    transaction.commit();
    char line[64];
    const int length =
        std::snprintf(line, sizeof line, "%u %llu\n", thread, static_cast<unsigned long long>(number));
    if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) _exit(4);
  }
}

// What has to be there for a thread is taken from `there`.
void check_thread(std::map<std::string, std::string>& there, unsigned thread) {
  const auto take = [&there](const std::string& name) {
    const auto found = there.extract(name);
    return found.empty() ? std::string() : found.mapped();
  };
  const std::string count = take(name_of("count", thread)), receipt = take(name_of("receipt", thread));
  const uint64_t number = count.empty() ? 0 : std::stoull(count);
  std::printf("%u %llu\n", thread, static_cast<unsigned long long>(number));
  if (number == 0 && receipt.empty()) return;
  const size_t head = count.size() + 1;
  if (receipt.size() < head || receipt != receipt_of(number, receipt.size() - head)) fail("a receipt", 0);
  for (uint64_t i = number > kNotes ? number - kNotes + 1 : 1; i <= number; ++i)
    if (take(name_of("note", thread, i)) != note_of(i)) fail("a note", 0);
}

int check() {
  std::map<std::string, std::string> there = Transaction(true).all();
  int64_t sum = 0;
  for (int i = 0; i < kAccounts; ++i) {
    sum += std::stoll(there.at(name_of("account", i)));
    there.erase(name_of("account", i));
  }
  if (sum != kAccounts * kEach) fail("the accounts' sum", 0);
  for (unsigned t = 0; t < kThreads; ++t) check_thread(there, t);
  if (!there.empty()) fail(("there is also " + there.begin()->first).c_str(), 0);
  return 0;
}

int main(int count, char** arguments) {
  open(arguments[1], count > 5 ? arguments[5] : nullptr);
  if (std::strcmp(arguments[2], "check") == 0) {
    const int code = check();
    mdb_env_close(g_env);
    return code;
  }
  std::puts("begun");
  std::fflush(stdout);
  std::vector<std::thread> threads;
  for (int t = 0; t < std::atoi(arguments[3]); ++t)
    threads.emplace_back(run, t, static_cast<unsigned>(std::atoi(arguments[4])));
  for (std::thread& thread : threads) thread.join();
}
