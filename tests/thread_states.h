// What the threads of a test do, as the kernel tells: to wait until they have got somewhere instead of for a while.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace spw::tests {

// How often each other thread has gone to sleep so far; nothing if one of them is awake, or comes or goes meanwhile.
inline std::optional<std::map<std::string, std::string>> sleeps_of_others() {
  const std::string self = std::to_string(::gettid());
  std::map<std::string, std::string> sleeps;
  std::error_code gone;
  for (std::filesystem::directory_iterator task("/proc/self/task", gone), end; !gone && task != end;
       task.increment(gone)) {
    const std::string name = task->path().filename();
    if (name == self) continue;
    std::ifstream file(task->path() / "status");
    bool sleeps_now = false;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("State:")) sleeps_now = line.find("S (sleeping)") != line.npos;
      if (line.starts_with("voluntary_ctxt_switches:")) sleeps[name] = line;
    }
    if (!sleeps_now) return std::nullopt;
  }
  if (gone) return std::nullopt;
  return sleeps;
}

// All threads of this process but the caller's sleep: each has got to where it waits, and nothing is left to be done.
// They are looked at one after the other, and the last may wake the first: so twice, and none has run in between.
inline void wait_until_others_sleep() {
  for (auto before = sleeps_of_others();;) {
    auto now = sleeps_of_others();
    if (now && now == before) return;
    before = std::move(now);
  }
}

}  // namespace spw::tests
