#include "durable/region_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "durable/block_writes.h"
#include "durable/pmem.h"
#include "platform/random.h"

namespace spw::durable {

namespace {

constexpr uint64_t kAddressStep = uint64_t{1} << 30;
constexpr unsigned kAddressTries = 64;
constexpr uint64_t kCapacityMin = 8 * kChunkBytes, kCapacityMax = uint64_t{1} << 42;
constexpr uint64_t kSegmentMin = kMmuPageBytes,
                   kSegmentMax = kGiB;  // whole blocks: logs are written apart from each other

Status not_a_region(const std::string& path, const std::string& why) {
  return Status::sentence(EILSEQ, path + " is not a persistent region of this version: " + why);
}

Status check_options(const LayoutOptions& layout) {
  if (layout.slots == 0 || layout.slots > kSlotsMax)
    return Status::sentence(EINVAL, "a persistent region has 1 to " + std::to_string(kSlotsMax) + " slots");
  if (layout.capacity_bytes < kCapacityMin || layout.capacity_bytes > kCapacityMax)
    return Status::sentence(EINVAL, "a persistent region's capacity is " + format_size(kCapacityMin) +
                                        " to " + format_size(kCapacityMax));
  if (layout.segment_bytes < kSegmentMin || layout.segment_bytes > kSegmentMax ||
      layout.segment_bytes % kSegmentMin != 0)
    return Status::sentence(EINVAL, "a slot's first log segment has " + format_size(kSegmentMin) + " to " +
                                        format_size(kSegmentMax) + ", in multiples of the former");
  return {};
}

Status write_header(const platform::File& file, const Header& header) {
  alignas(kMmuPageBytes) std::byte page[kMmuPageBytes] = {};
  std::memcpy(page, &header, sizeof header);
  const iovec segment{page, sizeof page};
  const int64_t written = platform::write_at(file.fd(), &segment, 1, 0);
  if (written != static_cast<int64_t>(sizeof page))
    return Status(written < 0 ? static_cast<int>(-written) : EIO,
                  "cannot write a persistent region's header");
  const int64_t error = platform::sync_all(file.fd());
  return error < 0 ? Status(static_cast<int>(-error), "cannot make a persistent region's header durable")
                   : Status();
}

// Where the next piece of the file begins that is no hole; `end`: none does before it.
uint64_t next_data(const platform::File& file, uint64_t offset, uint64_t end) {
  const off_t found = ::lseek(file.fd(), static_cast<off_t>(offset), SEEK_DATA);
  if (found >= 0) return std::min(static_cast<uint64_t>(found), end);
  return errno == ENXIO ? end : offset;  // elsewhere nobody knows of holes
}

bool is_zero(std::byte byte) { return byte == std::byte{0}; }

bool is_zero(const Header& header) {
  static constexpr Header kZero{};
  return std::memcmp(&header, &kZero, sizeof header) == 0;
}

// Not of libstdc++'s random_device, which may ask a newer glibc than there is.
uint64_t draw() {
  uint64_t drawn = 0;
  platform::draw_random(&drawn, sizeof drawn);
  return drawn;
}

// Where a region may lie, and how large it is: what check_options() says of new ones, and where processes have memory.
bool can_be(const LayoutOptions& layout) {
  constexpr uint64_t kLowest = 64 * kKiB, kHighest = uint64_t{1} << 47;
  return check_options(layout) && layout.capacity_bytes % kChunkBytes == 0 &&
         layout.base % kMmuPageBytes == 0 && layout.base >= kLowest &&
         layout.base <= kHighest - layout.capacity_bytes;
}

}  // namespace

Status read_through(const platform::File& file, const std::string& path, uint64_t begin, uint64_t end,
                    const VisitPiece& visit) {
  std::vector<std::byte> piece(std::min<uint64_t>(kMiB, end - begin));
  for (uint64_t offset = begin; offset < end;) {
    offset = next_data(file, offset, end);
    if (offset == end) break;
    const iovec segment{piece.data(), std::min<uint64_t>(piece.size(), end - offset)};
    int64_t got = platform::read_at(file.fd(), &segment, 1, offset);
    if (got == -EINTR) continue;
    if (got > 0) got -= got % static_cast<int64_t>(sizeof(uint64_t));  // what is left is read again
    if (got <= 0)
      return Status(got == 0 ? EIO : static_cast<int>(-got),
                    "cannot read " + path + " at offset " + std::to_string(offset) + "; nothing was changed");
    if (Status status = visit(offset, piece.data(), static_cast<size_t>(got)); !status) return status;
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

Result<platform::File> open_locked(const std::string& path, int flags, platform::Lock lock) {
  auto file = platform::open_file(path, flags);
  if (!file) return file;
  Status status = platform::lock_file(*file, lock);
  if (status) return file;
  if (status.error() != EWOULDBLOCK) return status;
  return Status::sentence(EWOULDBLOCK, path + " is in use: a process has this persistent region open");
}

Status check_header(const Header& header, uint64_t bytes, const std::string& path) {
  if (header.magic != kMagic) return not_a_region(path, "it does not begin as one");
  if (header.version != kVersion)
    return not_a_region(path, "its format is version " + std::to_string(header.version) + ", and this is " +
                                  std::to_string(kVersion) + "; the Spillway that made it reads it");
  if (header.checksum != checksum_of(header) || !is_checked_word(header.epoch, epoch_place(header)))
    return not_a_region(path, "its header is damaged");
  const LayoutOptions layout{header.base, header.capacity_bytes, header.slots, header.segment_bytes};
  if (!can_be(layout)) return not_a_region(path, "its sizes do not fit together");
  const Header like_it = make_header(layout, header.identity);
  if (std::memcmp(&like_it, &header, offsetof(Header, checksum)) != 0 ||
      header.heap_offset + kChunkBytes > header.capacity_bytes || bytes > header.capacity_bytes)
    return not_a_region(path, "its sizes do not fit together");
  if (bytes < fixed_bytes(header))
    return not_a_region(path, "it has " + format_size(bytes) + " where its header and logs alone take " +
                                  format_size(fixed_bytes(header)));
  if ((bytes - fixed_bytes(header)) % kChunkBytes != 0)
    return Status::sentence(EILSEQ, path + " was cut off, or something was added to it: it ends at " +
                                        std::to_string(bytes) +
                                        ", in the middle of a chunk; restore it from a copy");
  return {};
}

// Words behind the end are those of chunks that the file was about to get: free, or not written yet. What else a word
// says was written when the file was long enough for it, and a file gets no shorter.
Status check_end(const platform::File& file, const Header& header, uint64_t bytes, const std::string& path) {
  const uint64_t first = header.chunks_offset + (bytes - header.heap_offset) / kChunkBytes * sizeof(uint64_t);
  return read_through(
      file, path, first, header.heap_offset, [&](uint64_t offset, const std::byte* data, size_t length) {
        for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
          uint64_t word;
          std::memcpy(&word, data + at, sizeof word);
          const uint64_t chunk = (offset + at - header.chunks_offset) / sizeof word;
          if (word == 0 || word == ChunkWord{}.word(chunk_place(header, chunk))) continue;
          const bool is_used = is_checked_word(word, chunk_place(header, chunk));
          return Status::sentence(
              EILSEQ, path + (is_used ? " was cut off: it has " : " is damaged: it has ") +
                          std::to_string(bytes) + " bytes, and chunk " + std::to_string(chunk) +
                          " behind its end is " + (is_used ? "in use" : "none that was ever written") +
                          "; restore it from a copy");
        }
        return Status();
      });
}

Result<Header> read_header(const platform::File& file, const std::string& path) {
  Header header{};
  const iovec segment{&header, sizeof header};
  const int64_t got = platform::read_at(file.fd(), &segment, 1, 0);
  if (got < 0) return Status(static_cast<int>(-got), "cannot read " + path);
  if (got < static_cast<int64_t>(sizeof header)) return not_a_region(path, "it is too short");
  return header;
}

Result<std::unique_ptr<RegionFile>> RegionFile::open(const std::string& path, const Options& options) {
  std::unique_ptr<RegionFile> region(new RegionFile);
  region->path_ = path;
  region->flush_ = options.flush;
  auto file = open_locked(path, O_RDWR | (options.may_create ? O_CREAT : 0), platform::Lock::kExclusive);
  if (!file) return file.status();
  region->file_ = std::move(*file);
  auto bytes = platform::file_size(region->file_);
  if (!bytes) return bytes.status();
  if (*bytes != 0) {
    auto header = durable::read_header(region->file_, path);
    if (!header) return header.status();
    region->header_ = *header;
  }
  if (is_zero(region->header_)) {
    if (!options.may_create) return not_a_region(path, "it is empty");
    // What is left of a creation that did not get to its header is made again; nothing else is.
    if (Status status = region->check_zeros(*bytes); !status) return status;
    if (Status status = region->create(options); !status) return status;
    bytes = platform::file_size(region->file_);
    if (!bytes) return bytes.status();
  }
  if (Status status = check_header(region->header_, *bytes, path); !status) return status;
  if (Status status = check_end(region->file_, region->header_, *bytes, path); !status) return status;
  region->view_.bytes = *bytes;
  if (Status status = region->map(options.domain); !status) return status;
  return region;
}

Status RegionFile::check_zeros(uint64_t bytes) const {
  return read_through(file_, path_, 0, bytes, [this](uint64_t, const std::byte* data, size_t length) {
    if (std::all_of(data, data + length, [](std::byte byte) { return is_zero(byte); })) return Status();
    return not_a_region(path_, "it does not begin as one");
  });
}

Status RegionFile::create(const Options& options) {
  if (Status status = check_options(options.layout); !status) return status;
  LayoutOptions layout = options.layout;
  layout.capacity_bytes = round_up(layout.capacity_bytes, kChunkBytes);
  const uint64_t places = (kAddressEnd - kAddressFirst - layout.capacity_bytes) / kAddressStep;
  for (unsigned i = 0; layout.base == 0 && i < kAddressTries; ++i) {
    const uint64_t base = kAddressFirst + draw() % places * kAddressStep;
    if (platform::reserve_range(base, layout.capacity_bytes)) layout.base = base;
  }
  if (layout.base == 0)
    return Status::sentence(
        ENOMEM, "no addresses are free for a persistent region of " + format_size(layout.capacity_bytes));
  header_ = make_header(layout, draw());
  if (header_.heap_offset + kChunkBytes > header_.capacity_bytes)
    return Status::sentence(EINVAL, "a persistent region for " + std::to_string(layout.slots) +
                                        " threads needs a capacity of more than " +
                                        format_size(header_.heap_offset));
  const uint64_t bytes = fixed_bytes(header_);
  if (Status status = platform::allocate_space(file_, 0, bytes); !status && status.error() != EOPNOTSUPP)
    return Status(status.error(),
                  "cannot take " + format_size(bytes) + " for the header and logs of " + path_);
  if (Status status = platform::set_file_size(file_, bytes); !status) return status;
  if (const int64_t error = platform::sync_all(file_.fd()); error < 0)
    return Status(static_cast<int>(-error), "cannot make " + path_ + " durable");
  if (Status status = write_header(file_, header_); !status) return status;
  // The name, too: without it the file is lost.
  const size_t slash = path_.rfind('/');
  auto directory =
      platform::open_file(slash == path_.npos ? "." : path_.substr(0, slash + 1), O_RDONLY | O_DIRECTORY);
  if (!directory) return directory.status();
  const int64_t error = platform::sync_all(directory->fd());
  return error < 0 ? Status(static_cast<int>(-error), "cannot make the name of " + path_ + " durable")
                   : Status();
}

Status RegionFile::map(DomainKind wanted) {
  auto range = platform::reserve_range(header_.base, header_.capacity_bytes);
  if (!range) {
    if (range.status().error() != EEXIST) return range.status();
    char address[32];
    std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(header_.base));
    return Status::sentence(EEXIST, path_ + " has to be mapped at " + address + ", for " +
                                        format_size(header_.capacity_bytes) +
                                        ", and this process has something else there already");
  }
  range_ = std::move(*range);
  view_.mapped = range_.data();
  if (Status status = map_as(wanted); !status) return status;
  // A forked child must not share what its parent's sections change.
  return platform::advise(range_.data(), header_.capacity_bytes, platform::Advice::kDontFork);
}

Status RegionFile::map_as(DomainKind wanted) {
  auto in_memory = platform::is_in_memory(file_);
  if (!in_memory) return in_memory.status();
  if (Status status = read_what_opening_reads(); !status) return status;
  if (wanted != DomainKind::kBlock) {
    if (platform::map_file_as(range_.data(), file_, header_.capacity_bytes,
                              platform::Sharing::kSynchronous) ||
        (*in_memory &&
         platform::map_file_as(range_.data(), file_, header_.capacity_bytes, platform::Sharing::kShared))) {
      domain_ = make_pmem(flush_);
      return {};
    }
    if (wanted == DomainKind::kPmem)
      return Status::sentence(
          ENOTSUP, path_ +
                       " is not on persistent memory (a DAX filesystem, or tmpfs in its place): stores "
                       "would be lost; use the domain block");
  }
  domain_ = make_block_writes(file_, range_.data());
  return platform::map_file_as(range_.data(), file_, header_.capacity_bytes, platform::Sharing::kPrivate);
}

// So that what cannot be read is an error: in the mapping it would be a SIGBUS. All but objects, of which the first
// bytes of large ones are looked at.
Status RegionFile::read_what_opening_reads() const {
  const auto read = [this](uint64_t begin, uint64_t end) {
    return read_through(file_, path_, begin, end,
                        [](uint64_t, const std::byte*, size_t) { return Status(); });
  };
  const auto begin_of = [this](uint64_t chunk) { return header_.heap_offset + chunk * kChunkBytes; };
  const uint64_t count = (view_.bytes - header_.heap_offset) / kChunkBytes;
  if (Status status = read(0, header_.chunks_offset); !status) return status;
  uint64_t read_until = 0;  // of logs: runs may overlap in a file that somebody else made
  return read_through(file_, path_, header_.chunks_offset, header_.chunks_offset + count * sizeof(uint64_t),
                      [&](uint64_t offset, const std::byte* data, size_t length) {
                        Status status;
                        for (size_t at = 0; at < length && status; at += sizeof(uint64_t)) {
                          uint64_t bits;
                          std::memcpy(&bits, data + at, sizeof bits);
                          const uint64_t chunk = (offset + at - header_.chunks_offset) / sizeof bits;
                          if (!is_checked_word(bits, chunk_place(header_, chunk)))
                            continue;  // check_chunks() names it
                          const ChunkWord word = ChunkWord::of(bits);
                          const uint64_t end = std::min(count, chunk + word.chunks);
                          if (word.kind == ChunkKind::kLarge)
                            status = read(begin_of(chunk), begin_of(chunk) + kMmuPageBytes);
                          if (word.kind != ChunkKind::kLog || end <= read_until) continue;
                          status = read(begin_of(std::max(chunk, read_until)), begin_of(end));
                          read_until = end;
                        }
                        return status;
                      });
}

Status RegionFile::grow_to(uint64_t bytes) {
  if (bytes <= view_.bytes) return {};
  // With space behind it: where memory is the file's, a store to a page for which there is none would end the process.
  if (Status status = platform::allocate_space(file_, view_.bytes, bytes - view_.bytes);
      !status && status.error() != EOPNOTSUPP)
    return Status(status.error(), "cannot make " + path_ + " longer, to " + format_size(bytes));
  if (Status status = platform::set_file_size(file_, bytes); !status) return status;
  if (const int64_t error = platform::sync_all(file_.fd()); error < 0)
    return Status(static_cast<int>(-error), "cannot make the new size of " + path_ + " durable");
  view_.bytes = bytes;
  return {};
}

}  // namespace spw::durable
