// A persistence domain: what it takes until a store in a mapped region outlives a crash.
//
// Where memory itself is persistent (kPmem) a store reaches it at any moment from when it is made, when its line leaves
// the caches, and surely once the line was written back and a fence has passed. Where a file on a block device holds
// the region (kBlock) a store is in private memory until its block is written, and durable once the device was told to
// keep it: nothing gets there on its own.
//
// Order: write_back() may take the bytes as they are then or at any moment until the fence; whoever needs a log record
// before the data it covers fences in between.
// Threads: a Writer is used by one at a time; writers of one domain by any number at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace spw::durable {

enum class DomainKind : uint8_t { kAuto, kPmem, kBlock };

class Persistence {
 public:
  class Writer {
   public:
    virtual ~Writer() = default;
    // Begins to write [first, first + bytes) back, whole grains of it.
    virtual void write_back(const void* first, size_t bytes) = 0;
    // Until all that this writer began is durable. EIO: it is not, and what it was is unknown.
    virtual Status fence() = 0;
  };
  // What has to be durable before any data may be written: the logs of everybody who may have stored to it.
  class Logs {
   public:
    virtual Status persist() = 0;

   protected:
    ~Logs() = default;
  };

  virtual ~Persistence() = default;
  // Lines or blocks of 2^grain_shift bytes are written as a whole.
  virtual unsigned grain_shift() const = 0;
  // Whether a store may become durable before anybody asked for it;
  // then its log record has to be durable before it is made.
  virtual bool stores_leak() const = 0;
  virtual std::unique_ptr<Writer> open_writer() = 0;
  // Where stores do not leak: who is asked before data (not logs) is written. Null: nobody.
  virtual void set_logs(Logs*) {}
  // A writer for the logs themselves.
  virtual std::unique_ptr<Writer> open_log_writer() { return open_writer(); }
};

}  // namespace spw::durable
