// A durable region whose calls are made to fail (every_nth.py).
//
//   region write FILE   kSections sections, each of which gives all words the section's number and replaces an object; "committed K" is said
//                       when section K has ended, "closed" when the region was closed, "ended" at the end
//   region read FILE    opens it and prints the number that all words have: "holds K"; 0 if there is nothing
//
// What it is told of a failure it says, and ends with 3.
#include <spillway/durable.h>
#include <spillway/spillway.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace {

constexpr uint64_t kWords = 4096, kSections = 12, kObjectBytes = 3000;
constexpr int kTold = 3, kWrong = 4;

struct Table {
  uint64_t words[kWords];
  unsigned char* object;
};

void say(const char* line, uint64_t number) {
  char text[100];
  const int bytes = snprintf(text, sizeof text, "%s %llu\n", line, static_cast<unsigned long long>(number));
  if (write(1, text, static_cast<size_t>(bytes)) != bytes) _exit(kWrong);
}

[[noreturn]] void told(const char* call) {
  char text[400];
  const int bytes = snprintf(text, sizeof text, "program: %s failed: %s\n", call, spw_error_message());
  if (write(2, text, static_cast<size_t>(bytes)) != bytes) _exit(kWrong);
  exit(kTold);
}

[[noreturn]] void wrong(const char* what) {
  say(what, 0);
  _exit(kWrong);
}

template <class Value>
void store(Value* to, Value value) {
#ifdef PLAIN_STORES
  *to = value;
#else
  if (spw_durable_store(to, &value, sizeof value) != 0) told("spw_durable_store");
#endif
}

void section(spw_durable* region, Table* table, uint64_t number) {
  if (spw_durable_begin() != 0) told("spw_durable_begin");
  for (uint64_t i = 0; i < kWords; ++i) store(&table->words[i], number);
  auto* object = static_cast<unsigned char*>(spw_durable_alloc(region, kObjectBytes));
  if (object == nullptr) told("spw_durable_alloc");
  for (uint64_t i = 0; i < kObjectBytes; ++i) store(&object[i], static_cast<unsigned char>(number));
  if (table->object != nullptr && spw_durable_free(table->object) != 0) told("spw_durable_free");
  store(&table->object, object);
  if (spw_durable_end() != 0) told("spw_durable_end");
}

spw_durable* opened(const char* path) {
  spw_durable* region;
  spw_durable_options options{};
  options.size = sizeof options;
  options.domain = "block";
  options.capacity_bytes = 64 << 20;
  options.threads = 2;
  if (spw_durable_open(path, &options, &region) != 0) told("spw_durable_open");
  return region;
}

// An empty one, all zeros.
Table* made(spw_durable* region) {
  if (spw_durable_begin() != 0) told("spw_durable_begin");
  auto* table = static_cast<Table*>(spw_durable_alloc(region, sizeof(Table)));
  if (table == nullptr) told("spw_durable_alloc");
  for (uint64_t i = 0; i < kWords; ++i) store(&table->words[i], uint64_t{0});
  store(&table->object, static_cast<unsigned char*>(nullptr));
  if (spw_durable_set_root(region, "table", table) != 0) told("spw_durable_set_root");
  if (spw_durable_end() != 0) told("spw_durable_end");
  return table;
}

void write_region(const char* path) {
  spw_durable* region = opened(path);
  auto* table = static_cast<Table*>(spw_durable_root(region, "table"));
  if (table == nullptr) table = made(region);
  const uint64_t before = table->words[0];
  for (uint64_t number = before + 1; number <= before + kSections; ++number) {
    section(region, table, number);
    if (spw_durable_sync() != 0) told("spw_durable_sync");
    say("committed", number);
  }
  if (spw_durable_close(region) != 0) told("spw_durable_close");
  say("closed", 0);
}

void read_region(const char* path) {
  spw_durable* region = opened(path);
  const auto* table = static_cast<const Table*>(spw_durable_root(region, "table"));
  const uint64_t number = table == nullptr ? 0 : table->words[0];
  for (uint64_t i = 0; number != 0 && i < kWords; ++i)
    if (table->words[i] != number) wrong("words of two sections");
  for (uint64_t i = 0; number != 0 && i < kObjectBytes; ++i)
    if (table->object == nullptr || table->object[i] != static_cast<unsigned char>(number))
      wrong("another section's object");
  say("holds", number);
  if (spw_durable_close(region) != 0) told("spw_durable_close");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "write") == 0)
    write_region(argv[2]);
  else if (argc == 3 && strcmp(argv[1], "read") == 0)
    read_region(argv[2]);
  else
    return kWrong;
  say("ended", 0);
  return 0;
}
