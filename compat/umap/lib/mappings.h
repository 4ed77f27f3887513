// The mappings there are: which addresses, on which store, and whose the store is.
//
// Invariant: mappings do not overlap.
// Threads: any. No lock is held while the backend maps, flushes or unmaps, so stores may call back and threads do not
// wait for one another's I/O; a mapping being flushed is not unmapped before the flush is over.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

#include "backend.h"

namespace Umap {

class Mappings {
 public:
  explicit Mappings(Backend& backend) : backend_(backend) {}

  // On `store`, or on one that only this mapping has (`own`). Errors: as umap().
  Backend::Mapped add(void* fixed, std::size_t bytes, bool writable, off_t offset_bytes, Store* store,
                      std::unique_ptr<Store> own);
  // 0 or a positive errno.
  int remove(void* address, std::size_t bytes);
  int flush_all();
  void prefetch(const void* address, std::size_t bytes);
  int pin(void* address, std::size_t bytes);

 private:
  struct Mapping {
    std::size_t bytes = 0;
    std::unique_ptr<Store> own;
    std::unique_ptr<Source> source;
    unsigned users = 0;  // under mutex_: calls that need it to stay
  };
  using Found = std::map<char*, std::shared_ptr<Mapping>>::iterator;

  Found find(const void* address);
  template <class Call>
  int use(const void* address, std::size_t bytes, Call call);

  Backend& backend_;
  std::mutex mutex_;
  std::condition_variable unused_;
  std::map<char*, std::shared_ptr<Mapping>> mappings_;  // under mutex_; by first address
};

}  // namespace Umap
