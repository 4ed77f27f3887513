// A library that is loaded when it is first needed, and its functions by name. It is never unloaded.
//
// Threads: one; functions that were found, as the library has it.
#pragma once

#include <dlfcn.h>

namespace spw::platform {

class LoadedLibrary {
 public:
  // `name`: of the file, with its version ("libnbd.so.0"), as the dynamic linker finds it.
  explicit LoadedLibrary(const char* name)
      : name_(name), handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {}

  const char* name() const { return name_; }
  bool is_here() const { return handle_ != nullptr; }
  // Where there is none, `function` stays as it is or becomes nullptr, and missing() names it.
  template <class Function>
  void find(Function& function, const char* called) {
    if (is_here()) function = reinterpret_cast<Function>(::dlsym(handle_, called));
    if (!is_here() || function == nullptr) missing_ = called;
  }
  // The last one that was not found; nullptr: all were.
  const char* missing() const { return missing_; }

 private:
  const char* const name_;
  void* const handle_;
  const char* missing_ = nullptr;
};

}  // namespace spw::platform
