// A store whose bytes a program's own functions move (struct spw_store).
//
// Asynchronous requests go to a few threads of the store's own, so that a slow
// callback never holds a partition; a demand fill calls in the thread that needs it.
// Short transfers are continued here; errors are retried as those of every store.
// Threads, lifetime: as every store; the callbacks' context outlives it.
#pragma once

#include <memory>

#include "spillway/spillway.h"
#include "store/engine/progress.h"
#include "store/engine/thread_engine.h"
#include "store/store.h"

namespace spw::api {

class CallbackStore final : public store::Store {
 public:
  explicit CallbackStore(const spw_store& callbacks);

  std::string describe() const override;
  uint64_t size_bytes() const override { return target_.size_bytes; }
  uint64_t alignment_bytes() const override { return target_.alignment_bytes; }
  Result<std::unique_ptr<store::IoQueue>> open_queue(size_t depth) override;
  Status transfer(store::Request& request) override;
  Status reserve(uint64_t, uint64_t) override { return Status::ok(); }

 private:
  int64_t run(const store::RawIo& io) const;
  int64_t read(std::byte* data, size_t bytes, uint64_t offset_bytes) const;
  int64_t write(const std::byte* data, size_t bytes, uint64_t offset_bytes) const;

  const spw_store callbacks_;
  store::Target target_;
  store::WorkerPool workers_;
};

}  // namespace spw::api
