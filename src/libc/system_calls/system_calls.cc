#include "libc/system_calls/system_calls.h"

#include <errno.h>
#include <linux/prctl.h>
#include <sys/syscall.h>

#include <string_view>

#include "libc/io/closing.h"
#include "libc/io/descriptors.h"
#include "libc/io/native_argument.h"
#include "libc/io/remote_memory.h"
#include "libc/io/requests.h"
#include "libc/io/transfers.h"
#include "libc/map/advice.h"
#include "libc/map/mapped_reads.h"
#include "libc/map/mapping.h"
#include "libc/map/marks.h"
#include "libc/map/rights.h"
#include "libc/process/forks.h"
#include "libc/signals/fault_signal.h"
#include "libc/signals/kernel_action.h"
#include "libc/system_calls/dispatch.h"
#include "libc/waits/futex_calls.h"
#include "platform/uncancelled.h"

namespace spw::libc {

namespace {

constexpr long kMseal = 462;

template <class T>
T* pointer(long argument) {
  return reinterpret_cast<T*>(argument);
}

long as_it_is(long number, const CallArguments& given) {
  return real().syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

bool any_out_of_reach(const CallArguments& given) {
  for (const long argument : given)
    if (kernel_cannot_reach(pointer<void>(argument))) return true;
  return false;
}

// What is kept may be written back meanwhile, or be more than its first two blocks.
long with_kept_arguments(long number, const CallArguments& given) {
  constexpr int kTriesMax = 16;
  for (int tries = 1;; ++tries) {
    const KeptArguments kept(given);
    const int saved_errno = errno;
    const long result = as_it_is(number, given);
    if (result != -1 || errno != EFAULT || tries == kTriesMax) return result;
    errno = saved_errno;
  }
}

long with_native_arguments(const CallRule& rule, const CallArguments& given) {
  CallArguments copied = {given[0], given[1], given[2], given[3], given[4], given[5]};
  const NativeArguments native(rule, copied);
  if (native.error() != 0) return fail(native.error());
  return as_it_is(rule.number, copied);
}

// ---- Transfers ----

bool is_transfer(long number) {
  switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_recvfrom:
    case SYS_sendto:
    case SYS_recvmsg:
    case SYS_sendmsg:
    case SYS_recvmmsg:
    case SYS_sendmmsg:
    case SYS_getrandom:
    case SYS_vmsplice:
    case SYS_process_vm_readv:
    case SYS_process_vm_writev:
      return true;
    default:
      return false;
  }
}

long transfer_messages(long number, const CallArguments& given) {
  const int fd = static_cast<int>(given[0]);
  const auto third = static_cast<int>(given[2]), fourth = static_cast<int>(given[3]);
  switch (number) {
    case SYS_recvfrom:
      return receive(fd, pointer<void>(given[1]), static_cast<size_t>(given[2]), fourth,
                     pointer<sockaddr>(given[4]), pointer<socklen_t>(given[5]));
    case SYS_sendto:
      return send_to(fd, pointer<void>(given[1]), static_cast<size_t>(given[2]), fourth,
                     pointer<sockaddr>(given[4]), static_cast<socklen_t>(given[5]));
    case SYS_recvmsg:
      return receive_message(fd, pointer<msghdr>(given[1]), third);
    case SYS_sendmsg:
      return send_message(fd, pointer<msghdr>(given[1]), third);
    case SYS_recvmmsg:
      return receive_messages(fd, pointer<mmsghdr>(given[1]), static_cast<unsigned>(given[2]), fourth,
                              pointer<timespec>(given[4]));
    default:
      return send_messages(fd, pointer<mmsghdr>(given[1]), static_cast<unsigned>(given[2]), fourth);
  }
}

long transfer(long number, const CallArguments& given) {
  const int fd = static_cast<int>(given[0]), count = static_cast<int>(given[2]);
  const auto bytes = static_cast<size_t>(given[2]);
  const auto* pieces = pointer<const iovec>(given[1]);
  const platform::Uncancelled uncancelled;
  switch (number) {
    case SYS_read:
      return read_fd(fd, pointer<void>(given[1]), bytes);
    case SYS_write:
      return write_fd(fd, pointer<void>(given[1]), bytes);
    case SYS_pread64:
      return pread_fd(fd, pointer<void>(given[1]), bytes, given[3]);
    case SYS_pwrite64:
      return pwrite_fd(fd, pointer<void>(given[1]), bytes, given[3]);
    case SYS_readv:
      return readv_fd(fd, pieces, count);
    case SYS_writev:
      return writev_fd(fd, pieces, count);
    case SYS_preadv:
      return preadv_fd(fd, pieces, count, given[3]);
    case SYS_pwritev:
      return pwritev_fd(fd, pieces, count, given[3]);
    case SYS_preadv2:
      return preadv2_fd(fd, pieces, count, given[3], static_cast<int>(given[5]));
    case SYS_pwritev2:
      return pwritev2_fd(fd, pieces, count, given[3], static_cast<int>(given[5]));
    case SYS_getrandom:
      return random_bytes(pointer<void>(given[0]), static_cast<size_t>(given[1]),
                          static_cast<unsigned>(given[2]));
    case SYS_vmsplice:
      return splice_memory(fd, pieces, bytes, static_cast<unsigned>(given[3]));
    case SYS_process_vm_readv:
    case SYS_process_vm_writev:
      return copy_remote(number == SYS_process_vm_readv, static_cast<pid_t>(given[0]),
                         {pieces, bytes, pointer<const iovec>(given[3]), static_cast<size_t>(given[4])},
                         static_cast<unsigned long>(given[5]));
    default:
      return transfer_messages(number, given);
  }
}

// ---- Address space ----

long map_result(void* mapped) { return reinterpret_cast<long>(mapped); }

// The kernel's own mappings of files: what it is about to change there is left to it.
void release_what_changes(long number, const CallArguments& given) {
  const bool changes = number == SYS_munmap || number == SYS_mremap || number == SYS_mprotect ||
                       number == SYS_pkey_mprotect || number == SYS_mlock || number == SYS_mlock2 ||
                       number == kMseal || (number == SYS_mmap && (given[3] & MAP_FIXED) != 0);
  if (changes) release_reads(pointer<void>(given[0]), static_cast<size_t>(given[1]));
}

// Of managed addresses. Whatever else would change what is mapped there is refused: it is not the kernel's to change.
bool changes_mappings(long number, const CallArguments& given, long* result) {
  if (number == SYS_mlockall || number == SYS_munlockall) {
    *result = number == SYS_mlockall ? lock_all(static_cast<int>(given[0])) : unlock_all();
    return true;
  }
  if (!is_managed(pointer<void>(given[0]))) {
    release_what_changes(number, given);
    return false;
  }
  auto* address = pointer<void>(given[0]);
  const auto bytes = static_cast<size_t>(given[1]);
  const int third = static_cast<int>(given[2]), fourth = static_cast<int>(given[3]);
  switch (number) {
    case SYS_mmap:
      *result = map_result(map(address, bytes, third, fourth, static_cast<int>(given[4]), given[5]));
      return true;
    case SYS_munmap:
      *result = unmap(address, bytes);
      return true;
    case SYS_mremap:
      *result =
          map_result(remap(address, bytes, static_cast<size_t>(given[2]), fourth, pointer<void>(given[4])));
      return true;
    case SYS_mprotect:
      *result = protect_mapping(address, bytes, third);
      return true;
    case SYS_pkey_mprotect:
      *result = protect_with_key(address, bytes, third, fourth);
      return true;
    case SYS_madvise:
      *result = advise_mapping(address, bytes, third);
      return true;
    case SYS_msync:
      *result = sync_mapping(address, bytes, third);
      return true;
    case SYS_mlock:
      *result = lock_pages(address, bytes, 0);
      return true;
    case SYS_mlock2:
      *result = lock_pages(address, bytes, static_cast<unsigned>(given[2]));
      return true;
    case SYS_munlock:
      *result = unlock_pages(address, bytes);
      return true;
    case SYS_mincore:
      *result = resident_pages(address, bytes, pointer<unsigned char>(given[2]));
      return true;
    case SYS_remap_file_pages:
      *result = fail(EINVAL);
      return true;
    case kMseal:
      *result = fail(EPERM);
      return true;
    default:
      return false;
  }
}

// process_madvise(process, ranges, count, ...), which may be of this one.
bool names_managed_ranges(const CallArguments& given) {
  const auto* ranges = pointer<const iovec>(given[1]);
  for (long i = 0; i < given[2] && i < IOV_MAX; ++i)
    if (is_managed(load_value(ranges + i).iov_base)) return true;
  return false;
}

// ---- Signals ----

constexpr int kSignalsMax = 64;
bool is_libcs_own(long signal) { return signal == 32 || signal == 33; }

long change_kernel_action(const CallArguments& given) {
  const int signal = static_cast<int>(given[0]);
  if (signal <= 0 || signal > kSignalsMax || is_libcs_own(signal) ||
      static_cast<size_t>(given[3]) != kKernelMaskBytes)
    return with_kept_arguments(SYS_rt_sigaction, given);
  struct sigaction wanted{}, before{};
  const auto* action = pointer<const KernelAction>(given[1]);
  if (action != nullptr) {
    const KernelAction from = load_value(action);
    wanted.sa_handler = from.handler;
    wanted.sa_flags = static_cast<int>(from.flags);
    copy_bytes(&wanted.sa_mask, &from.mask, sizeof from.mask);
  }
  const bool asks = given[2] != 0;
  if (change_action(signal, action ? &wanted : nullptr, asks ? &before : nullptr) != 0) return -1;
  if (!asks) return 0;
  KernelAction told{before.sa_handler, static_cast<unsigned>(before.sa_flags), before.sa_restorer, 0};
  copy_bytes(&told.mask, &before.sa_mask, sizeof told.mask);
  store_value(pointer<KernelAction>(given[2]), told);
  return 0;
}

long change_kernel_mask(const CallArguments& given) {
  const Native<const uint64_t> wanted(pointer<const uint64_t>(given[1]));
  const Native<uint64_t> before(pointer<uint64_t>(given[2]));
  uint64_t mask = 0;
  const uint64_t* set = wanted;
  if (set != nullptr && given[3] == static_cast<long>(kKernelMaskBytes) && given[0] != SIG_UNBLOCK) {
    mask = without_fault_signals(*set);
    set = &mask;
  }
  return real().syscall(SYS_rt_sigprocmask, given[0], set, static_cast<uint64_t*>(before), given[3]);
}

// ---- The rest ----

bool is_ring(long number) { return number == SYS_io_uring_setup || number == SYS_io_setup; }

// What the kernel transfers later on, it would transfer to pages that
// only the program's threads can bring in, and those are elsewhere.
long refuse_ring(long number) {
  static Atomic<bool> told{false};
  const Context* c = context();
  if (c != nullptr && c->warn != nullptr && !told.exchange_acquire(true))
    c->warn(number == SYS_io_setup ? "io_setup is refused (ENOSYS): the kernel would touch memory that only "
                                     "the program's threads can "
                                     "bring in; --faults=threads allows it where userfaultfd is allowed"
                                   : "io_uring_setup is refused (ENOSYS): the kernel would touch memory that "
                                     "only the program's threads "
                                     "can bring in; --faults=threads allows it where userfaultfd is allowed");
  return fail(ENOSYS);
}

long with_argument_of_request(long number, const CallArguments& given) {
  const int fd = static_cast<int>(given[0]);
  const auto request = static_cast<unsigned long>(given[1]);
  const size_t bytes = number == SYS_ioctl ? ioctl_bytes(request, pointer<void>(given[2]))
                       : takes_a_lock(static_cast<int>(given[1])) ? sizeof(struct flock)
                                                                  : 0;
  if (bytes == 0) return with_kept_arguments(number, given);
  const auto argument = Native<void>::of_bytes(pointer<void>(given[2]), bytes);
  return real().syscall(number, fd, request, static_cast<void*>(argument));
}

long execute(long number, const CallArguments& given) {
  flush_mapped_files();
  if (number == SYS_execve)
    return files_or_real().execve(Text(pointer<const char>(given[0])),
                                  TextList(pointer<char* const>(given[1])),
                                  TextList(pointer<char* const>(given[2])));
  return real().syscall(SYS_execveat, given[0], static_cast<const char*>(Text(pointer<const char>(given[1]))),
                        static_cast<char* const*>(TextList(pointer<char* const>(given[2]))),
                        static_cast<char* const*>(TextList(pointer<char* const>(given[3]))), given[4]);
}

bool changes_descriptors(long number, const CallArguments& given, long* result) {
  const auto first = static_cast<int>(given[0]), second = static_cast<int>(given[1]);
  switch (number) {
    case SYS_close:
      *result = close_fd(first);
      return true;
    case SYS_close_range:
      *result =
          close_fds(static_cast<unsigned>(first), static_cast<unsigned>(second), static_cast<int>(given[2]));
      return true;
#ifdef SYS_dup2  // not on newer processors, whose dup2() is dup3()
    case SYS_dup2:
      *result = replace_fd(first, second);
      return true;
#endif
    case SYS_dup3:
      *result = replace_fd(first, second, static_cast<int>(given[2]));
      return true;
    default:
      return false;
  }
}

// Calls whose arguments have to be looked at whether they are managed or not.
bool is_seen_to(long number, CallArguments& given, long* result) {
  if (is_fork(number, given)) {
    *result = fork_by_number(number, given);
    return true;
  }
  if (changes_descriptors(number, given, result)) return true;
  switch (number) {
    case SYS_futex:
      *result = call_futex(given);
      return true;
    case SYS_rt_sigaction:
      *result = change_kernel_action(given);
      return true;
    case SYS_rt_sigprocmask:
      *result = change_kernel_mask(given);
      return true;
    case SYS_execve:
    case SYS_execveat:
      *result = execute(number, given);
      return true;
    case SYS_prctl:
      if (!is_refused_control(static_cast<int>(given[0]))) return false;
      *result = fail(EINVAL);
      return true;
    case SYS_process_madvise:
    case SYS_shmat:
      if (number == SYS_shmat ? !is_managed(pointer<void>(given[1])) : !names_managed_ranges(given))
        return false;
      *result = fail(EINVAL);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool is_refused_control(int option) {
  // Pages that were merged are in common with others (platform/page_lifter.h).
  constexpr int kSetMemoryMerge = 67;  // PR_SET_MEMORY_MERGE, since Linux 6.4
  if (option == kSetMemoryMerge) return !InRuntime::here();
  return option == PR_SET_SYSCALL_USER_DISPATCH && threads_serve_faults() && may_dispatch() &&
         !InRuntime::here();
}

[[gnu::noinline]] long system_call(long number, CallArguments& given) {
  if (InRuntime::here()) return as_it_is(number, given);
  if (is_transfer(number)) return transfer(number, given);
  if (is_ring(number) && threads_serve_faults()) return refuse_ring(number);
  long result = 0;
  if (is_seen_to(number, given, &result) || changes_mappings(number, given, &result)) return result;
  const bool is_managed_call = any_out_of_reach(given);
  if (const CallRule* rule = rule_of(number); rule != nullptr && (is_managed_call || rule->has_mask()))
    return with_native_arguments(*rule, given);
  if (!is_managed_call) return as_it_is(number, given);
  if (number == SYS_ioctl || number == SYS_fcntl) return with_argument_of_request(number, given);
  return with_kept_arguments(number, given);
}

}  // namespace spw::libc
