// Calls whose structures the kernel reads or writes, under their ordinary names: the structures may be managed.
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libc/entry.h"
#include "libc/io/native_argument.h"
#include "libc/map/coherence.h"
#include "libc/map/mapping.h"
#include "libc/signals/fault_signal.h"

using namespace spw::libc;

namespace {
// Managed addresses and lengths are copied whole, whatever room the caller says there is; the callee heeds the length.
template <class Address>
Native<Address> address_of(Address* address, socklen_t bytes) {
  return Native<Address>::of_bytes(address, bytes);
}
// Of descriptors below `count`: a program may have made room for more of them than fd_set says, or for fewer.
Native<fd_set> of_set(fd_set* set, int count) {
  const size_t most = count > 0 ? static_cast<size_t>(count) : 0;
  return Native<fd_set>::of_bytes(set, (most + NFDBITS - 1) / NFDBITS * sizeof(fd_mask));
}
// Another program runs beside this one or in its place, and may read what this one has stored.
const auto& ready_for_another() {
  flush_mapped_files();
  return files_or_real();
}
socklen_t room_of(const socklen_t* bytes) { return bytes == nullptr ? 0 : load_value(bytes); }
ssize_t send_file(int to, int from, off_t* offset, size_t bytes) {
  return copying(from, offset, to, nullptr, bytes,
                 [&] { return files_or_real().sendfile(to, from, Native(offset), bytes); });
}

}  // namespace

// Waiting.
SPW_ENTRY int poll(pollfd* list, nfds_t count, int timeout_ms) {
  return real().poll(Native(list, count), count, timeout_ms);
}
SPW_ENTRY int ppoll(pollfd* list, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  return real().ppoll(Native(list, count), count, Native(timeout), Mask(mask));
}
// With _FORTIFY_SOURCE. `bytes` is the size of the list.
SPW_ENTRY int __ppoll_chk(pollfd* list, nfds_t count, const timespec* timeout, const sigset_t* mask,
                          size_t bytes) {
  return real().__ppoll_chk(Native(list, count), count, Native(timeout), Mask(mask), bytes);
}
SPW_ENTRY int select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* timeout) {
  return real().select(count, of_set(in, count), of_set(out, count), of_set(except, count), Native(timeout));
}
SPW_ENTRY int pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* timeout,
                      const sigset_t* mask) {
  return real().pselect(count, of_set(in, count), of_set(out, count), of_set(except, count), Native(timeout),
                        Mask(mask));
}
SPW_ENTRY int epoll_ctl(int set, int operation, int fd, epoll_event* event) noexcept {
  return real().epoll_ctl(set, operation, fd, Native(event));
}
SPW_ENTRY int epoll_wait(int set, epoll_event* events, int count, int timeout_ms) {
  return real().epoll_wait(set, Native(events, static_cast<size_t>(count > 0 ? count : 0)), count,
                           timeout_ms);
}
SPW_ENTRY int epoll_pwait(int set, epoll_event* events, int count, int timeout_ms, const sigset_t* mask) {
  return real().epoll_pwait(set, Native(events, static_cast<size_t>(count > 0 ? count : 0)), count,
                            timeout_ms, Mask(mask));
}
SPW_ENTRY int epoll_pwait2(int set, epoll_event* events, int count, const timespec* timeout,
                           const sigset_t* mask) {
  return real().epoll_pwait2(set, Native(events, static_cast<size_t>(count > 0 ? count : 0)), count,
                             Native(timeout), Mask(mask));
}
SPW_ENTRY int eventfd_read(int fd, eventfd_t* value) { return real().eventfd_read(fd, Native(value)); }
SPW_ENTRY int nanosleep(const timespec* wanted, timespec* left) {
  return real().nanosleep(Native(wanted), Native(left));
}
SPW_ENTRY int thrd_sleep(const timespec* wanted, timespec* left) {
  return real().thrd_sleep(Native(wanted), Native(left));
}
SPW_ENTRY int clock_nanosleep(clockid_t clock, int flags, const timespec* wanted, timespec* left) {
  return real().clock_nanosleep(clock, flags, Native(wanted), Native(left));
}
SPW_ENTRY int clock_gettime(clockid_t clock, timespec* out) noexcept {
  return real().clock_gettime(clock, Native(out));
}
SPW_ENTRY int clock_getres(clockid_t clock, timespec* out) noexcept {
  return real().clock_getres(clock, Native(out));
}
SPW_ENTRY int getitimer(__itimer_which_t which, itimerval* out) noexcept {
  return real().getitimer(which, Native(out));
}
SPW_ENTRY int setitimer(__itimer_which_t which, const itimerval* wanted, itimerval* before) noexcept {
  return real().setitimer(which, Native(wanted), Native(before));
}
SPW_ENTRY int timer_settime(timer_t timer, int flags, const itimerspec* wanted, itimerspec* before) noexcept {
  return real().timer_settime(timer, flags, Native(wanted), Native(before));
}
SPW_ENTRY int timer_gettime(timer_t timer, itimerspec* out) noexcept {
  return real().timer_gettime(timer, Native(out));
}
SPW_ENTRY int timerfd_gettime(int fd, itimerspec* out) noexcept {
  return real().timerfd_gettime(fd, Native(out));
}
SPW_ENTRY int timerfd_settime(int fd, int flags, const itimerspec* wanted, itimerspec* before) noexcept {
  return real().timerfd_settime(fd, flags, Native(wanted), Native(before));
}

// Processes.
SPW_ENTRY pid_t wait(int* status) { return real().wait(Native(status)); }
SPW_ENTRY pid_t waitpid(pid_t child, int* status, int flags) {
  return real().waitpid(child, Native(status), flags);
}
SPW_ENTRY pid_t wait4(pid_t child, int* status, int flags, rusage* usage) noexcept {
  return real().wait4(child, Native(status), flags, Native(usage));
}
SPW_ENTRY int waitid(idtype_t kind, id_t id, siginfo_t* out, int flags) {
  return real().waitid(kind, id, Native(out), flags);
}
SPW_ENTRY int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  return ready_for_another().execve(Text(path), TextList(arguments), TextList(environment));
}
SPW_ENTRY int execv(const char* path, char* const* arguments) noexcept {
  return ready_for_another().execve(Text(path), TextList(arguments), environ);
}
SPW_ENTRY int execvpe(const char* name, char* const* arguments, char* const* environment) noexcept {
  return ready_for_another().execvpe(Text(name), TextList(arguments), TextList(environment));
}
SPW_ENTRY int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  return ready_for_another().fexecve(fd, TextList(arguments), TextList(environment));
}
// The arguments from `first` on as a list on the stack, for a child of vfork must not allocate.
#define SPW_GATHER_ARGUMENTS(first)                                                           \
  va_list more, again;                                                                        \
  va_start(more, first);                                                                      \
  va_copy(again, more);                                                                       \
  size_t count = 1;                                                                           \
  for (const char* each = first; each != nullptr; each = va_arg(again, const char*)) ++count; \
  va_end(again);                                                                              \
  auto** list = static_cast<char**>(__builtin_alloca(count * sizeof(char*)));                 \
  list[0] = const_cast<char*>(first);                                                         \
  for (size_t i = 1; i < count; ++i) list[i] = va_arg(more, char*)
SPW_ENTRY int execl(const char* path, const char* first, ...) noexcept {
  SPW_GATHER_ARGUMENTS(first);
  va_end(more);
  return ready_for_another().execve(Text(path), TextList(list), environ);
}
SPW_ENTRY int execlp(const char* name, const char* first, ...) noexcept {
  SPW_GATHER_ARGUMENTS(first);
  va_end(more);
  return ready_for_another().execvp(Text(name), TextList(list));
}
SPW_ENTRY int execle(const char* path, const char* first, ...) noexcept {
  SPW_GATHER_ARGUMENTS(first);
  auto** environment = va_arg(more, char**);
  va_end(more);
  return ready_for_another().execve(Text(path), TextList(list), TextList(environment));
}
SPW_ENTRY pid_t wait3(int* status, int flags, rusage* usage) noexcept {
  return real().wait4(-1, Native(status), flags, Native(usage));
}
SPW_ENTRY int execvp(const char* name, char* const* arguments) noexcept {
  return ready_for_another().execvp(Text(name), TextList(arguments));
}
SPW_ENTRY int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                          const posix_spawnattr_t* attributes, char* const* arguments,
                          char* const* environment) {
  return ready_for_another().posix_spawn(Native(child), Text(path), Native(actions), Native(attributes),
                                         TextList(arguments), TextList(environment));
}
SPW_ENTRY int posix_spawnp(pid_t* child, const char* name, const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* attributes, char* const* arguments,
                           char* const* environment) {
  return ready_for_another().posix_spawnp(Native(child), Text(name), Native(actions), Native(attributes),
                                          TextList(arguments), TextList(environment));
}
SPW_ENTRY int system(const char* command) { return ready_for_another().system(Text(command)); }
SPW_ENTRY int pipe(int* ends) noexcept { return real().pipe(Native(ends, 2)); }
SPW_ENTRY int pipe2(int* ends, int flags) noexcept { return real().pipe2(Native(ends, 2), flags); }

// The system and its limits.
SPW_ENTRY int getrusage(__rusage_who_t who, rusage* out) noexcept {
  return real().getrusage(who, Native(out));
}
SPW_ENTRY int getrlimit(__rlimit_resource_t resource, rlimit* out) noexcept {
  return real().getrlimit(resource, Native(out));
}
SPW_ENTRY int setrlimit(__rlimit_resource_t resource, const rlimit* limit) noexcept {
  return real().setrlimit(resource, Native(limit));
}
SPW_ENTRY int getrlimit64(__rlimit_resource_t resource, rlimit64* out) noexcept {
  return real().getrlimit64(resource, Native(out));
}
SPW_ENTRY int setrlimit64(__rlimit_resource_t resource, const rlimit64* limit) noexcept {
  return real().setrlimit64(resource, Native(limit));
}
SPW_ENTRY int prlimit(pid_t process, __rlimit_resource resource, const rlimit* limit,
                      rlimit* before) noexcept {
  return real().prlimit(process, resource, Native(limit), Native(before));
}
SPW_ENTRY int prlimit64(pid_t process, __rlimit_resource resource, const rlimit64* limit,
                        rlimit64* before) noexcept {
  return real().prlimit64(process, resource, Native(limit), Native(before));
}
SPW_ENTRY clock_t times(tms* out) noexcept { return real().times(Native(out)); }
SPW_ENTRY int getgroups(int count, gid_t* out) noexcept {
  return real().getgroups(count, Native(out, static_cast<size_t>(count > 0 ? count : 0)));
}
SPW_ENTRY int setgroups(size_t count, const gid_t* groups) noexcept {
  return real().setgroups(count, Native(groups, count));
}
SPW_ENTRY int getresuid(uid_t* user, uid_t* effective, uid_t* saved) noexcept {
  return real().getresuid(Native(user), Native(effective), Native(saved));
}
SPW_ENTRY int getresgid(gid_t* group, gid_t* effective, gid_t* saved) noexcept {
  return real().getresgid(Native(group), Native(effective), Native(saved));
}
SPW_ENTRY int sched_getparam(pid_t thread, sched_param* out) noexcept {
  return real().sched_getparam(thread, Native(out));
}
SPW_ENTRY int sched_setparam(pid_t thread, const sched_param* wanted) noexcept {
  return real().sched_setparam(thread, Native(wanted));
}
SPW_ENTRY int sched_setscheduler(pid_t thread, int policy, const sched_param* wanted) noexcept {
  return real().sched_setscheduler(thread, policy, Native(wanted));
}
SPW_ENTRY int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  return real().pthread_setname_np(thread, Text(name));
}
SPW_ENTRY int uname(utsname* out) noexcept { return real().uname(Native(out)); }
SPW_ENTRY int sysinfo(struct sysinfo* out) noexcept { return real().sysinfo(Native(out)); }
SPW_ENTRY int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* out) noexcept {
  return real().sched_getaffinity(thread, bytes, Native<cpu_set_t>::of_bytes(out, bytes));
}
SPW_ENTRY int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t* set) noexcept {
  return real().sched_setaffinity(thread, bytes, Native<const cpu_set_t>::of_bytes(set, bytes));
}

// Sockets.
SPW_ENTRY int bind(int fd, const sockaddr* address, socklen_t bytes) noexcept {
  return real().bind(fd, address_of(address, bytes), bytes);
}
SPW_ENTRY int connect(int fd, const sockaddr* address, socklen_t bytes) {
  return real().connect(fd, address_of(address, bytes), bytes);
}
SPW_ENTRY int accept(int fd, sockaddr* address, socklen_t* bytes) {
  return real().accept(fd, address_of(address, room_of(bytes)), Native(bytes));
}
SPW_ENTRY int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
  return real().accept4(fd, address_of(address, room_of(bytes)), Native(bytes), flags);
}
SPW_ENTRY int getsockname(int fd, sockaddr* address, socklen_t* bytes) noexcept {
  return real().getsockname(fd, address_of(address, room_of(bytes)), Native(bytes));
}
SPW_ENTRY int getpeername(int fd, sockaddr* address, socklen_t* bytes) noexcept {
  return real().getpeername(fd, address_of(address, room_of(bytes)), Native(bytes));
}
SPW_ENTRY int getsockopt(int fd, int level, int name, void* value, socklen_t* bytes) noexcept {
  return real().getsockopt(fd, level, name, address_of(value, room_of(bytes)), Native(bytes));
}
SPW_ENTRY int setsockopt(int fd, int level, int name, const void* value, socklen_t bytes) noexcept {
  return real().setsockopt(fd, level, name, address_of(value, bytes), bytes);
}
SPW_ENTRY int socketpair(int domain, int type, int protocol, int* ends) noexcept {
  return real().socketpair(domain, type, protocol, Native(ends, 2));
}
SPW_ENTRY ssize_t sendfile(int to, int from, off_t* offset, size_t bytes) noexcept {
  return send_file(to, from, offset, bytes);
}
SPW_ENTRY ssize_t sendfile64(int to, int from, off_t* offset, size_t bytes) noexcept {
  return send_file(to, from, offset, bytes);
}
SPW_ENTRY ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes,
                                  unsigned flags) {
  return copying(from, from_offset, to, to_offset, bytes, [&] {
    return files_or_real().copy_file_range(from, Native(from_offset), to, Native(to_offset), bytes, flags);
  });
}
SPW_ENTRY ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes,
                         unsigned flags) {
  return copying(from, from_offset, to, to_offset, bytes, [&] {
    return files_or_real().splice(from, Native(from_offset), to, Native(to_offset), bytes, flags);
  });
}
