#include "durable/check.h"

#include <fcntl.h>

#include <algorithm>

#include "durable/objects.h"
#include "durable/region_file.h"

namespace spw::durable {

namespace {

constexpr uint64_t kToldChunks = 256;

constexpr size_t kProblemsMax = 32;

void add(CheckReport& report, std::string problem) {
  if (report.problems.size() < kProblemsMax) report.problems.push_back(std::move(problem));
}

std::string at_chunk(uint64_t chunk) { return " (chunk " + std::to_string(chunk) + ")"; }

void check_objects(const RegionView& region, uint64_t chunk, ChunkWord word, CheckReport& report) {
  const std::byte* begin = region.mapped + region.header().heap_offset + chunk * kChunkBytes;
  for (uint64_t i = 0; i < objects_of(word.size_class); ++i) {
    if (begin[i] == std::byte{1}) {
      ++report.objects;
      report.object_bytes += kObjectBytes[word.size_class];
    } else if (begin[i] != std::byte{0}) {
      add(report,
          "the state of object " + std::to_string(i) + " is neither free nor allocated" + at_chunk(chunk));
    }
  }
}

// How many chunks are behind the word.
uint64_t check_chunk(const RegionView& region, uint64_t chunk, CheckReport& report) {
  const ChunkWord word = ChunkWord::of(region.chunks()[chunk]);
  const uint64_t left = region.chunk_count() - chunk;
  switch (word.kind) {
    case ChunkKind::kFree:
    case ChunkKind::kRest:  // of a large object that is gone
      ++report.free_chunks;
      return 1;
    case ChunkKind::kObjects:
      if (word.size_class < kClasses)
        check_objects(region, chunk, word, report);
      else
        add(report, "a size class that does not exist" + at_chunk(chunk));
      return 1;
    case ChunkKind::kLarge:
    case ChunkKind::kLog: {
      if (word.chunks == 0 || word.chunks > left) {
        add(report, "a run of chunks ends past the end of the file" + at_chunk(chunk));
        return 1;
      }
      const bool is_log = word.kind == ChunkKind::kLog;
      const std::byte state = *(region.mapped + region.header().heap_offset + chunk * kChunkBytes);
      if (is_log) report.log_chunks += word.chunks;
      if (!is_log && state == std::byte{0}) report.free_chunks += word.chunks;
      if (!is_log && state != std::byte{0}) {
        ++report.objects;
        report.object_bytes += word.chunks * kChunkBytes - kLargeOffset;
      }
      return word.chunks;
    }
  }
  add(report, "a kind of chunk that does not exist" + at_chunk(chunk));
  return 1;
}

void check_roots(const RegionView& region, CheckReport& report) {
  for (uint32_t i = 0; i < kRootsMax; ++i) {
    const Root& root = region.roots()[i];
    if (root.name[0] == '\0') continue;
    if (std::find(root.name, root.name + sizeof root.name, '\0') == root.name + sizeof root.name) {
      add(report, "the name of root " + std::to_string(i) + " has no end");
      continue;
    }
    report.roots.push_back(root.name);
    if (!region.holds(root.address, 1) || root.address < region.header().base + region.header().heap_offset)
      add(report, "the root \"" + std::string(root.name) + "\" is not in the heap");
  }
}

}  // namespace

CheckReport check_region(const RegionView& region, bool stores_leak, const TellChecked& tells) {
  CheckReport report;
  auto histories = read_histories(region, stores_leak);
  if (histories) {
    for (const SlotHistory& history : *histories) {
      report.sections_to_keep += history.kept;
      report.sections_to_undo += history.sections.size() - history.kept;
    }
  } else {
    add(report, histories.status().message());
  }
  report.chunks = region.chunk_count();
  for (uint64_t chunk = 0, told = 0; chunk < report.chunks;) {
    chunk += check_chunk(region, chunk, report);
    if (!tells || chunk - told < kToldChunks) continue;
    tells(chunk, report.chunks);
    told = chunk;
  }
  check_roots(region, report);
  return report;
}

Result<CheckReport> check_file(const std::string& path, const TellChecked& tells) {
  auto file = open_locked(path, O_RDONLY, platform::Lock::kShared);
  if (!file) return file.status();
  auto bytes = platform::file_size(*file);
  if (!bytes) return bytes.status();
  auto header = read_header(*file, path);
  if (!header) return header.status();
  if (Status status = check_header(*header, *bytes, path); !status) return status;
  auto in_memory = platform::is_in_memory(*file);
  if (!in_memory) return in_memory.status();
  const uint64_t mapped = round_up(*bytes, kMmuPageBytes);
  auto range = platform::reserve_range(0, mapped);
  if (!range) return range.status();
  if (Status status = platform::map_file_as(range->data(), *file, mapped, platform::Sharing::kPrivate);
      !status)
    return status;
  return check_region({range->data(), *bytes}, *in_memory, tells);
}

}  // namespace spw::durable
