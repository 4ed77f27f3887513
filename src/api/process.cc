// What concerns the process as a whole: options, the cap, statistics.
#include <algorithm>
#include <cstring>

#include "api/call.h"
#include "telemetry/counters.h"

using namespace spw;
using namespace spw::api;

SPW_PUBLIC int spw_set_option(const char* name, const char* value) {
  if (!name || !value) return bad_argument("an option has a name and a value");
  InRuntime guard;
  return result_of(process::override_option(name, value));
}

SPW_PUBLIC uint64_t spw_memory_limit(void) {
  Call call;
  return call->memory_limit().bytes();
}

SPW_PUBLIC int spw_set_memory_limit(uint64_t bytes) {
  Call call;
  return result_of(call->memory_limit().choose(bytes));
}

SPW_PUBLIC int spw_get_statistics(struct spw_statistics* statistics) {
  if (!statistics || statistics->size < sizeof statistics->size)
    return bad_argument("statistics need their size");
  using telemetry::Counter;
  Call call;
  const telemetry::Totals totals = telemetry::read_totals();
  auto count = [&](Counter counter) { return telemetry::total(totals, counter); };
  const cache::SharedCache& cache = call->cache();
  spw_statistics now{};
  now.size = std::min(statistics->size, sizeof now);
  now.memory_limit_bytes = call->memory_limit().bytes();
  now.block_bytes = call->block_bytes();
  now.managed_bytes = call->regions().live_bytes();
  now.cached_bytes =
      call->engine().is_watching() ? uint64_t{cache.used_frames()} * now.block_bytes : now.managed_bytes;
  now.pinned_bytes = call->pinned().blocks() * now.block_bytes;
  now.misses = count(Counter::shared_misses);
  now.faults = count(Counter::missing_faults) + count(Counter::protect_faults);
  now.fills = count(Counter::fills);
  now.ahead_fills = count(Counter::readahead_fills) + count(Counter::unit_fills);
  now.zero_fills = count(Counter::zero_fills);
  now.evictions = count(Counter::evictions);
  now.writebacks = count(Counter::writebacks);
  now.read_bytes = count(Counter::store_read_bytes);
  now.written_bytes = count(Counter::store_write_bytes);
  now.waited_ns = count(Counter::fill_wait_ns);
  std::memcpy(statistics, &now, now.size);
  return 0;
}
