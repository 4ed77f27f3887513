// A table of keys and values in one mapped file, read as RocksDB reads its plain tables: an index of prefixes leads to
// the first of a few rows, which are walked in place, without a block cache or copies.
//
// The file: Header, rows in the order of their keys, the index. A row: length of the value (2 bytes), key (kKeyBytes),
// value. A key is its number in hexadecimal digits, padded; kRowsPerPrefix keys share all but the last digit.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/options.h"
#include "common/random.h"

namespace examples {

constexpr size_t kKeyBytes = 48;
constexpr uint64_t kRowsPerPrefix = 16;
constexpr size_t kValueBytesMax = 1024;

struct Key {
  char text[kKeyBytes];

  explicit Key(uint64_t number) {
    std::memset(text, 'k', sizeof text);
    for (size_t i = 0; i < 16; ++i) text[kKeyBytes - 1 - i] = "0123456789abcdef"[number >> 4 * i & 15];
  }
};

inline double unit(uint64_t random) { return (static_cast<double>(random >> 11) + 0.5) * 0x1p-53; }

// Sizes as mixgraph draws them: a generalised Pareto distribution (Cao et al., FAST 2020).
inline size_t value_bytes(uint64_t number, uint64_t version) {
  constexpr double kShape = 0.2615, kScale = 31.8;
  const double size = kScale * (std::pow(unit(random_at(3 + version, number)), -kShape) - 1) / kShape;
  return std::min<size_t>(1 + static_cast<size_t>(size), kValueBytesMax);
}

inline char value_byte(uint64_t number, uint64_t version, size_t i) {
  return static_cast<char>('a' + (number + 7 * version + i) % 26);
}

inline std::string value_of(uint64_t number, uint64_t version) {
  std::string value(value_bytes(number, version), '\0');
  for (size_t i = 0; i < value.size(); ++i) value[i] = value_byte(number, version, i);
  return value;
}

class Table {
 public:
  struct Row {
    std::string_view key, value;
  };

  static void make(const std::string& path, uint64_t pairs) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) fail("cannot write " + path);
    Header header{pairs, 0};
    std::vector<uint64_t> index;
    uint64_t at = sizeof header;
    bool good = std::fwrite(&header, sizeof header, 1, file) == 1;
    for (uint64_t number = 0; number < pairs && good; ++number) {
      if (number % kRowsPerPrefix == 0) index.push_back(at);
      const Key key(number);
      const std::string value = value_of(number, 0);
      const auto bytes = static_cast<uint16_t>(value.size());
      good = std::fwrite(&bytes, sizeof bytes, 1, file) == 1 &&
             std::fwrite(key.text, kKeyBytes, 1, file) == 1 &&
             std::fwrite(value.data(), value.size(), 1, file) == 1;
      at += sizeof bytes + kKeyBytes + value.size();
    }
    // The index is aligned as its entries are.
    header.index_offset = (at + 7) / 8 * 8;
    good = good && std::fwrite("\0\0\0\0\0\0\0", header.index_offset - at, 1, file) <= 1 &&
           std::fwrite(index.data(), sizeof index[0], index.size(), file) == index.size() &&
           std::fseek(file, 0, SEEK_SET) == 0 && std::fwrite(&header, sizeof header, 1, file) == 1 &&
           std::fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (std::fclose(file) != 0 || !good) fail("cannot write " + path);
  }

  Table(const std::string& path, bool expect_random) {
    const int file = open(path.c_str(), O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) fail("cannot open " + path);
    bytes_ = static_cast<uint64_t>(status.st_size);
    void* address = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (address == MAP_FAILED) fail("cannot map " + path);
    if (expect_random && madvise(address, bytes_, MADV_RANDOM) != 0) fail("cannot advise the kernel");
    data_ = static_cast<const char*>(address);
  }
  ~Table() { munmap(const_cast<char*>(data_), bytes_); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  uint64_t bytes() const { return bytes_; }
  uint64_t pairs() const { return header().pairs; }

  // The value of `key`, whose number is `number`; empty where there is none.
  std::string_view get(const Key& key, uint64_t number) const {
    const char* row = first_row(number / kRowsPerPrefix);
    for (uint64_t i = 0; i < kRowsPerPrefix; ++i) {
      const Row found = row_at(row);
      if (std::memcmp(found.key.data(), key.text, kKeyBytes) == 0) return found.value;
      row = found.value.data() + found.value.size();
    }
    return {};
  }

  // Calls visit(row) for `count` rows from the first of the prefix of `number` on.
  template <class Visit>
  void scan(uint64_t number, uint64_t count, Visit visit) const {
    const uint64_t first = number / kRowsPerPrefix * kRowsPerPrefix;
    const char* row = first_row(first / kRowsPerPrefix);
    for (uint64_t i = first; i < std::min(first + count, pairs()); ++i) {
      const Row found = row_at(row);
      visit(found);
      row = found.value.data() + found.value.size();
    }
  }

 private:
  struct Header {
    uint64_t pairs, index_offset;
  };

  const Header& header() const { return *reinterpret_cast<const Header*>(data_); }
  const char* first_row(uint64_t prefix) const {
    return data_ + reinterpret_cast<const uint64_t*>(data_ + header().index_offset)[prefix];
  }
  static Row row_at(const char* row) {
    uint16_t bytes;
    std::memcpy(&bytes, row, sizeof bytes);
    return {{row + sizeof bytes, kKeyBytes}, {row + sizeof bytes + kKeyBytes, bytes}};
  }

  const char* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace examples
