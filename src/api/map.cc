// Regions: mapped and unmapped.
#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <string>

#include "abi/managed.h"
#include "api/call.h"
#include "api/callback_store.h"
#include "base/units.h"
#include "platform/file.h"
#include "store/open_store.h"

namespace spw::api {

namespace {

using process::Runtime;
using region::Kind;

constexpr unsigned kAllFlags = SPW_MAP_SHARED | SPW_MAP_PRIVATE | SPW_MAP_READ_ONLY | SPW_MAP_CREATE;
constexpr std::string_view kFilePrefix = "file:";

static_assert(SPW_BLOCK_BYTES_MAX == region::kFillBytesMax);

struct Place {
  uint64_t offset = 0;
  uint64_t length = 0;
  Kind kind = Kind::kNone;
  uint64_t block_bytes = 0;
};

Status refused(std::string sentence) { return Status::sentence(EINVAL, std::move(sentence)); }

Kind kind_of(unsigned flags) {
  switch (flags & ~unsigned{SPW_MAP_CREATE}) {
    case SPW_MAP_SHARED:
      return Kind::kSharedFile;
    case SPW_MAP_PRIVATE:
      return Kind::kPrivateFile;
    case SPW_MAP_READ_ONLY:
      return Kind::kReadOnlyFile;
    default:
      return Kind::kNone;
  }
}

Status check_block_bytes(size_t block_bytes) {
  if (block_bytes == 0) return {};
  if (!is_power_of_two(block_bytes) || block_bytes < SPW_BLOCK_BYTES_MIN || block_bytes > SPW_BLOCK_BYTES_MAX)
    return refused("a region's block is a power of two from 4 KiB to 8 MiB");
  return {};
}

Result<void*> map_anonymous(Runtime& runtime, uint64_t length, uint64_t block_bytes) {
  const uintptr_t address = runtime.heap().mappings().map_anonymous(length, block_bytes);
  if (address == 0)
    return Status::sentence(ENOMEM, "no managed addresses left for a region of " + format_size(length));
  runtime.regions().set_fill_bytes(address, length, block_bytes);
  return reinterpret_cast<void*>(address);
}

Result<void*> map_opened(Runtime& runtime, std::unique_ptr<store::Store> store, Place place) {
  const uint64_t size = store->size_bytes(), alignment = std::max(store->alignment_bytes(), kMmuPageBytes);
  if (alignment > runtime.block_bytes())
    return refused(store->describe() + ": it takes only blocks of at least " + format_size(alignment) +
                   "; set the option block");
  if (place.offset % alignment != 0)
    return refused("the offset has to be a multiple of " + std::to_string(alignment));
  if (place.offset >= size || place.length > round_up(size, kMmuPageBytes) - place.offset)
    return refused(store->describe() + ": the range ends past its end, " + std::to_string(size));
  if (place.length == 0) place.length = size - place.offset;
  auto mapped = runtime.heap().mappings().map_file(
      place.length, {runtime.regions().adopt(std::move(store)), place.offset, place.kind}, place.block_bytes);
  if (!mapped) return mapped.status();
  runtime.regions().set_fill_bytes(*mapped, place.length, place.block_bytes);
  return reinterpret_cast<void*>(*mapped);
}

Status make_file(const std::string& path, uint64_t bytes) {
  auto file = platform::open_file(path, O_RDWR | O_CREAT);
  if (!file) return file.status();
  auto size = platform::file_size(*file);
  if (!size) return size.status();
  return *size < bytes ? platform::set_file_size(*file, bytes) : Status::ok();
}

Result<void*> map_uri(Runtime& runtime, const std::string& uri, const Place& place, unsigned flags) {
  const bool is_file = uri.starts_with(kFilePrefix);
  const std::string path = is_file ? uri.substr(kFilePrefix.size()) : std::string();
  if (flags & SPW_MAP_CREATE) {
    if (!is_file || place.length == 0)
      return refused("SPW_MAP_CREATE makes file:PATH, of a length that is given");
    if (Status status = make_file(path, place.offset + place.length); !status) return status;
  }
  if (is_file && place.kind == Kind::kSharedFile && ::access(path.c_str(), W_OK) != 0)
    return Status(errno, "cannot write to " + path);
  auto store = store::open_store(uri);
  if (!store) return store.status();
  return map_opened(runtime, std::move(*store), place);
}

int finish(Result<void*> mapped, void** address) {
  if (mapped) *address = *mapped;
  return result_of(mapped.status());
}

// A region by the address that it begins at.
heap::Mapping region_at(Runtime& runtime, const void* address) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (!is_managed(address)) return {};
  heap::Mapping mapping = runtime.heap().mappings().find(begin, begin + 1);
  return mapping.address == begin ? mapping : heap::Mapping{};
}

int unmap(void* address, bool save) {
  Call call;
  if (is_managed(address)) {
    const Status status = call->descriptors().files().unmap(reinterpret_cast<uintptr_t>(address), save);
    if (status.error() != ENOENT) return result_of(status);
  }
  const heap::Mapping region = region_at(*call, address);
  if (region.kind == Kind::kNone || region.kind == Kind::kBufferedFile)
    return bad_argument("no region begins at this address");
  const Span blocks = blocks_around(*call, address, region.bytes);
  if (save && region.kind == Kind::kSharedFile)
    if (Status status = call->regions().sync(blocks.begin, blocks.bytes); !status) return result_of(status);
  call->pinned().unpin_all_within(blocks.first, blocks.count);
  call->regions().set_fill_bytes(region.address, region.bytes, 0);
  call->heap().mappings().unmap(region.address, region.bytes);
  return 0;
}

}  // namespace

}  // namespace spw::api

using namespace spw;
using namespace spw::api;

SPW_PUBLIC int spw_map(const char* store, uint64_t offset, size_t length, unsigned flags, size_t block_bytes,
                       void** address) {
  if (!address || length > SPW_MANAGED_BYTES || (flags & ~kAllFlags) != 0)
    return bad_argument("bad arguments of spw_map");
  if (Status status = check_block_bytes(block_bytes); !status) return result_of(status);
  if (!store) {
    if (offset != 0 || length == 0 || (flags & ~unsigned{SPW_MAP_PRIVATE}) != 0)
      return bad_argument("anonymous memory has a length, no offset and no flags");
    Call call;
    return finish(map_anonymous(*call, length, block_bytes), address);
  }
  const Place place{offset, length, kind_of(flags), block_bytes};
  if (place.kind == Kind::kNone)
    return bad_argument("exactly one of SPW_MAP_SHARED, SPW_MAP_PRIVATE and SPW_MAP_READ_ONLY is needed");
  Call call;
  return finish(map_uri(*call, store, place, flags), address);
}

SPW_PUBLIC int spw_map_store(const struct spw_store* store, uint64_t offset, size_t length, unsigned flags,
                             size_t block_bytes, void** address) {
  if (!address || !store || store->size < sizeof(spw_store) || !store->read || store->bytes == 0 ||
      store->bytes > INT64_MAX || length > SPW_MANAGED_BYTES)
    return bad_argument("bad arguments of spw_map_store");
  if (Status status = check_block_bytes(block_bytes); !status) return result_of(status);
  const Place place{offset, length, (flags & SPW_MAP_CREATE) ? Kind::kNone : kind_of(flags), block_bytes};
  if (place.kind == Kind::kNone)
    return bad_argument("exactly one of SPW_MAP_SHARED, SPW_MAP_PRIVATE and SPW_MAP_READ_ONLY is needed");
  if (place.kind == Kind::kSharedFile && !store->write)
    return bad_argument("a store without write() cannot be mapped shared");
  Call call;
  return finish(map_opened(*call, std::make_unique<CallbackStore>(*store), place), address);
}

SPW_PUBLIC int spw_unmap(void* address) { return unmap(address, true); }
SPW_PUBLIC int spw_unmap_unsaved(void* address) { return unmap(address, false); }
