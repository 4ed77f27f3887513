// A map from strings to strings in a persistent region: a place to start from when you write a structure of your own.
//
// What to do, in short:
//   1. Open the region, and look for the structure's root by name; make it if it is not there. That is all a restart
//      takes: the runtime has undone what a crash left unfinished before spw_durable_open() returns.
//   2. Guard what changes the structure with a mutex. From lock to unlock
//       is a section: it is there after a crash as a whole or not at all.
//      A std::mutex will do, in ordinary memory, if the program is linked with libspillway.so.
//   3. Announce every store to the region, before it, by store() below. (Compiled by spillway-clang++
//      -fspillway-durable, the stores would be plain assignments.)
//   4. Allocate and free in sections, by spw_durable_alloc() and spw_durable_free(): what was allocated in a section
//      that a crash has undone is free again.
//   5. When something goes wrong in the middle of a section, spw_durable_undo() puts back what it has stored.
//
// The map is chained, with a power of two buckets, doubled when there are as many entries. An entry is never changed
// but for its link: put() of a key that is there links a new entry in and frees the old one.
//
// Threads: any; one mutex over all. Limits: keys and values of less than 4 GiB.
#pragma once

#include <spillway/durable.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace examples {

class DurableMap {
 public:
  DurableMap() = default;
  DurableMap(const DurableMap&) = delete;
  DurableMap& operator=(const DurableMap&) = delete;
  ~DurableMap() {
    if (region_ != nullptr) spw_durable_close(region_);
  }

  // False, of this and what follows: spw_error_message() says why. Nothing was changed.
  bool open(const char* path) {
    if (spw_durable_open(path, nullptr, &region_) != 0) return false;
    root_ = static_cast<Root*>(spw_durable_root(region_, kName));
    return root_ != nullptr || make_root();
  }

  bool put(std::string_view key, std::string_view value) {
    std::lock_guard section(mutex_);
    Entry* entry = new_entry(key, value);
    if (entry == nullptr) return false;
    Entry** link = find(key);
    Entry* before = *link;
    bool ok = store(entry->next, before == nullptr ? nullptr : before->next) && store(*link, entry);
    if (before != nullptr)
      ok = ok && spw_durable_free(before) == 0;
    else
      ok = ok && store(root_->count, root_->count + 1) && (root_->count <= root_->buckets || grow());
    return ok || undo();
  }

  std::optional<std::string> get(std::string_view key) {
    std::lock_guard section(mutex_);
    const Entry* entry = *find(key);
    if (entry == nullptr) return std::nullopt;
    return std::string(entry->text() + entry->key_bytes, entry->value_bytes);
  }

  // False also where there is none.
  bool erase(std::string_view key) {
    std::lock_guard section(mutex_);
    Entry** link = find(key);
    Entry* entry = *link;
    if (entry == nullptr) return false;
    const bool ok =
        store(*link, entry->next) && store(root_->count, root_->count - 1) && spw_durable_free(entry) == 0;
    return ok || undo();
  }

  uint64_t count() {
    std::lock_guard section(mutex_);
    return root_->count;
  }

  // Entries that can be reached; as many as count() says if all is well.
  uint64_t walk() {
    std::lock_guard section(mutex_);
    uint64_t entries = 0;
    for (uint64_t i = 0; i < root_->buckets; ++i)
      for (const Entry* entry = root_->first[i]; entry != nullptr; entry = entry->next)
        entries += hash_of({entry->text(), entry->key_bytes}) % root_->buckets == i;
    return entries;
  }

 private:
  static constexpr const char* kName = "map";
  static constexpr uint64_t kBucketsMin = 64;

  // In front of its key's and its value's bytes.
  struct Entry {
    Entry* next;
    uint32_t key_bytes, value_bytes;
    char* text() { return reinterpret_cast<char*>(this + 1); }
    const char* text() const { return reinterpret_cast<const char*>(this + 1); }
  };
  struct Root {
    uint64_t count, buckets;
    Entry** first;
  };

  template <class T>
  static bool store(T& to, T value) {
    return spw_durable_store(&to, &value, sizeof to) == 0;
  }
  static bool undo() {
    spw_durable_undo();
    return false;
  }

  static uint64_t hash_of(std::string_view key) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    return hash ^ hash >> 32;
  }

  bool make_root() {
    std::lock_guard section(mutex_);
    root_ = static_cast<Root*>(spw_durable_alloc(region_, sizeof(Root)));
    Entry** first = new_buckets(kBucketsMin);
    if (root_ == nullptr || first == nullptr) return undo();
    const Root root{0, kBucketsMin, first};
    return (store(*root_, root) && spw_durable_set_root(region_, kName, root_) == 0) || undo();
  }
  Entry** new_buckets(uint64_t count) {
    const size_t bytes = count * sizeof(Entry*);
    void* buckets = spw_durable_alloc(region_, bytes);
    if (buckets == nullptr || spw_durable_will_store(buckets, bytes) != 0) return nullptr;
    return static_cast<Entry**>(std::memset(buckets, 0, bytes));
  }
  Entry* new_entry(std::string_view key, std::string_view value) {
    const size_t bytes = sizeof(Entry) + key.size() + value.size();
    auto* entry = static_cast<Entry*>(spw_durable_alloc(region_, bytes));
    if (entry == nullptr) return nullptr;
    if (spw_durable_will_store(entry, bytes) != 0) {
      undo();
      return nullptr;
    }
    *entry = {nullptr, static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size())};
    std::memcpy(entry->text(), key.data(), key.size());
    std::memcpy(entry->text() + key.size(), value.data(), value.size());
    return entry;
  }

  // The link to the key's entry, or the null one where it would be.
  Entry** find(std::string_view key) {
    Entry** link = &root_->first[hash_of(key) % root_->buckets];
    while (*link != nullptr && std::string_view((*link)->text(), (*link)->key_bytes) != key)
      link = &(*link)->next;
    return link;
  }
  bool grow() {
    const uint64_t buckets = root_->buckets * 2;
    Entry** to = new_buckets(buckets);
    if (to == nullptr) return false;
    for (uint64_t i = 0; i < root_->buckets; ++i) {
      for (Entry *entry = root_->first[i], *next = nullptr; entry != nullptr; entry = next) {
        next = entry->next;
        Entry*& bucket = to[hash_of({entry->text(), entry->key_bytes}) % buckets];
        if (!store(entry->next, bucket) || !store(bucket, entry)) return false;
      }
    }
    const Root root{root_->count, buckets, to};
    return spw_durable_free(root_->first) == 0 && store(*root_, root);
  }

  spw_durable* region_ = nullptr;
  Root* root_ = nullptr;
  std::mutex mutex_;
};

}  // namespace examples
