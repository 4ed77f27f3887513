// What libumap needs of a runtime: memory at whose addresses a source's bytes appear as they are touched.
//
// Threads: any, all functions. Errors: a positive errno in the result, 0 for success.
#pragma once

#include <cstddef>
#include <cstdint>

#include "whole_transfer.h"

namespace Umap {

// The bytes of one mapping: [offset_bytes, offset_bytes + length_bytes) of a store.
class Source {
 public:
  Source(Store& store, off_t offset_bytes, std::size_t length_bytes)
      : store_(store), offset_bytes_(offset_bytes), length_bytes_(length_bytes) {}

  std::size_t length_bytes() const { return length_bytes_; }
  // Whole blocks at `at` of the mapping; what sticks out of its end reads as zeros and is not written.
  int read(char* buffer, std::size_t bytes, std::size_t at) noexcept;
  int write(const char* buffer, std::size_t bytes, std::size_t at) noexcept;

 private:
  Store& store_;
  const off_t offset_bytes_;
  const std::size_t length_bytes_;
};

class Backend {
 public:
  struct Mapped {
    void* address = nullptr;
    int error = 0;
  };
  virtual ~Backend() = default;
  // `source` lives until unmap() has returned. `fixed`: where it has to be, or a null pointer.
  virtual Mapped map(void* fixed, std::size_t bytes, bool writable, Source& source) = 0;
  // All that was written has reached the source when it returns 0; the memory is gone in any case.
  virtual int unmap(void* address, std::size_t bytes) = 0;
  virtual int flush(void* address, std::size_t bytes) = 0;
  virtual void prefetch(const void* address, std::size_t bytes) = 0;
  virtual int pin(void* address, std::size_t bytes) = 0;
  // The memory that mappings share; 0: all there is.
  virtual uint64_t buffer_bytes() = 0;
};

// The one this library is linked with.
Backend& backend();

}  // namespace Umap
