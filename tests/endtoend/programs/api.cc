// The public interface, used by a recompiled program.
#include <spillway/spillway.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "parts.h"

namespace {

constexpr size_t kBytes = size_t{24} << 20;

char* text_of(size_t bytes) {
  char* text = static_cast<char*>(std::malloc(bytes + 1));
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + i % 23);
  text[bytes] = 0;
  return text;
}

// strlen() block by block: one pin for each, and a plain loop inside.
size_t length_by_blocks(const char* text) {
  size_t length = 0;
  for (;;) {
    spw_pinned pin;
    if (spw_pin(text + length, SIZE_MAX, SPW_READ, &pin) != 0) std::abort();
    const void* end = std::memchr(pin.data, 0, pin.bytes);
    length += end ? static_cast<size_t>(static_cast<const char*>(end) - static_cast<const char*>(pin.data))
                  : pin.bytes;
    spw_unpin(&pin);
    if (end) return length;
  }
}

int lengths(long) {
  char* text = text_of(kBytes);
  std::printf("managed %d\n", spw_is_managed(text));
  for (const size_t from : {size_t{0}, size_t{1}, kBytes - 4097, kBytes})
    std::printf("%zu %d\n", from, length_by_blocks(text + from) == kBytes - from);
  std::free(text);
  return 0;
}

// Writes through pins, of blocks that are wholly overwritten too, are what everybody reads afterwards.
int writes(long) {
  std::vector<char> bytes(kBytes, 1), expected(kBytes);
  for (size_t at = 0; at < kBytes;) {
    spw_pinned pin;
    const spw_access access = at / 65536 % 2 ? SPW_OVERWRITE : SPW_WRITE;
    if (spw_pin(&bytes[at], std::min<size_t>(kBytes - at, 65536), access, &pin) != 0) std::abort();
    std::memset(pin.data, static_cast<int>(at >> 12 & 127), pin.bytes);
    std::memset(&expected[at], static_cast<int>(at >> 12 & 127), pin.bytes);
    at += pin.bytes;
    spw_unpin(&pin);
  }
  std::printf("same %d\n", bytes == expected);
  return 0;
}

// What was asked for ahead of need is there, with what it held.
int prefetches(long) {
  std::vector<uint64_t> words(kBytes / 8);
  for (size_t i = 0; i < words.size(); ++i) words[i] = i * 7;
  std::vector<spw_range> ranges;
  for (size_t i = 0; i < 64; ++i) ranges.push_back({&words[i * 30'011], 1});
  std::printf("asked %d\n", spw_prefetch_ranges(ranges.data(), ranges.size()));
  bool same = true;
  for (size_t i = 0; i < 64; ++i) same = same && words[i * 30'011] == i * 30'011 * 7;
  std::printf("same %d\n", same);
  spw_statistics statistics;
  statistics.size = sizeof statistics;
  spw_get_statistics(&statistics);
  std::printf("ahead %d\n", statistics.ahead_fills > 0);
  return 0;
}

// A file of its own, changed in place.
int files(long) {
  void* address = nullptr;
  if (spw_map("file:./mapped", 0, kBytes, SPW_MAP_SHARED | SPW_MAP_CREATE, 0, &address) != 0) {
    std::printf("%s\n", spw_error_message());
    return 1;
  }
  auto* words = static_cast<uint64_t*>(address);
  for (size_t i = 0; i < kBytes / 8; ++i) words[i] = i;
  std::printf("flush %d\n", spw_flush(words, kBytes));
  std::printf("unmap %d\n", spw_unmap(address));
  std::FILE* file = std::fopen("mapped", "rb");
  std::vector<uint64_t> read(kBytes / 8);
  const size_t got = std::fread(read.data(), 8, read.size(), file);
  bool same = got == read.size();
  for (size_t i = 0; i < got; ++i) same = same && read[i] == i;
  std::printf("same %d\n", same);
  return 0;
}

int errors(long) {
  spw_pinned pin;
  char plain = 0;
  std::printf("plain %d\n", spw_pin(&plain, 1, SPW_READ, &pin));
  std::printf("said %d\n", std::strlen(spw_error_message()) > 0);
  void* address = nullptr;
  std::printf("missing %d\n", spw_map("file:/nowhere/file", 0, 0, SPW_MAP_SHARED, 0, &address) < 0);
  return 0;
}

// Reads all `count` words of the store that is named in the environment, in an order of this process's own.
int reads_a_store(long count) {
  const auto words = static_cast<uint64_t>(count);
  void* mapped = nullptr;
  if (spw_map(std::getenv("STORE_TO_READ"), 0, words * 8, SPW_MAP_READ_ONLY, 0, &mapped) != 0) {
    std::printf("%s\n", spw_error_message());
    return 1;
  }
  const auto* data = static_cast<const uint64_t*>(mapped);
  const uint64_t start = static_cast<uint64_t>(getpid()) * 7919, pages = words / 512;
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < pages; ++i) {
    const uint64_t page = (start + i * 1'000'003) % pages;  // a prime: every page once
    for (uint64_t word = page * 512; word < page * 512 + 512; ++word) wrong += data[word] != word * 3;
  }
  std::printf("wrong %llu, unmap %d\n", static_cast<unsigned long long>(wrong), spw_unmap(mapped));
  return 0;
}

constexpr Part kParts[] = {{"lengths", lengths}, {"writes", writes}, {"prefetches", prefetches},
                           {"files", files},     {"errors", errors}, {"reads_a_store", reads_a_store}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
