#include "libc/older_glibc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libc/real.h"
#include "platform/call_dispatch.h"
#include "platform/machine.h"

namespace spw::libc {

namespace {

// The kernel's struct stat is libc's, in both sizes.
static_assert(sizeof(struct stat) == sizeof(struct stat64) && sizeof(struct stat) == 144);

template <class... Arguments>
int call(long number, Arguments... arguments) {
  return static_cast<int>(real().syscall(number, arguments...));
}

template <class Stat>
int stat_of(const char* path, Stat* out) noexcept {
  return call(SYS_stat, path, out);
}
template <class Stat>
int lstat_of(const char* path, Stat* out) noexcept {
  return call(SYS_lstat, path, out);
}
template <class Stat>
int fstat_of(int fd, Stat* out) noexcept {
  return call(SYS_fstat, fd, out);
}
template <class Stat>
int fstatat_of(int directory, const char* path, Stat* out, int flags) noexcept {
  return call(SYS_newfstatat, directory, path, out, flags);
}
int mknod_of(const char* path, mode_t mode, dev_t device) noexcept {
  return call(SYS_mknod, path, mode, device);
}
int mknodat_of(int directory, const char* path, mode_t mode, dev_t device) noexcept {
  return call(SYS_mknodat, directory, path, mode, device);
}
int close_range_of(unsigned first, unsigned last, int flags) noexcept {
  return call(SYS_close_range, first, last, flags);
}
void closefrom_of(int first) noexcept { (void)call(SYS_close_range, first < 0 ? 0 : first, ~0U, 0); }
int epoll_pwait2_of(int set, epoll_event* events, int count, const timespec* timeout, const sigset_t* mask) {
  return call(SYS_epoll_pwait2, set, events, count, timeout, mask, _NSIG / 8);
}
// The mask of a thread to come is kept where only libc knows.
int no_sigmask(pthread_attr_t*, const sigset_t*) { return ENOSYS; }

// One of glibc's, if it is loaded.
struct Library {
  void* handle;
  platform::CodeRange code;

  explicit Library(const char* name) : handle(dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {
    if (handle == nullptr) return;
    if (auto found = platform::code_around(static_cast<const link_map*>(handle)->l_ld)) code = *found;
  }
  bool has(const void* function) const {
    const auto address = reinterpret_cast<uintptr_t>(function);
    return address >= code.begin && address < code.end;
  }
};

struct StandIn {
  std::string_view name;
  void* function;
};

// Of the type that the function itself has.
template <auto kOriginal, decltype(kOriginal) kFunction>
void* function_of() {
  return reinterpret_cast<void*>(kFunction);
}

}  // namespace

void* stand_in_for(std::string_view name) {
  const StandIn stand_ins[] = {
      {"stat", function_of<&::stat, &stat_of<struct stat>>()},
      {"stat64", function_of<&::stat64, &stat_of<struct stat64>>()},
      {"lstat", function_of<&::lstat, &lstat_of<struct stat>>()},
      {"lstat64", function_of<&::lstat64, &lstat_of<struct stat64>>()},
      {"fstat", function_of<&::fstat, &fstat_of<struct stat>>()},
      {"fstat64", function_of<&::fstat64, &fstat_of<struct stat64>>()},
      {"fstatat", function_of<&::fstatat, &fstatat_of<struct stat>>()},
      {"fstatat64", function_of<&::fstatat64, &fstatat_of<struct stat64>>()},
      {"mknod", function_of<&::mknod, &mknod_of>()},
      {"mknodat", function_of<&::mknodat, &mknodat_of>()},
      {"close_range", function_of<&::close_range, &close_range_of>()},
      {"closefrom", function_of<&::closefrom, &closefrom_of>()},
      {"epoll_pwait2", function_of<&::epoll_pwait2, &epoll_pwait2_of>()},
      {"pthread_attr_setsigmask_np", function_of<&::pthread_attr_setsigmask_np, &no_sigmask>()},
  };
  for (const StandIn& stand_in : stand_ins)
    if (stand_in.name == name) return stand_in.function;
  return nullptr;
}

void* newest_version(void* found, const char* name) {
  constexpr int kNextIsNewest = 36;
  static const bool is_newest = platform::glibc_minor() >= kNextIsNewest;
  if (is_newest) return found;
  static const Library libraries[] = {Library("libc.so.6"), Library("libpthread.so.0"),
                                      Library("librt.so.1")};
  for (const Library& library : libraries)
    if (library.has(found)) return dlsym(library.handle, name);
  return found;
}

}  // namespace spw::libc
