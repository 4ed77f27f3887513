// The paper's mdb: LMDB's mtest, a million pairs of it, with the data in a persistent region (lmdb_region.h); prints
// one line of JSON, as durable_bench does and with the same options. Made and run by bench/durable.py.
//
//   mdb_bench --path DIRECTORY [--technique NAME] [--domain auto|pmem|block] [--burst STORES] [--size PAIRS]
//             [--profile yes]
//
// --workload and --rounds mean nothing to it.
//
// As in mtest a value is a number in text, its key that text's beginning; a walk goes
// over all pairs with a cursor, and what is deleted was inserted. The paper says that a
// million pairs took 100,516 sections of 652 stores, along with many walks and deletions.
//
// Inferred: each of kPhases phases inserts its share, ten pairs a transaction, walks, and deletes the tens of some
// transactions, one for kInsertingForOneDeleting that have inserted. A transaction's ten numbers are neighbours, amid
// those of others; which ten comes next is random. This is what the paper's figures show: a cache of 20 lines keeps
// most of a section's stores, and lazily 34 lines are flushed for one. Of ten numbers that are far apart each has a
// page of its own copied, which is ten times as many lines.
#include <lmdb.h>
#include <lmdb_region.h>
#include <spillway/spillway.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

constexpr uint64_t kPhases = 10, kTen = 10, kInsertingForOneDeleting = 200;
constexpr uint64_t kPairs = 1'000'000, kPairsMax = 4 * kPairs;
constexpr size_t kKeyBytes = 7, kValueBytes = 32;
constexpr size_t kMapBytesMin = size_t{16} << 20, kMapBytesAPair = 256;

MDB_env* g_env;
MDB_dbi g_database;

[[noreturn]] void fail(const char* what, int error) {
  std::fprintf(stderr, "mdb_bench: %s: %s (%s)\n", what, mdb_strerror(error), spw_error_message());
  std::exit(1);
}
void must(const char* what, int error) {
  if (error != 0) fail(what, error);
}

// Where ten numbers begin: each multiple of 16 below 2^28 comes once, in no order.
class Tens {
 public:
  uint32_t next() { return (state_ = (state_ * 0x343FDu + 0x269EC3u) & 0xFFFFFF) * 16; }

 private:
  uint32_t state_ = 1;
};

class Transaction {
 public:
  explicit Transaction(unsigned flags) { must("mdb_txn_begin", mdb_txn_begin(g_env, nullptr, flags, &txn_)); }
  MDB_txn* get() const { return txn_; }
  void commit() { must("mdb_txn_commit", mdb_txn_commit(txn_)); }

 private:
  MDB_txn* txn_ = nullptr;
};

void insert(MDB_txn* txn, uint32_t number) {
  char text[kValueBytes] = "";
  std::snprintf(text, sizeof text, "%07x %u foo bar", number, number);
  MDB_val key{kKeyBytes, text}, value{sizeof text, text};
  must("mdb_put", mdb_put(txn, g_database, &key, &value, MDB_NOOVERWRITE));
}

void erase(MDB_txn* txn, uint32_t number) {
  char text[kKeyBytes + 1];
  std::snprintf(text, sizeof text, "%07x", number);
  MDB_val key{kKeyBytes, text};
  must("mdb_del", mdb_del(txn, g_database, &key, nullptr));
}

// How many pairs it found.
uint64_t walk() {
  Transaction reading(MDB_RDONLY);
  MDB_cursor* cursor = nullptr;
  must("mdb_cursor_open", mdb_cursor_open(reading.get(), g_database, &cursor));
  uint64_t pairs = 0;
  char last[kKeyBytes] = {};
  MDB_val key, value;
  int error = 0;
  for (; (error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0; ++pairs) {
    if (std::memcmp(key.mv_data, value.mv_data, kKeyBytes) != 0) fail("a value is another key's", 0);
    if (pairs != 0 && std::memcmp(last, key.mv_data, kKeyBytes) >= 0) fail("keys are out of order", 0);
    std::memcpy(last, key.mv_data, kKeyBytes);
  }
  if (error != MDB_NOTFOUND) fail("mdb_cursor_get", error);
  mdb_cursor_close(cursor);
  reading.commit();
  return pairs;
}

template <class Change>
void change_ten(uint32_t first, Change change) {
  Transaction transaction(0);
  for (uint32_t number = first; number < first + kTen; ++number) change(transaction.get(), number);
  transaction.commit();
}

void mtest(uint64_t pairs) {
  const uint64_t inserting = pairs / kPhases / kTen;
  uint64_t there = 0;
  Tens inserted, deleted;
  for (uint64_t phase = 0; phase < kPhases; ++phase) {
    for (uint64_t i = 0; i < inserting; ++i) change_ten(inserted.next(), insert);
    there += inserting * kTen;
    if (walk() != there) fail("pairs are missing", 0);
    for (uint64_t i = 0; i < inserting / kInsertingForOneDeleting; ++i) change_ten(deleted.next(), erase);
    there -= inserting / kInsertingForOneDeleting * kTen;
  }
  if (walk() != there) fail("pairs are missing", 0);
}

void open(const std::string& directory, size_t map_bytes) {
  ::mkdir(directory.c_str(), 0755);
  must("mdb_env_create", mdb_env_create(&g_env));
  must("mdb_env_set_mapsize", mdb_env_set_mapsize(g_env, map_bytes));
  must("mdb_env_open",
       mdb_env_open(g_env, directory.c_str(), MDB_WRITEMAP | MDB_NOSYNC | MDB_NOMETASYNC, 0644));
  Transaction transaction(0);
  must("mdb_dbi_open", mdb_dbi_open(transaction.get(), nullptr, 0, &g_database));
  transaction.commit();
}

spw_durable_statistics now() {
  spw_durable_statistics statistics{};
  must("spw_durable_get_statistics", spw_durable_get_statistics(lmdb_region(), &statistics));
  return statistics;
}

void print(const spw_durable_statistics& then, const spw_durable_statistics& end, double seconds) {
  const uint64_t stores = end.stores - then.stores, flushed = end.lines_flushed - then.lines_flushed;
  const auto of = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "{\"workload\": \"mdb\", \"stores\": %llu, \"lines_flushed\": %llu, \"flush_ratio\": %.9f, "
      "\"sections\": %llu, "
      "\"records\": %llu, \"log_bytes\": %llu, \"seconds\": %.6f, \"lines\": %llu, \"line_bytes\": %llu, "
      "\"profiled_lines\": %u}\n",
      of(stores), of(flushed), static_cast<double>(flushed) / static_cast<double>(stores),
      of(end.sections - then.sections), of(end.records - then.records), of(end.log_bytes - then.log_bytes),
      seconds, of(end.lines), of(end.line_bytes), spw_durable_profiled_lines(lmdb_region()));
}

}  // namespace

int main(int count, char** words) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < count; i += 2) options[words[i]] = words[i + 1];
  const auto number = [&options](const char* name) {
    return std::strtoull(options[name].c_str(), nullptr, 10);
  };
  uint64_t pairs = number("--size");
  if (pairs == 0) pairs = kPairs;
  if (options["--path"].empty() || pairs > kPairsMax)
    fail("--path DIRECTORY, and --size of at most 4000000", 0);
  const std::string domain = options["--domain"], technique = options["--technique"];
  lmdb_region_options.domain = domain.c_str();
  lmdb_region_options.technique = technique.c_str();
  lmdb_region_options.burst_stores = number("--burst");
  lmdb_region_options.flags = options["--profile"] == "yes" ? SPW_DURABLE_PROFILE : 0;
  open(options["--path"], kMapBytesMin + pairs * kMapBytesAPair);

  const spw_durable_statistics then = now();
  const auto start = std::chrono::steady_clock::now();
  mtest(pairs);
  must("spw_durable_sync", spw_durable_sync());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print(then, now(), seconds);
  mdb_env_close(g_env);
}
