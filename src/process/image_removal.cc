#include "process/image_removal.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "platform/successor.h"
#include "process/fatal.h"

namespace spw::process {

namespace {

// Of the installation that this library belongs to; else in ../bin, as in a build. "": there is none.
std::string tool() {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&tool), &own) == 0 || own.dli_fname == nullptr) return "";
  std::error_code error;
  const auto folder = std::filesystem::canonical(own.dli_fname, error).parent_path();
  for (const char* programs : {SPW_PROGRAMS_FROM_LIBRARIES, "../bin"}) {
    const std::string program = (folder / programs / "spillway").lexically_normal().string();
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

}  // namespace

bool have_removed_at_end(const std::string& store, const std::string& image) {
  const std::string program = tool();
  Status started = Status(ENOENT, "the tool spillway is not beside libspillway.so");
  if (!program.empty())
    started = platform::start_successor(program, {program, kRemoveAtEndCommand, store, image});
  if (started) return true;
  warn("nobody can be asked to remove the image " + image + " at the end (" + started.message() +
       "); the next run on its pool does, or spillway check rbd:POOL");
  return false;
}

}  // namespace spw::process
