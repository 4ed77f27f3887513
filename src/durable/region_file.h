// The file behind a persistent region: creating it, its header, its
// lock, its mapping at the address that it names, and growth.
//
// Invariants: while it lives, nobody else has the file (flock), and [base, base + capacity) is this mapping. A file is
// made in an order that leaves either a region or a header of zeros, which the next one to open it makes a region of.
// Errors: EWOULDBLOCK (another process has it), EEXIST (its address is taken here), EILSEQ (not a region, of another
// version of the format, or damaged or cut off),
// ENOTSUP (not on such memory), and the filesystem's.
#pragma once

#include <functional>
#include <string>

#include "durable/objects.h"
#include "platform/cache_lines.h"
#include "platform/file.h"
#include "platform/memory.h"

namespace spw::durable {

// Where new regions go: addresses that neither the kernel, nor managed space, nor a sanitizer gives to others.
inline constexpr uint64_t kAddressFirst = uint64_t{17} << 40, kAddressEnd = uint64_t{31} << 40;

class RegionFile final : public Grower {
 public:
  struct Options {
    DomainKind domain = DomainKind::kAuto;
    bool may_create = true;
    platform::LineInstruction flush = platform::LineInstruction::kBest;  // kPmem
    LayoutOptions layout;  // of a new one; base 0: an address is chosen
  };
  static Result<std::unique_ptr<RegionFile>> open(const std::string& path, const Options& options);

  const RegionView& view() const { return view_; }
  Persistence& domain() { return *domain_; }

  Status grow_to(uint64_t bytes) override;
  void close() { file_ = {}; }
  const std::string& path() const { return path_; }

 private:
  RegionFile() = default;
  Status create(const Options& options);
  Status check_zeros(uint64_t bytes) const;
  Status map(DomainKind wanted);
  Status map_as(DomainKind wanted);
  Status read_what_opening_reads() const;

  std::string path_;
  platform::File file_;
  Header header_{};
  platform::Mapping range_;
  RegionView view_;
  std::unique_ptr<Persistence> domain_;
  platform::LineInstruction flush_ = platform::LineInstruction::kBest;
};

// The file, which no other process changes from now on (kShared), or uses (kExclusive). EWOULDBLOCK: one has it.
Result<platform::File> open_locked(const std::string& path, int flags, platform::Lock lock);
// Whether a region can have such a header and be so long. Its checksum says that it is as it was written, not by whom:
// afterwards every offset and size in it can be relied on. `bytes`: of the file.
Status check_header(const Header& header, uint64_t bytes, const std::string& path);
// Whether chunks behind the file's end are spoken of: then it was cut off. Of a file whose header was checked.
Status check_end(const platform::File& file, const Header& header, uint64_t bytes, const std::string& path);
// With visit(offset, data, bytes) -> Status for each piece of [begin, end) of the file, but for holes; both are
// multiples of 8, and so are pieces. EIO, also where the file ends before.
using VisitPiece = std::function<Status(uint64_t offset, const std::byte* data, size_t bytes)>;
Status read_through(const platform::File& file, const std::string& path, uint64_t begin, uint64_t end,
                    const VisitPiece& visit);
Result<Header> read_header(const platform::File& file, const std::string& path);

}  // namespace spw::durable
