// Apart from the store: who removes images, and has none open, carries nothing else of stores.
#include <functional>

#include "store/rbd/librbd.h"
#include "store/rbd/rbd_pool.h"
#include "store/rbd/spill_image.h"
#include "store/rbd_store.h"

namespace spw::store {

namespace {

Status in_pool(const RbdAddress& address, const std::function<Status(const RbdPool&)>& work) {
  auto lib = Librbd::load();
  if (!lib) return lib.status();
  return RbdPool::here([&] {
    auto pool = RbdPool::connect(*lib, address);
    if (!pool) return pool.status();
    return work(**pool);
  });
}

}  // namespace

Result<std::vector<SpillImageFound>> remove_dead_spill_images(const RbdAddress& address) {
  std::vector<SpillImageFound> found;
  Status status = in_pool(address, [&](const RbdPool& pool) {
    auto all = remove_dead_images(pool);
    if (all) found = std::move(*all);
    return all.status();
  });
  if (!status) return status;
  return found;
}

Status remove_spill_image(const RbdAddress& address, const std::string& image, Claimed claimed) {
  return in_pool(address, [&](const RbdPool& pool) {
    const SpillImageFound found = remove_if_dead(pool, image, claimed);
    return found.outcome == SpillImageFound::Outcome::kRemoved
               ? Status::ok()
               : Status::sentence(EBUSY, image + ": " + found.why);
  });
}

}  // namespace spw::store
