// teravalidate: says whether a file holds the generator's records in ascending order of their keys.
//
//   teravalidate FILE --records N --checksum HEX        (both as `teragen` printed them)
//
// Reads the file once from beginning to end. Shares with the sort only the record's layout and checksum, not
// its order. Exit status 0: right; 1: wrong.

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/report.h"
#include "terasort/record.h"

int main(int argc, char** argv) {
  examples::Options options(argc, argv);
  const uint64_t expected_count = options.number("records", 0);
  const std::string expected_checksum = options.text("checksum", "");
  options.finish();
  if (options.words().size() != 1 || expected_checksum.empty()) {
    examples::fail("usage: teravalidate FILE --records N --checksum HEX");
  }

  std::FILE* file = std::fopen(options.words()[0].c_str(), "rb");
  if (file == nullptr) examples::fail("cannot read " + options.words()[0]);
  std::vector<examples::Record> piece(10000);
  unsigned char last_key[examples::kKeyBytes] = {};
  uint64_t count = 0;
  uint64_t checksum = 0;
  uint64_t unordered = 0;
  uint64_t equal_keys = 0;
  while (const size_t bytes = std::fread(piece.data(), 1, piece.size() * sizeof piece[0], file)) {
    if (bytes % sizeof piece[0] != 0) examples::fail("the file does not hold whole records");
    for (size_t i = 0; i < bytes / sizeof piece[0]; ++i) {
      const int order = std::memcmp(last_key, piece[i].key, examples::kKeyBytes);
      if (order > 0) ++unordered;
      if (order == 0 && count > 0) ++equal_keys;
      std::memcpy(last_key, piece[i].key, examples::kKeyBytes);
      checksum += examples::record_hash(piece[i]);
      ++count;
    }
  }
  if (std::ferror(file) != 0) examples::fail("cannot read " + options.words()[0]);
  std::fclose(file);

  const bool ok = unordered == 0 && count == expected_count &&
                  checksum == std::strtoull(expected_checksum.c_str(), nullptr, 16);
  examples::Json()
      .add("name", "teravalidate")
      .add("records", count)
      .add_hex("checksum", checksum)
      .add("unordered", unordered)
      .add("equal_keys", equal_keys)
      .add("ok", ok)
      .print();
  return ok ? 0 : 1;
}
