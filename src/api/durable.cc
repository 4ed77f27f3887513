// Persistent regions and durable sections (include/spillway/durable.h).
#include "spillway/durable.h"

#include <algorithm>
#include <cstring>

#include "api/call.h"
#include "process/durable_process.h"

using namespace spw;
using namespace spw::api;
using process::DurableProcess;

// Handed out for a region: its place among them is the region's number.
struct spw_durable {
  char unused;
};

namespace {

spw_durable g_handles[durable::kRegionsMax];

unsigned number_of(const spw_durable* handle) { return static_cast<unsigned>(handle - g_handles); }

durable::PersistentRegion* region_of(const spw_durable* handle) {
  if (handle < g_handles || handle >= g_handles + durable::kRegionsMax || !DurableProcess::usable())
    return nullptr;
  return DurableProcess::get().regions().region(number_of(handle));
}

int no_region() { return bad_argument("this persistent region is not open"); }

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

// With `work(regions, thread)`.
template <class Work>
int of_thread(Work work) {
  InRuntime guard;
  if (Status status = DurableProcess::usable(); !status) return result_of(status);
  DurableProcess& process = DurableProcess::get();
  return result_of(work(process.regions(), process.this_thread()));
}

}  // namespace

SPW_PUBLIC int spw_durable_open(const char* path, const struct spw_durable_options* options,
                                spw_durable** region) {
  InRuntime guard;
  constexpr uint32_t kFlags = SPW_DURABLE_MUST_EXIST | SPW_DURABLE_PROFILE;
  if (path == nullptr || region == nullptr)
    return bad_argument("spw_durable_open takes a path, and where to put the region");
  if (options != nullptr && options->size != sizeof *options)
    return bad_argument("spw_durable_open: options.size is sizeof(struct spw_durable_options)");
  DurableProcess::Settings settings;
  if (options != nullptr) {
    if ((options->flags & ~kFlags) != 0) return bad_argument("spw_durable_open: unknown flags");
    settings.domain = text_of(options->domain);
    settings.technique = text_of(options->technique);
    settings.burst_stores = options->burst_stores;
    settings.capacity_bytes = options->capacity_bytes;
    settings.threads = options->threads;
    settings.must_exist = (options->flags & SPW_DURABLE_MUST_EXIST) != 0;
    settings.profiles = (options->flags & SPW_DURABLE_PROFILE) != 0;
  }
  auto number = DurableProcess::get().open(path, settings);
  if (!number) return result_of(number.status());
  *region = &g_handles[*number];
  return 0;
}

SPW_PUBLIC int spw_durable_close(spw_durable* region) {
  InRuntime guard;
  if (region_of(region) == nullptr) return no_region();
  return result_of(DurableProcess::get().close(number_of(region)));
}

SPW_PUBLIC void* spw_durable_alloc(spw_durable* region, size_t bytes) {
  void* object = nullptr;
  if (region_of(region) == nullptr) {
    (void)no_region();
    return nullptr;
  }
  (void)of_thread([&](durable::Regions& regions, durable::Thread& thread) {
    auto address = regions.allocate(thread, number_of(region), bytes);
    if (address) object = reinterpret_cast<void*>(*address);
    return address.status();
  });
  return object;
}

SPW_PUBLIC int spw_durable_free(void* object) {
  if (object == nullptr) return 0;
  return of_thread([&](durable::Regions& regions, durable::Thread& thread) {
    return regions.free(thread, reinterpret_cast<uintptr_t>(object));
  });
}

SPW_PUBLIC int spw_durable_set_root(spw_durable* region, const char* name, void* object) {
  if (region_of(region) == nullptr) return no_region();
  if (name == nullptr) return bad_argument("spw_durable_set_root takes a name");
  return of_thread([&](durable::Regions& regions, durable::Thread& thread) {
    if (object != nullptr && region_of(region)->objects().size_of(reinterpret_cast<uintptr_t>(object)) == 0)
      return Status::sentence(EINVAL, "a root names an object of its region");
    return regions.set_root(thread, number_of(region), name, reinterpret_cast<uintptr_t>(object));
  });
}

SPW_PUBLIC void* spw_durable_root(spw_durable* region, const char* name) {
  InRuntime guard;
  durable::PersistentRegion* of = region_of(region);
  return of == nullptr || name == nullptr ? nullptr : reinterpret_cast<void*>(of->roots().get(name));
}

SPW_PUBLIC int spw_durable_begin(void) {
  return of_thread([](durable::Regions& regions, durable::Thread& thread) {
    regions.begin(thread);
    return Status();
  });
}

SPW_PUBLIC int spw_durable_end(void) {
  return of_thread([](durable::Regions& regions, durable::Thread& thread) { return regions.end(thread); });
}

SPW_PUBLIC int spw_durable_undo(void) {
  return of_thread(
      [](durable::Regions& regions, durable::Thread& thread) { return regions.restore(thread); });
}

SPW_PUBLIC int spw_durable_will_store(void* at, size_t bytes) {
  if (bytes == 0) return 0;
  InRuntime guard;
  DurableProcess* process = DurableProcess::current();
  if (process == nullptr) return bad_argument("no persistent region is open");
  if (Status status = DurableProcess::usable(); !status) [[unlikely]]
    return result_of(status);
  Status status =
      process->regions().before_store(process->this_thread(), reinterpret_cast<uintptr_t>(at), bytes);
  if (status) [[likely]]
    return 0;
  return result_of(status);
}

SPW_PUBLIC int spw_durable_store(void* to, const void* from, size_t bytes) {
  const int result = spw_durable_will_store(to, bytes);
  if (result == 0) std::memmove(to, from, bytes);
  return result;
}

SPW_PUBLIC int spw_durable_sync(void) {
  return of_thread([](durable::Regions& regions, durable::Thread& thread) { return regions.sync(thread); });
}

SPW_PUBLIC int spw_durable_acquired(const void* lock) {
  return of_thread(
      [&](durable::Regions& regions, durable::Thread& thread) { return regions.acquired(thread, lock); });
}

SPW_PUBLIC int spw_durable_releasing(const void* lock) {
  return of_thread(
      [&](durable::Regions& regions, durable::Thread& thread) { return regions.releasing(thread, lock); });
}

SPW_PUBLIC int spw_durable_get_statistics(spw_durable* region, struct spw_durable_statistics* statistics) {
  InRuntime guard;
  durable::PersistentRegion* of = region_of(region);
  if (of == nullptr) return no_region();
  if (statistics == nullptr) return bad_argument("spw_durable_get_statistics takes a place for them");
  const durable::Counts counts = of->sections().counts();
  const std::vector<uint32_t> sizes = of->sections().cache_sizes();
  *statistics = {};
  statistics->stores = counts.stores;
  statistics->lines_flushed = counts.lines_flushed;
  statistics->sections = counts.sections;
  statistics->records = counts.records;
  statistics->log_bytes = counts.log_bytes;
  statistics->lines = *std::max_element(sizes.begin(), sizes.end());
  statistics->line_bytes = of->line_bytes();
  statistics->undone = of->recovery().sections_undone;
  return 0;
}

SPW_PUBLIC uint32_t spw_durable_profiled_lines(spw_durable* region) {
  InRuntime guard;
  durable::PersistentRegion* of = region_of(region);
  return of == nullptr ? 0 : of->sections().profiled_size();
}
