// A persistent region that is open: recovered, and its parts put together.
//
// Threads: as its parts. Lifetime: closed by its destructor, when no section is open and no thread uses it.
#pragma once

#include "durable/objects.h"
#include "durable/region_file.h"
#include "durable/roots.h"
#include "durable/sections.h"

namespace spw::durable {

class PersistentRegion {
 public:
  struct Options {
    RegionFile::Options file;
    CombinerOptions combiner;
  };
  static Result<std::unique_ptr<PersistentRegion>> open(const std::string& path, const Options& options);
  // Of memory that holds a region of `view.bytes` already, with whoever
  // makes it durable and grows it: for simulations. All of them outlive it.
  static Result<std::unique_ptr<PersistentRegion>> attach(const RegionView& view, Persistence& domain,
                                                          Grower& grower, const CombinerOptions& combiner);
  // What threads stored outside of sections is durable. EBUSY: a section is open.
  Status close();

  // Of its file; "": it has none.
  std::string path() const { return file_ ? file_->path() : std::string(); }
  uint64_t base() const { return view_->header().base; }
  uint64_t capacity_bytes() const { return view_->header().capacity_bytes; }
  // Whether all of these bytes are in the heap, as far as the file goes.
  bool is_heap(uintptr_t address, size_t bytes) const { return objects_->is_heap(address, bytes); }
  // No other region of this process has, or had, the same.
  uint64_t serial() const { return serial_; }
  const Recovery& recovery() const { return recovery_; }
  // Closes its descriptors, and nothing else: what is done with it from now on goes wrong.
  void let_go_of_file() {
    if (file_) file_->close();
  }
  uint64_t line_bytes() const { return uint64_t{1} << grain_shift_; }

  Sections& sections() { return *sections_; }
  Objects& objects() { return *objects_; }
  Roots& roots() { return *roots_; }

 private:
  PersistentRegion() = default;
  Status build(Persistence& domain, Grower& grower, const CombinerOptions& combiner);

  std::unique_ptr<RegionFile> file_;
  const RegionView* view_ = nullptr;
  uint64_t serial_ = 0;
  Recovery recovery_;
  unsigned grain_shift_ = 0;
  std::unique_ptr<Objects> objects_;
  std::unique_ptr<Sections> sections_;
  std::unique_ptr<Roots> roots_;
};

// Makes a region in zeroed memory at `mapped`, as create() does in a file.
RegionView format_memory(std::byte* mapped, const LayoutOptions& layout, uint64_t heap_bytes);

}  // namespace spw::durable
