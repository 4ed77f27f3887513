#include "libc/real.h"

#include <dlfcn.h>
#include <sched.h>

#include "base/need.h"
#include "libc/older_glibc.h"

namespace spw::libc {

namespace {

// Sanitizers interpose malloc from the executable itself; there the next definition would be the wrong one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void* const kScope = RTLD_DEFAULT;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
void* const kScope = RTLD_DEFAULT;
#else
void* const kScope = RTLD_NEXT;
#endif
#else
void* const kScope = RTLD_NEXT;
#endif

RealFunctions table;
FileFunctions file_table;
Atomic<bool> finding{false};
constinit thread_local bool finding_here __attribute__((tls_model("initial-exec"))) = false;

// This library's export, where libc has none of the name.
bool is_own(const void* function) {
  static const char here = 0;
  Dl_info own, found;
  return kScope == RTLD_NEXT && dladdr(&here, &own) != 0 && dladdr(function, &found) != 0 &&
         own.dli_fbase == found.dli_fbase;
}

template <class Function>
void find(Function& function, const char* name) {
  void* found = dlsym(kScope, name);
  if (found != nullptr) {
    found = newest_version(found, name);
  } else {
    // Libc stands before this library where only another library needs it; then nothing is interposed for the program.
    found = dlsym(RTLD_DEFAULT, name);
    if (found == nullptr || is_own(found)) found = stand_in_for(name);
  }
  function = reinterpret_cast<Function>(found);
  need_memory(reinterpret_cast<void*>(function), "find a function of libc, perhaps for want of memory");
}

}  // namespace

namespace detail {

Atomic<const RealFunctions*> real_functions{nullptr};
Atomic<const FileFunctions*> file_functions{nullptr};

const RealFunctions& find_real_functions() {
  while (finding.exchange_acquire(true)) sched_yield();
  if (real_functions.load_acquire() == nullptr) {
    finding_here = true;
#define SPW_TABLE(name) find(table.name, #name);
#include "abi/calls.def"
#define SPW_FILE(name) file_table.name = table.name;
#include "abi/calls.def"
    finding_here = false;
    file_functions.store_release(&file_table);
    real_functions.store_release(&table);
  }
  finding.store_release(false);
  return table;
}

}  // namespace detail

void take_over_files(const FileFunctions& other) {
  (void)real();
  detail::file_functions.store_release(&other);
}

bool resolving() { return finding_here; }

}  // namespace spw::libc
