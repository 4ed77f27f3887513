// Images that Spillway makes to spill to, and removes: their marks, and which of them nobody uses any more.
//
// An image is made in steps, each of which may be the last of a process that is killed:
//
//   1  the process has a claim on the name (platform::claim_name), until it ends
//   2  the image exists, of size 0            ours, since it holds nothing
//   3  it is open: the client watches it
//   4  the client has its lock
//   5  its metadata say whose it is           ours, since they say so
//   6  it has its size
//
// So an image of such a name (spill_image_name.h) is ours if it has the mark or is empty; any other is somebody's and
// is never removed. One of ours is in use
//   in this scope   while somebody has the claim, which tells at once
//   elsewhere       while the client of its name watches it; the cluster ends the watch of one that has been silent for
//                   30 s, and takes no write of a client whose lock was broken
// and while anybody else watches it. Between 2 and 3 it may be taken for a dead one from elsewhere; then 3 or 4 fails,
// and it is made anew.
//
// Removal shuts a dead client out of the cluster first (for an hour), so that nothing which it had under way can
// come behind the removal, and its watch ends. In one scope one at a time removes an image, with the claim on it. Who
// is killed while it removes one watches it for 30 s more; so it is not the process that makes an image which removes
// others', where somebody else can (process/image_removal.h).
//
// The features: exclusive-lock, and object-map (with which Ceph gives fast-diff), by which an image of terabytes with
// little in it is gone at once, and what was never written is not asked for. No layering (nobody clones it),
// deep-flatten or journaling.
//
// Threads: any that librados' own may inherit from (RbdPool::here). Limits: kSpillImageBytesMax; names of
// kSpillImagesMax images in a pool are looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/rbd/rbd_pool.h"
#include "store/rbd/spill_image_name.h"
#include "store/rbd_store.h"

namespace spw::store {

inline constexpr uint64_t kSpillImageBytesMax = uint64_t{16} << 40;
// Where the cluster keeps no statistics.
inline constexpr uint64_t kSpillImageBytesDefault = uint64_t{1} << 40;
inline constexpr size_t kSpillImagesMax = size_t{1} << 20;

// Of this process.
uint64_t spill_image_scope();
// As large as what the cluster has free.
uint64_t spill_image_bytes(const RbdPool& pool);
// Steps 2 and 5. A negative errno, or 0.
int create_empty_image(const RbdPool& pool, const std::string& name);
int mark_as_spill_image(const Librbd& lib, rbd_image_t image);
// As Ceph names clients ("client.4123"); "" if nobody has the lock.
std::string lock_owner(const Librbd& lib, rbd_image_t image);

// The one image. With kIsRemoved it is known that its process, of this scope, has ended.
SpillImageFound remove_if_dead(const RbdPool& pool, const std::string& name, Claimed claimed);
// All that nobody uses. The names that are no spill image's are not in what is returned.
Result<std::vector<SpillImageFound>> remove_dead_images(const RbdPool& pool);

}  // namespace spw::store
