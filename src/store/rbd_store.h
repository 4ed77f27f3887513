// A store on an image of a Ceph cluster (RADOS block device): the memory or disks of many machines. "rbd:POOL/IMAGE",
// or "rbd:POOL" to spill to an image that is made for this store alone (rbd/rbd_address.h has the rest).
//
// Requests of all queues go to librbd without waiting for one another; its threads put the results into the queues'
// mailboxes. A discard makes zeros, and whole objects of the image are gone with it. What was never written reads as
// zeros and takes no room. librbd's own cache is off: a write that is done is on the OSDs.
//
// A cluster that stalls: a request fails with ETIMEDOUT when the timeout is over, and the store goes on with the next
// as soon as the cluster does. Nothing can be lost by that: the cluster does not forget what it has acknowledged. A
// full pool is ENOSPC, a broken lock ESHUTDOWN for good. describe() says why the latest request failed.
//
// An image that was made is gone with its store. Most runs end without closing theirs, so somebody who outlives the
// process is asked to remove it then (remove_spill_image()), before it is made; and when the next one is made in the
// pool, or somebody checks it, all that nobody uses is removed (rbd/spill_image.h says which those are).
//
// Threads, lifetime: as every store. Not for forked children (rbd/rbd_pool.h). Size: the image's; its last block may
// stick out. Alignment: 4 KiB. Limits: librbd has a copy of what is under way, beside the cap: 8 MiB at most, or one
// request that is larger; the others wait.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/fault_plan.h"
#include "store/rbd/rbd_address.h"
#include "store/store.h"

namespace spw::store {

// `faults`: may be nullptr; outlives the store. Errors: ENOPKG without librbd; EBUSY where another client has its lock;
// a sentence with the address.
Result<std::unique_ptr<Store>> open_rbd(const RbdAddress& address, FaultPlan* faults = nullptr);

// The same, to spill to: it is ours to overwrite (claim/claim.h), or made. `made`: called with the image's name before
// it is; true: its and others' removal are seen to. EROFS, EINVAL with a sentence.
using ImageMade = std::function<bool(const RbdAddress& address, const std::string& image)>;
Result<std::unique_ptr<Store>> open_rbd_to_spill(const RbdAddress& address, FaultPlan* faults = nullptr,
                                                 const ImageMade& made = nullptr);

// Of an image that a store has made, or may have.
struct SpillImageFound {
  enum class Outcome : uint8_t { kRemoved, kInUse, kForeign, kFailed };
  Outcome outcome = Outcome::kForeign;
  std::string image;
  std::string why;  // whose it was, "" if that is not known; who uses it; or what went wrong
};
// Removes what is left behind in the address's pool by processes that have ended.
Result<std::vector<SpillImageFound>> remove_dead_spill_images(const RbdAddress& address);
// Removes an image whose process, of this machine, has ended; there may be none. A claim on it is another remover's, or
// left to a forked child of the process.
enum class Claimed : uint8_t { kStays, kIsRemoved };
Status remove_spill_image(const RbdAddress& address, const std::string& image, Claimed claimed);

}  // namespace spw::store
