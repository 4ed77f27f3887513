// A store on an image of a Ceph cluster (RADOS block device): the memory or disks of many machines. "rbd:POOL/IMAGE"
// (rbd/rbd_address.h has the rest).
//
// Requests of all queues go to librbd without waiting for one another; its threads put the results into the queues'
// mailboxes. A discard makes zeros, and whole objects of the image are gone with it. What was never written reads as
// zeros and takes no room. librbd's own cache is off: a write that is done is on the OSDs.
//
// A cluster that stalls: a request fails with ETIMEDOUT when the timeout is over, and the store goes on with the next
// as soon as the cluster does. Nothing can be lost by that: the cluster does not forget what it has acknowledged. A
// full pool is ENOSPC, a broken lock ESHUTDOWN for good. describe() says why the latest request failed.
//
// Threads, lifetime: as every store. Not for forked children (rbd/rbd_image.h). Size: the image's; its last block may
// stick out. Alignment: 4 KiB. Limits: librbd has a copy of what is under way, beside the cap: 8 MiB at most, or one
// request that is larger; the others wait.
#pragma once

#include <memory>

#include "store/fault_plan.h"
#include "store/rbd/rbd_address.h"
#include "store/store.h"

namespace spw::store {

// `faults`: may be nullptr; outlives the store. Errors: ENOPKG without librbd; EBUSY where another client has its lock;
// a sentence with the address.
Result<std::unique_ptr<Store>> open_rbd(const RbdAddress& address, FaultPlan* faults = nullptr);

// The same, to spill to: it is ours to overwrite (claim/claim.h). EROFS, EINVAL with a sentence.
Result<std::unique_ptr<Store>> open_rbd_to_spill(const RbdAddress& address, FaultPlan* faults = nullptr);

}  // namespace spw::store
