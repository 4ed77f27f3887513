// What the threads of a test do, as the kernel tells: to wait until they have got somewhere instead of for a while.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spw::tests {

// All threads of this process but the caller's sleep: each has got to where it waits, and nothing is left to be done.
inline void wait_until_others_sleep() {
  const std::string self = std::to_string(::gettid());
  for (bool all_sleep = false; !all_sleep;) {
    all_sleep = true;
    std::error_code gone;  // a thread that ends meanwhile: look again
    for (std::filesystem::directory_iterator task("/proc/self/task", gone), end; !gone && task != end;
         task.increment(gone)) {
      std::ifstream file(task->path() / "stat");
      std::string stat;
      std::getline(file, stat);  // which throws nothing when the thread is gone, as a stream's buffer would
      const size_t name_end = stat.rfind(')');  // "PID (NAME) STATE ..."
      if (task->path().filename() == self || name_end == stat.npos) continue;
      all_sleep = all_sleep && stat.compare(name_end, 3, ") S") == 0;
    }
    all_sleep = all_sleep && !gone;
  }
}

}  // namespace spw::tests
