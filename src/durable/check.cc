#include "durable/check.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

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
  const StateBytes states(region.header(), chunk);
  const std::byte* begin = region.chunk_at(chunk);
  for (uint64_t i = 0; i < objects_of(word.size_class); ++i) {
    if (begin[i] == states.allocated(i)) {
      ++report.objects;
      report.object_bytes += kObjectBytes[word.size_class];
    } else if (begin[i] != states.free(i)) {
      add(report,
          "the state of object " + std::to_string(i) + " is neither free nor allocated" + at_chunk(chunk));
    }
  }
}

// How many chunks are behind the word.
uint64_t check_chunk(const RegionView& region, uint64_t chunk, CheckReport& report) {
  const ChunkRun run = chunk_run(region, chunk);
  if (run.fault != nullptr) {
    add(report, run.fault + at_chunk(chunk));
  } else if (run.word.kind == ChunkKind::kObjects) {
    check_objects(region, chunk, run.word, report);
  } else if (run.word.kind == ChunkKind::kLog) {
    report.log_chunks += run.chunks;
  } else if (run.is_live) {
    ++report.objects;
    report.object_bytes += run.chunks * kChunkBytes - kLargeOffset;
  } else {
    report.free_chunks += run.chunks;  // also what is left of a large object that is gone
  }
  return run.chunks;
}

void check_roots(const RegionView& region, const std::vector<Undo>& undo, CheckReport& report) {
  const std::vector<Root> roots = roots_after(region, undo);
  for (uint32_t i = 0; i < kRootsMax; ++i) {
    const Root& root = roots[i];
    if (const char* fault = fault_of(root, region, i)) {
      add(report, "root " + std::to_string(i) + " " + fault);
      continue;
    }
    if (root.name[0] == '\0') continue;
    report.roots.push_back(root.name);
    if (!region.holds(root.address, 1) || root.address < region.header().base + region.header().heap_offset)
      add(report, "the root \"" + std::string(root.name) + "\" is not in the heap");
  }
}

// Brings in what of a chunk is looked at. Null: it is all there.
using LoadChunk = std::function<Status(uint64_t chunk)>;

Status check_into(CheckReport& report, const RegionView& region, bool stores_leak, const TellChecked& tells,
                  const LoadChunk& load) {
  auto histories = read_histories(region, stores_leak);
  std::vector<Undo> undo;
  if (histories) {
    undo = to_undo(*histories);
    for (const SlotHistory& history : *histories) {
      report.sections_to_keep += history.kept;
      report.sections_to_undo += history.sections.size() - history.kept;
    }
  } else {
    add(report, histories.status().message());
  }
  report.chunks = region.chunk_count();
  for (uint64_t chunk = 0, told = 0; chunk < report.chunks;) {
    if (Status status = load ? load(chunk) : Status(); !status) return status;
    chunk += check_chunk(region, chunk, report);
    if (!tells || chunk - told < kToldChunks) continue;
    tells(chunk, report.chunks);
    told = chunk;
  }
  check_roots(region, undo, report);
  return {};
}

// A file's contents in memory of our own, as far as they are looked at: what is read, and not mapped, can be cut off or
// be unreadable without a SIGBUS.
class FileCopy {
 public:
  FileCopy(const platform::File& file, const std::string& path, const RegionView& region)
      : file_(file), path_(path), region_(region) {}

  // All but the objects. The header stays the one that was checked.
  Status read_logs() {
    const Header header = region_.header();
    const uint64_t count = region_.chunk_count();
    if (Status status = read(0, header.chunks_offset + count * sizeof(uint64_t)); !status) return status;
    region_.header() = header;
    uint64_t done = 0;
    for (uint64_t chunk = 0; chunk < count; ++chunk) {
      const uint64_t bits = region_.chunks()[chunk];
      const ChunkWord word = ChunkWord::of(bits);
      if (word.kind != ChunkKind::kLog || !is_checked_word(bits, chunk_place(region_.header(), chunk)))
        continue;
      const uint64_t end = std::min(count, chunk + word.chunks);
      if (end <= done) continue;
      if (Status status = read(begin_of(std::max(chunk, done)), begin_of(end)); !status) return status;
      done = end;
    }
    return {};
  }
  // The states of objects, in place of those of the chunk before: a region can be larger than memory.
  Status load_states(uint64_t chunk) {
    const ChunkKind kind = ChunkWord::of(region_.chunks()[chunk]).kind;
    if (kind != ChunkKind::kObjects && kind != ChunkKind::kLarge) return {};
    static_assert(objects_of(0) <= kMmuPageBytes);
    if (loaded_ != 0)
      if (Status status =
              platform::advise(region_.mapped + loaded_, kMmuPageBytes, platform::Advice::kDontNeed);
          !status)
        return status;
    loaded_ = begin_of(chunk);
    return read(loaded_, loaded_ + kMmuPageBytes);
  }

 private:
  uint64_t begin_of(uint64_t chunk) const { return region_.header().heap_offset + chunk * kChunkBytes; }
  Status read(uint64_t begin, uint64_t end) {
    return read_through(file_, path_, begin, end, [&](uint64_t offset, const std::byte* data, size_t bytes) {
      std::memcpy(region_.mapped + offset, data, bytes);
      return Status();
    });
  }

  const platform::File& file_;
  const std::string& path_;
  const RegionView& region_;
  uint64_t loaded_ = 0;  // offset of the page; 0: none is
};

}  // namespace

CheckReport check_region(const RegionView& region, bool stores_leak, const TellChecked& tells) {
  CheckReport report;
  (void)check_into(report, region, stores_leak, tells, nullptr);
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
  if (Status status = check_end(*file, *header, *bytes, path); !status) return status;
  auto in_memory = platform::is_in_memory(*file);
  if (!in_memory) return in_memory.status();
  auto memory = platform::map_anonymous(round_up(*bytes, kMmuPageBytes));
  if (!memory) return memory.status();
  const RegionView region{memory->data(), *bytes};
  region.header() = *header;
  FileCopy copy(*file, path, region);
  if (Status status = copy.read_logs(); !status) return status;
  CheckReport report;
  Status status = check_into(report, region, *in_memory, tells,
                             [&copy](uint64_t chunk) { return copy.load_states(chunk); });
  if (!status) return status;
  return report;
}

}  // namespace spw::durable
