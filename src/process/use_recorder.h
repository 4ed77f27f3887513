// Writes down which blocks a program uses, in order: the traces that eviction policies are chosen by (bench/policies).
//
// The file is a sequence of 64-bit block numbers in the machine's order of bytes. A block that is used many times in a
// row is written kRepeatsMax times: more uses tell a policy nothing.
// Threads: used() any; threads' uses stand in the order in which they got the lock. Errors: a write that fails ends the
// recording, and finish() says so.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/cache.h"

namespace spw::process {

class UseRecorder final : public cache::Observer {
 public:
  static constexpr unsigned kRepeatsMax = 2;

  // Makes the file, or empties it.
  static Result<std::unique_ptr<UseRecorder>> create(const std::string& file);
  void used(BlockId block) override;
  Status finish();

 private:
  static constexpr size_t kBufferedMax = 1 << 16;

  explicit UseRecorder(const std::string& name)
      : name_(name), file_(name, std::ios::binary | std::ios::trunc) {
    buffered_.reserve(kBufferedMax);
  }
  void write_out();

  const std::string name_;
  std::mutex mutex_;
  std::ofstream file_;
  std::vector<uint64_t> buffered_;
  uint64_t last_ = UINT64_MAX;
  unsigned repeats_ = 0;
};

}  // namespace spw::process
