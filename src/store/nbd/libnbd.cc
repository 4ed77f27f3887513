#include "store/nbd/libnbd.h"

#include <dlfcn.h>

namespace spw::store {

Result<Libnbd> Libnbd::load() {
  constexpr const char* kName = "libnbd.so.0";
  void* library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library)
    return Status::sentence(ENOPKG,
                            "nbd stores need libnbd, which is not here; install it, such as with "
                            "apt-get install libnbd0");
  Libnbd loaded;
  const char* missing = nullptr;
#define SPW_LIBNBD_LOAD(name)                                                              \
  loaded.name = reinterpret_cast<decltype(&::nbd_##name)>(::dlsym(library, "nbd_" #name)); \
  if (!loaded.name) missing = "nbd_" #name;
  SPW_LIBNBD_FUNCTIONS(SPW_LIBNBD_LOAD)
#undef SPW_LIBNBD_LOAD
  if (missing)
    return Status::sentence(ENOPKG,
                            std::string(kName) + " has no " + missing + "; install libnbd 1.12 or newer");
  return loaded;
}

}  // namespace spw::store
