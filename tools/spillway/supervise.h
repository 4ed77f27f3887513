// Starting a program as a child, and staying until it ends: for who looks on meanwhile, or has something to say after.
//
// Threads: one child at a time. Ctrl-C and Ctrl-\ reach the child from the terminal, and are ignored here; what is sent
// to this process is passed on.
#pragma once

#include <functional>
#include <string>

namespace spw::tool {

// How a program ended.
struct Ended {
  int code = 0;    // as a shell says it
  int signal = 0;  // that ended it; 0: none
};

// `child` runs in the child and returns its exit code, if it returns at all. `look`: called every `interval_s` of
// what it returned last (the first time after 0), until the child ends; nullptr: never.
Ended run_and_wait(const std::function<int()>& child, const std::function<double()>& look = nullptr);
// Ends this process as the program ended: by the same signal, or with its code.
int end_as(const Ended& ended);

// A directory of its own, gone with all that is in it.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& prefix);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  bool is_there() const { return is_there_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  bool is_there_ = false;
};

bool write_file(const std::string& name, const std::string& text);
// Whether it can be written, without changing it; errno says why not.
bool can_write(const std::string& name);

}  // namespace spw::tool
