#include "api/call.h"

#include <algorithm>
#include <cstring>

#include "abi/managed.h"
#include "base/units.h"

namespace spw::api {

namespace {
constexpr size_t kMessageBytesMax = 512;
thread_local char t_message[kMessageBytesMax] = "";
}  // namespace

int result_of(const Status& status) {
  if (status) return 0;
  InRuntime guard;
  const std::string text = status.message();
  const size_t bytes = std::min(text.size(), kMessageBytesMax - 1);
  std::memcpy(t_message, text.data(), bytes);
  t_message[bytes] = '\0';
  return -status.error();
}

Span blocks_around(const process::Runtime& runtime, const void* address, size_t bytes) {
  const uint64_t block = runtime.block_bytes();
  const auto at = reinterpret_cast<uintptr_t>(address);
  Span span;
  span.begin = round_down(at, block);
  span.bytes = round_up(at + bytes, block) - span.begin;
  span.first = BlockId((span.begin - SPW_MANAGED_BASE) / block);
  span.count = span.bytes / block;
  return span;
}

bool is_read_only(const process::Runtime& runtime, const void* address, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto is_at = [&](uintptr_t byte) {
    return is_managed(reinterpret_cast<const void*>(byte)) &&
           runtime.regions().kind_at(byte) == region::Kind::kReadOnlyFile;
  };
  return is_at(at) || is_at(at + bytes - 1);
}

}  // namespace spw::api

SPW_PUBLIC const char* spw_error_message(void) { return spw::api::t_message; }
