// What a program says about ranges of managed memory.
#include "abi/managed.h"
#include "api/call.h"
#include "base/units.h"

namespace spw::api {

namespace {

using process::Runtime;
using region::Kind;
using region::RegionMap;

// Calls act(span) for the blocks of a range that is managed to its last byte.
template <class Act>
int with_range(const void* address, size_t bytes, Act act) {
  if (!is_managed(address)) return bad_argument("the range is not managed memory");
  Call call;
  if (!call->regions().is_live(reinterpret_cast<uintptr_t>(address), bytes))
    return bad_argument("a part of the range is not managed memory");
  if (bytes == 0) return 0;
  return result_of(act(*call, blocks_around(*call, address, bytes)));
}

void prefetch(Runtime& runtime, const void* address, size_t bytes) {
  if (bytes == 0 || !runtime.regions().is_live(reinterpret_cast<uintptr_t>(address), bytes)) return;
  const Span span = blocks_around(runtime, address, bytes);
  runtime.regions().prefetch(span.begin, span.bytes);
}

// Whole blocks inside the range of anonymous memory are dropped, a store's are written.
Status drop(Runtime& runtime, const void* address, size_t bytes) {
  RegionMap& regions = runtime.regions();
  const uint64_t block = regions.block_bytes();
  const auto begin = reinterpret_cast<uintptr_t>(address);
  bool all_anonymous = true;
  for (uintptr_t at = round_down(begin, block); at < begin + bytes; at += block)
    all_anonymous &= regions.kind_at(at) == Kind::kAnonymous;
  if (!all_anonymous) {
    const Span span = blocks_around(runtime, address, bytes);
    return regions.flush(span.begin, span.bytes);
  }
  const uintptr_t first = round_up(begin, block), last = round_down(begin + bytes, block);
  if (first < last) regions.discard(first, last - first);
  return {};
}

Status advise(Runtime& runtime, const void* address, size_t bytes, spw_advice advice) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  switch (advice) {
    case SPW_NORMAL:
      runtime.regions().advise_order(at, bytes, region::Order::kUnknown);
      return {};
    case SPW_SEQUENTIAL:
      runtime.regions().advise_order(at, bytes, region::Order::kSequential);
      return {};
    case SPW_RANDOM:
      runtime.regions().advise_order(at, bytes, region::Order::kRandom);
      return {};
    case SPW_WILLNEED:
      prefetch(runtime, address, bytes);
      return {};
    case SPW_DONTNEED:
      return drop(runtime, address, bytes);
  }
  return Status::sentence(EINVAL, "no such advice");
}

Status needs_mapped(const Runtime& runtime) {
  if (runtime.is_in_place()) return {};
  return Status::sentence(ENOTSUP, "ranges can be pinned with the mapped engine only");
}

}  // namespace

}  // namespace spw::api

using namespace spw;
using namespace spw::api;

SPW_PUBLIC int spw_flush(const void* address, size_t bytes) {
  return with_range(address, bytes, [](Runtime& runtime, const Span& span) {
    return runtime.regions().flush(span.begin, span.bytes);
  });
}

SPW_PUBLIC int spw_sync(const void* address, size_t bytes) {
  return with_range(address, bytes, [](Runtime& runtime, const Span& span) {
    return runtime.regions().sync(span.begin, span.bytes);
  });
}

SPW_PUBLIC int spw_flush_all(void) {
  if (!process::current_runtime()) return 0;
  Call call;
  return result_of(call->regions().flush_shared_files());
}

SPW_PUBLIC int spw_prefetch(const void* address, size_t bytes) {
  if (!is_managed(address) || !process::current_runtime()) return 0;
  Call call;
  prefetch(*call, address, bytes);
  return 0;
}

SPW_PUBLIC int spw_prefetch_ranges(const struct spw_range* ranges, size_t count) {
  if (!ranges && count > 0) return bad_argument("no ranges to prefetch");
  if (!process::current_runtime()) return 0;
  Call call;
  for (size_t i = 0; i < count; ++i)
    if (is_managed(ranges[i].address)) prefetch(*call, ranges[i].address, ranges[i].bytes);
  return 0;
}

SPW_PUBLIC int spw_pin_range(const void* address, size_t bytes) {
  return with_range(address, bytes, [](Runtime& runtime, const Span& span) {
    if (Status status = needs_mapped(runtime); !status) return status;
    return runtime.pinned().pin(span.first, span.count);
  });
}

SPW_PUBLIC int spw_unpin_range(const void* address, size_t bytes) {
  return with_range(address, bytes, [](Runtime& runtime, const Span& span) {
    if (Status status = needs_mapped(runtime); !status) return status;
    return runtime.pinned().unpin(span.first, span.count);
  });
}

SPW_PUBLIC int spw_advise(const void* address, size_t bytes, enum spw_advice advice) {
  return with_range(address, bytes, [=](Runtime& runtime, const Span&) {
    return spw::api::advise(runtime, address, bytes, advice);
  });
}
