#include "store/checked/page_sums.h"

#include "platform/random.h"
#include "store/store_around.h"

namespace spw::store {

static_assert(PageSums::kPageBytes == PageTable<Atomic<uint32_t>>::kPageBytes);

Status PageSums::allocate(uint64_t store_bytes) {
  checksum_ = checksum_function();
  platform::draw_random(secret_.bytes, sizeof secret_.bytes);
  return sums_.allocate(store_bytes);
}

uint32_t PageSums::sum(const std::byte* page) const {
  return std::max(static_cast<uint32_t>(checksum_(page, secret_)), 1u);
}

void PageSums::note(const Request& write) {
  for_each_page(write, [&](uint64_t page, const std::byte* contents) {
    if (page < sums_.pages()) sums_.at(page).store_relaxed(sum(contents));
    return page < sums_.pages();
  });
}

void PageSums::forget(uint64_t offset_bytes, uint64_t bytes) {
  sums_.for_each(offset_bytes / kPageBytes, bytes / kPageBytes, [](Atomic<uint32_t>& known) {
    if (known.load_relaxed() != 0) known.store_relaxed(0);  // not to take memory for what is zero anyway
  });
}

bool PageSums::are_as_written(const Request& read) const {
  return for_each_page(read, [&](uint64_t page, const std::byte* contents) {
    const Atomic<uint32_t>* const entry = sums_.find(page);
    const uint32_t known = entry == nullptr ? 0 : entry->load_relaxed();
    return known == 0 || known == sum(contents);
  });
}

}  // namespace spw::store
