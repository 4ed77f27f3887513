// The backend over Spillway's public C API: a mapping is a region on a store of callbacks.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backend.h"
#include "config.h"
#include "spillway/spillway.h"

namespace Umap {

namespace {

int64_t read_source(void* source, void* buffer, std::size_t bytes, uint64_t at) {
  int error = static_cast<Source*>(source)->read(static_cast<char*>(buffer), bytes, at);
  return error == 0 ? static_cast<int64_t>(bytes) : -error;
}
int64_t write_source(void* source, const void* buffer, std::size_t bytes, uint64_t at) {
  int error = static_cast<Source*>(source)->write(static_cast<const char*>(buffer), bytes, at);
  return error == 0 ? static_cast<int64_t>(bytes) : -error;
}

class SpillwayBackend final : public Backend {
 public:
  Mapped map(void* fixed, std::size_t bytes, bool writable, Source& source) override {
    if (fixed) return {nullptr, ENOTSUP};
    spw_store store{};
    store.size = sizeof store;
    store.context = &source;
    store.bytes = bytes;
    store.read = read_source;
    store.write = write_source;
    Mapped mapped;
    mapped.error =
        -spw_map_store(&store, 0, bytes, writable ? SPW_MAP_SHARED : SPW_MAP_READ_ONLY, 0, &mapped.address);
    return mapped;
  }
  int unmap(void* address, std::size_t) override {
    int error = spw_unmap(address);
    if (error != 0) (void)spw_unmap_unsaved(address);
    return -error;
  }
  int flush(void* address, std::size_t bytes) override { return -spw_flush(address, bytes); }
  void prefetch(const void* address, std::size_t bytes) override { (void)spw_prefetch(address, bytes); }
  int pin(void* address, std::size_t bytes) override { return -spw_pin_range(address, bytes); }
  uint64_t buffer_bytes() override { return spw_memory_limit(); }
};

void set(const std::string& option, const std::string& value) {
  if (spw_set_option(option.c_str(), value.c_str()) != 0)
    option_not_used(option, "the option " + option + "=" + value + " is not used: " + spw_error_message());
}

// What the program allocates is its own, as it is with UMap, up to as
// much as the buffer holds. Spillway's own variables win.
void set_unless_set(const char* variable, const std::string& option, const std::string& value) {
  const char* own = ::secure_getenv(variable);
  if (!own || !*own) set(option, value);
}

// Before main(), since options are set before managed memory is first used.
__attribute__((constructor)) void set_options() {
  set_unless_set("SPILLWAY_THRESHOLD", "threshold", "1T");
  const auto options = config().options;  // a copy: an option that is not taken changes what holds
  for (const auto& [option, value] : options) {
    set(option, value);
    if (option == "memory") set_unless_set("SPILLWAY_QUOTA", "quota", value);
  }
}

}  // namespace

Backend& backend() {
  static SpillwayBackend* only = new SpillwayBackend;  // never destroyed: threads may outlive main()
  return *only;
}

}  // namespace Umap
