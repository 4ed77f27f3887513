#include "mappings.h"

#include <cerrno>
#include <vector>

namespace Umap {

Backend::Mapped Mappings::add(void* fixed, std::size_t bytes, bool writable, off_t offset_bytes, Store* store,
                              std::unique_ptr<Store> own) {
  auto mapping = std::make_shared<Mapping>();
  mapping->bytes = bytes;
  mapping->own = std::move(own);
  mapping->source = std::make_unique<Source>(mapping->own ? *mapping->own : *store, offset_bytes, bytes);
  Backend::Mapped mapped = backend_.map(fixed, bytes, writable, *mapping->source);
  if (mapped.error != 0) return mapped;
  std::lock_guard lock(mutex_);
  mappings_.emplace(static_cast<char*>(mapped.address), std::move(mapping));
  return mapped;
}

// Under mutex_: the mapping that `address` lies in.
Mappings::Found Mappings::find(const void* address) {
  auto* at = static_cast<char*>(const_cast<void*>(address));
  auto found = mappings_.upper_bound(at);
  if (found == mappings_.begin()) return mappings_.end();
  --found;
  return at < found->first + found->second->bytes ? found : mappings_.end();
}

int Mappings::remove(void* address, std::size_t bytes) {
  std::shared_ptr<Mapping> mapping;
  {
    std::unique_lock lock(mutex_);
    auto found = mappings_.find(static_cast<char*>(address));
    if (found == mappings_.end() || found->second->bytes > bytes) return EINVAL;
    mapping = found->second;
    bytes = mapping->bytes;
    mappings_.erase(found);  // nobody new finds it
    unused_.wait(lock, [&] { return mapping->users == 0; });
  }
  return backend_.unmap(address, bytes);
}

// Calls `call` while the mapping stays. EINVAL when [address, address + bytes) is no part of one.
template <class Call>
int Mappings::use(const void* address, std::size_t bytes, Call call) {
  std::unique_lock lock(mutex_);
  auto found = find(address);
  if (found == mappings_.end()) return EINVAL;
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - found->first);
  std::shared_ptr<Mapping> mapping = found->second;
  if (bytes > mapping->bytes - offset) return EINVAL;
  ++mapping->users;
  lock.unlock();
  int error = call();
  lock.lock();
  if (--mapping->users == 0) unused_.notify_all();
  return error;
}

int Mappings::flush_all() {
  std::vector<std::pair<char*, std::size_t>> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [address, mapping] : mappings_) all.emplace_back(address, mapping->bytes);
  }
  int first_error = 0;
  for (const auto& [address, bytes] : all) {
    bool is_there = false;
    int error = use(address, bytes, [&, at = address, length = bytes] {
      is_there = true;
      return backend_.flush(at, length);
    });
    if (is_there && first_error == 0)
      first_error = error;  // else it was unmapped meanwhile, which flushed it
  }
  return first_error;
}

void Mappings::prefetch(const void* address, std::size_t bytes) {
  (void)use(address, 1, [&] {
    backend_.prefetch(address, bytes);
    return 0;
  });
}

int Mappings::pin(void* address, std::size_t bytes) {
  return use(address, bytes, [&] { return backend_.pin(address, bytes); });
}

}  // namespace Umap
