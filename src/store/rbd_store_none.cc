// A build without librbd's headers: its stores say so.
#include "store/rbd_store.h"

namespace spw::store {

namespace {

Status unknown_here() {
  return Status::sentence(ENOPKG,
                          "this build has no rbd stores; build it where librbd's headers are, such as with "
                          "apt-get install librbd-dev, or have qemu-nbd serve the image and name that nbd:");
}

}  // namespace

Result<std::unique_ptr<Store>> open_rbd(const RbdAddress&, FaultPlan*) { return unknown_here(); }
Result<std::unique_ptr<Store>> open_rbd_to_spill(const RbdAddress&, FaultPlan*, const ImageMade&) {
  return unknown_here();
}
Result<std::vector<SpillImageFound>> remove_dead_spill_images(const RbdAddress&) { return unknown_here(); }
Status remove_spill_image(const RbdAddress&, const std::string&, Claimed) { return unknown_here(); }

}  // namespace spw::store
