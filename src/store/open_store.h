// Stores by name:
//
//     memory:SIZE    in memory ("memory:512M")
//     file:PATH      a whole existing file or block device; its contents are read and overwritten.
//                    To spill to, file:DEVICE[?overwrite=yes] (claim/claim.h)
//     spill:DIR      a spill file in a directory; "DIR" alone, when it is a directory, means the same
//     sparse:DIR?segment=SIZE&size=SIZE&mode=MODE
//                    segment files in a directory, made as they are written to
//                        (sparse_store.h). MODE: create, open, read (only),
//                    or none of them: open it, or create it where there is none. size is needed to create it
//     nbd://HOST[:PORT][/EXPORT]
//     nbd+unix:///[EXPORT]?socket=PATH
//                    an export of an NBD server (nbd_store.h); also timeout=SECONDS and connections=N, and
//                    overwrite=yes to spill to
//     nbds://..., nbds+unix:///...
//                    the same over TLS; also tls-certificates=DIR, tls-psk-file=FILE, tls-username=NAME
//     rbd:POOL/IMAGE an image of a Ceph cluster (rbd_store.h); also conf=FILE, id=NAME, timeout=SECONDS, mode=read, and
//                    overwrite=yes to spill to
//     rbd:POOL       to spill to, an image that is made; also conf, id, timeout and size=SIZE
//     striped:[chunk=SIZE,]URI,URI,...
//                    two or more of these as one (striped_store.h); a comma inside of one is written %2C;
//                    four levels of them at most. To spill to, each gets as much as it is fast and has room for
//                    (balanced_store.h), and URI,URI,... alone means the same (platform/place_list.h)
//
// Threads: any.
#pragma once

#include <memory>
#include <string>

#include "store/engine/engine.h"
#include "store/fault_plan.h"
#include "store/store.h"

namespace spw::store {

struct OpenOptions {
  IoEngineKind engine = IoEngineKind::kAuto;
  bool direct = true;
  // A place to put what dies with the process: sparse: then leaves nothing behind and takes no mode, file: has to be a
  // block device, what is read-only is refused, and devices and exports are claimed (claim/claim.h).
  bool spill = false;
  FaultPlan* faults = nullptr;  // outlives the store
  // Asked to have the image removed when this process has ended, by its pool's name and its own, before it is made, and
  // at once what others have left behind there. False: nobody does.
  bool (*have_removed_at_end)(const std::string& store, const std::string& image) = nullptr;
  unsigned depth = 0;  // of striped stores that this one is a member of; for open_store() itself
};

// EINVAL for a name that names nothing; else what opening it said.
Result<std::unique_ptr<Store>> open_store(const std::string& uri, const OpenOptions& options = {});

// Whether each time that it is opened as a place to spill to it is another store, and a forked child can go on using
// its parent's: not one file, device, export or image, nor sparse, which has threads and locks of its own.
bool is_another_each_time(const std::string& uri);

}  // namespace spw::store
