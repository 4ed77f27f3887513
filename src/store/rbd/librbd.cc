#include "store/rbd/librbd.h"

#include <dlfcn.h>

#include "base/in_runtime.h"

namespace spw::store {

namespace {

constexpr const char* kRadosName = "librados.so.2";
constexpr const char* kRbdName = "librbd.so.1";

Status lacks(const char* library, const char* function) {
  return Status::sentence(
      ENOPKG, std::string(library) + " has no " + function + "; install librbd of Ceph 16 or newer");
}

}  // namespace

Result<Librbd> Librbd::load() {
  // What they have called at the end of the process is not (libc/process/thread_exports.cc).
  InRuntime guard;
  constexpr int kHow = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  void* const rados = ::dlopen(kRadosName, kHow);
  void* const rbd = rados == nullptr ? nullptr : ::dlopen(kRbdName, kHow);
  if (rbd == nullptr)
    return Status::sentence(ENOPKG,
                            "rbd stores need librbd, which is not here; install it, such as with "
                            "apt-get install librbd1");
  Librbd loaded;
  const char* missing = nullptr;
#define SPW_LIBRADOS_LOAD(name)                                                                    \
  loaded.rados.name = reinterpret_cast<decltype(&::rados_##name)>(::dlsym(rados, "rados_" #name)); \
  if (!loaded.rados.name) missing = "rados_" #name;
  SPW_LIBRADOS_FUNCTIONS(SPW_LIBRADOS_LOAD)
#undef SPW_LIBRADOS_LOAD
  if (missing != nullptr) return lacks(kRadosName, missing);
#define SPW_LIBRBD_LOAD(name)                                                              \
  loaded.rbd.name = reinterpret_cast<decltype(&::rbd_##name)>(::dlsym(rbd, "rbd_" #name)); \
  if (!loaded.rbd.name) missing = "rbd_" #name;
  SPW_LIBRBD_FUNCTIONS(SPW_LIBRBD_LOAD)
#undef SPW_LIBRBD_LOAD
  if (missing != nullptr) return lacks(kRbdName, missing);
  return loaded;
}

}  // namespace spw::store
