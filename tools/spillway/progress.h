// How far something is that takes long: on a terminal one line on standard error that is kept up to date, elsewhere a
// line now and then; nothing while it is quick.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <string>

namespace spw::tool {

class Progress {
 public:
  explicit Progress(std::string what);
  // Takes its line away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void at(uint64_t done, uint64_t all);

 private:
  const std::string what_;
  const bool is_terminal_;
  uint64_t next_ns_;
  bool has_told_ = false;
};

}  // namespace spw::tool
