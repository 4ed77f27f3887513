#include "durable/persistent_region.h"

namespace spw::durable {

Result<std::unique_ptr<PersistentRegion>> PersistentRegion::open(const std::string& path,
                                                                 const Options& options) {
  auto file = RegionFile::open(path, options.file);
  if (!file) return file.status();
  std::unique_ptr<PersistentRegion> region(new PersistentRegion);
  region->file_ = std::move(*file);
  region->view_ = &region->file_->view();
  Status status = region->build(region->file_->domain(), *region->file_, options.combiner);
  if (!status) return Status::sentence(status.error(), path + ": " + status.message());
  return region;
}

Result<std::unique_ptr<PersistentRegion>> PersistentRegion::attach(const RegionView& view,
                                                                   Persistence& domain, Grower& grower,
                                                                   const CombinerOptions& combiner) {
  std::unique_ptr<PersistentRegion> region(new PersistentRegion);
  region->view_ = &view;
  if (Status status = region->build(domain, grower, combiner); !status) return status;
  return region;
}

Status PersistentRegion::build(Persistence& domain, Grower& grower, const CombinerOptions& combiner) {
  if (Status status = check_chunks(*view_); !status) return status;
  auto recovery = recover(*view_, domain);
  if (!recovery) return recovery.status();
  recovery_ = *recovery;
  grain_shift_ = domain.grain_shift();
  static Atomic<uint64_t> serials{0};
  serial_ = serials.fetch_add_relaxed(1) + 1;
  objects_ = std::make_unique<Objects>(*view_, view_->bytes, domain, grower);
  sections_ = std::make_unique<Sections>(*view_, domain, *objects_, *objects_, combiner);
  roots_ = std::make_unique<Roots>(*view_, *sections_);
  return {};
}

Status PersistentRegion::close() { return sections_->close(); }

RegionView format_memory(std::byte* mapped, const LayoutOptions& layout, uint64_t heap_bytes) {
  LayoutOptions at = layout;
  at.base = reinterpret_cast<uintptr_t>(mapped);
  RegionView view{mapped, 0};
  view.header() = make_header(at, at.base);
  view.bytes = view.header().heap_offset + heap_bytes;
  for (uint64_t chunk = 0; chunk < view.chunk_count(); ++chunk)
    view.chunks()[chunk] = ChunkWord{}.word(chunk_place(view.header(), chunk));
  return view;
}

}  // namespace spw::durable
