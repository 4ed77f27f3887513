// The paper's hash: a chained hash table with a prime number of buckets that grows when it is 65 % full, filled with
// 4000 entries of which 3000 are removed again.
//
// Stores of an insertion: four of the key, one of the value, three of the entry (hash, key,
// value), and in the section the table's count, the entry's successor and its bucket. A removal:
// the link, the count, and the marks in front of the key and the entry that were freed. Growing
// moves each entry by three stores: the old bucket, the entry's successor, the new bucket.
//
// Inferred: stores are 11 an insertion, 4 a removal, 3 for each of the 7982 entries that the eight growths from 53
// buckets to 12,289 move, 4 for each growth; buckets are zeroed a line a store, as memset() does it, 3075 in all; five
// to begin with. These are 83,058, where the paper has 83,061. Growing makes the difference between techniques: the new
// bucket is on any of so many lines that none but LA combines it. A section is one insertion, with the growth that it
// may bring, or one removal: 7 K.
// size: entries. rounds: tables.
#include <cmath>
#include <iterator>

#include "durable/arena.h"

namespace spw::bench {

namespace {

constexpr uint32_t kBuckets[] = {53,    97,    193,   389,   769,    1543,   3079,   6151,
                                 12289, 24593, 49157, 98317, 196613, 393241, 786433, 1572869};
constexpr double kLoadMax = 0.65;
constexpr uint64_t kLineBytes = 64;

// Of a connection.
struct Key {
  uint32_t source, destination;
  uint16_t source_port, destination_port;
  friend bool operator==(const Key&, const Key&) = default;
};

struct Value {
  char kind;
};

struct Entry {
  Key* key;
  Value* value;
  uint32_t hash;
  Entry* next;
};

struct alignas(64) Table {
  uint32_t buckets;
  Entry** first;
  uint32_t entries;
  uint32_t entries_max;
  uint32_t step;  // in kBuckets
};

Key key_of(uint32_t i) {
  return {0x0A000000u + i, 0xC0A8FFFFu - 3 * i, static_cast<uint16_t>(1024 + 5 * i),
          static_cast<uint16_t>(60000 - 7 * i)};
}

uint32_t hash_of(const Key& key) {
  uint64_t words[2] = {};
  std::memcpy(words, &key, sizeof key);
  uint64_t mixed = words[0] * 0x9E3779B97F4A7C15u ^ words[1] * 0xC2B2AE3D27D4EB4Fu;
  mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93u;
  return static_cast<uint32_t>(mixed >> 32);
}

class HashTable {
 public:
  HashTable(Run& run, Arena& arena) : run_(run), arena_(arena), table_(*run.allocate<Table>()) {
    store(table_.first, new_buckets(kBuckets[0]));
    store(table_.buckets, kBuckets[0]);
    store(table_.entries, 0u);
    store(table_.entries_max, entries_max(kBuckets[0]));
    store(table_.step, 0u);
  }

  void insert(const Key& key, char kind) {
    Section section;
    Entry* entry = new_entry(key, kind);
    if (table_.entries + 1 > table_.entries_max) grow();
    Entry*& bucket = table_.first[entry->hash % table_.buckets];
    store(table_.entries, table_.entries + 1);
    store(entry->next, bucket);
    store(bucket, entry);
  }
  bool remove(const Key& key) {
    Section section;
    const uint32_t hash = hash_of(key);
    for (Entry** link = &table_.first[hash % table_.buckets]; *link != nullptr; link = &(*link)->next) {
      Entry* entry = *link;
      if (entry->hash != hash || *entry->key != key) continue;
      store(*link, entry->next);
      store(table_.entries, table_.entries - 1);
      Arena::free(entry->key);
      Arena::free(entry);
      return true;
    }
    return false;
  }
  bool contains(const Key& key) const {
    const uint32_t hash = hash_of(key);
    for (const Entry* entry = table_.first[hash % table_.buckets]; entry != nullptr; entry = entry->next)
      if (entry->hash == hash && *entry->key == key) return true;
    return false;
  }
  uint32_t entries() const { return table_.entries; }

 private:
  static uint32_t entries_max(uint32_t buckets) {
    return static_cast<uint32_t>(std::ceil(buckets * kLoadMax));
  }

  Entry* new_entry(const Key& key, char kind) {
    Key* own_key = arena_.allocate<Key>();
    store(own_key->source, key.source);
    store(own_key->destination, key.destination);
    store(own_key->source_port, key.source_port);
    store(own_key->destination_port, key.destination_port);
    Value* value = arena_.allocate<Value>();
    store(value->kind, kind);
    Entry* entry = arena_.allocate<Entry>();
    store(entry->hash, hash_of(key));
    store(entry->key, own_key);
    store(entry->value, value);
    return entry;
  }
  Entry** new_buckets(uint32_t count) {
    static constexpr char kZeros[kLineBytes] = {};
    const uint64_t bytes = (count * sizeof(Entry*) + kLineBytes - 1) / kLineBytes * kLineBytes;
    auto* buckets = static_cast<char*>(run_.allocate(bytes));
    for (uint64_t at = 0; at < bytes; at += kLineBytes) store_bytes(buckets + at, kZeros, kLineBytes);
    return reinterpret_cast<Entry**>(buckets);
  }
  void grow() {
    if (table_.step + 1 == std::size(kBuckets)) die("hash: so many entries are not foreseen");
    store(table_.step, table_.step + 1);
    const uint32_t count = kBuckets[table_.step];
    Entry** to = new_buckets(count);
    for (uint32_t i = 0; i < table_.buckets; ++i) {
      while (Entry* entry = table_.first[i]) {
        store(table_.first[i], entry->next);
        Entry*& bucket = to[entry->hash % count];
        store(entry->next, bucket);
        store(bucket, entry);
      }
    }
    spw_durable_free(table_.first);
    store(table_.first, to);
    store(table_.buckets, count);
    store(table_.entries_max, entries_max(count));
  }

  Run& run_;
  Arena& arena_;
  Table& table_;
};

}  // namespace

void run_hash(Run& run) {
  const auto size = static_cast<uint32_t>(run.size), removed = size / 4 * 3;
  run.start();
  for (uint64_t round = 0; round < run.rounds; ++round) {
    Arena arena(run);
    HashTable table(run, arena);
    for (uint32_t i = 0; i < size; ++i) table.insert(key_of(i), 'v');
    for (uint32_t i = 0; i < removed; ++i)
      if (!table.remove(key_of(i))) die("hash: a key is missing");
    if (table.entries() != size - removed) die("hash: miscounted");
    for (uint32_t i = 0; i < size; ++i)
      if (table.contains(key_of(i)) != (i >= removed)) die("hash: wrong keys");
  }
  run.stop();
}

}  // namespace spw::bench
