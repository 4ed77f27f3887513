#include "store/nbd/libnbd.h"

#include "platform/loaded_library.h"

namespace spw::store {

Result<Libnbd> Libnbd::load() {
  platform::LoadedLibrary library("libnbd.so.0");
  if (!library.is_here())
    return Status::sentence(ENOPKG,
                            "nbd stores need libnbd, which is not here; install it, such as with "
                            "apt-get install libnbd0");
  Libnbd loaded;
#define SPW_LIBNBD_LOAD(name) library.find(loaded.name, "nbd_" #name);
  SPW_LIBNBD_FUNCTIONS(SPW_LIBNBD_LOAD)
#undef SPW_LIBNBD_LOAD
  if (library.missing() != nullptr)
    return Status::sentence(ENOPKG, std::string(library.name()) + " has no " + library.missing() +
                                        "; install libnbd 1.12 or newer");
  return loaded;
}

}  // namespace spw::store
