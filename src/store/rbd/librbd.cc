#include "store/rbd/librbd.h"

#include "base/in_runtime.h"
#include "platform/loaded_library.h"

namespace spw::store {

namespace {

Status has_all(const platform::LoadedLibrary& library) {
  if (library.missing() == nullptr) return {};
  return Status::sentence(ENOPKG, std::string(library.name()) + " has no " + library.missing() +
                                      "; install librbd of Ceph 16 or newer");
}

}  // namespace

Result<Librbd> Librbd::load() {
  // What they have called at the end of the process is not (libc/process/thread_exports.cc).
  InRuntime guard;
  platform::LoadedLibrary rados("librados.so.2"), rbd("librbd.so.1");
  if (!rados.is_here() || !rbd.is_here())
    return Status::sentence(ENOPKG,
                            "rbd stores need librbd, which is not here; install it, such as with "
                            "apt-get install librbd1");
  Librbd loaded;
#define SPW_LIBRADOS_LOAD(name) rados.find(loaded.rados.name, "rados_" #name);
  SPW_LIBRADOS_FUNCTIONS(SPW_LIBRADOS_LOAD)
#undef SPW_LIBRADOS_LOAD
  if (Status status = has_all(rados); !status) return status;
#define SPW_LIBRBD_LOAD(name) rbd.find(loaded.rbd.name, "rbd_" #name);
  SPW_LIBRBD_FUNCTIONS(SPW_LIBRBD_LOAD)
#undef SPW_LIBRBD_LOAD
  if (Status status = has_all(rbd); !status) return status;
  return loaded;
}

}  // namespace spw::store
