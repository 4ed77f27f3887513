// Calls whose structures the kernel reads or writes, under their ordinary names: the structures may be managed.
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "front/interpose/entry.h"
#include "front/interpose/fault_signal.h"
#include "front/interpose/native_argument.h"

using namespace spw::interpose;

namespace {
// Managed addresses and lengths are copied whole, whatever room the caller says there is; the callee heeds the length.
template <class Address>
Native<Address> address_of(Address* address, socklen_t bytes) {
  return Native<Address>::of_bytes(address, bytes);
}
socklen_t room_of(const socklen_t* bytes) { return bytes == nullptr ? 0 : load_value(bytes); }
}  // namespace

// Waiting.
SPW_ENTRY int poll(pollfd* list, nfds_t count, int timeout_ms) {
  return real().poll(Native(list, count), count, timeout_ms);
}
SPW_ENTRY int ppoll(pollfd* list, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  return real().ppoll(Native(list, count), count, Native(timeout), Native(mask));
}
SPW_ENTRY int select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* timeout) {
  return real().select(count, Native(in), Native(out), Native(except), Native(timeout));
}
SPW_ENTRY int pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* timeout,
                      const sigset_t* mask) {
  return real().pselect(count, Native(in), Native(out), Native(except), Native(timeout), Native(mask));
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
                            timeout_ms, Native(mask));
}
SPW_ENTRY int nanosleep(const timespec* wanted, timespec* left) {
  return real().nanosleep(Native(wanted), Native(left));
}
SPW_ENTRY int clock_nanosleep(clockid_t clock, int flags, const timespec* wanted, timespec* left) {
  return real().clock_nanosleep(clock, flags, Native(wanted), Native(left));
}
SPW_ENTRY int clock_gettime(clockid_t clock, timespec* out) noexcept {
  return real().clock_gettime(clock, Native(out));
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
  return real().execve(Text(path), TextList(arguments), TextList(environment));
}
SPW_ENTRY int execv(const char* path, char* const* arguments) noexcept {
  return real().execve(Text(path), TextList(arguments), environ);
}
SPW_ENTRY int execvp(const char* name, char* const* arguments) noexcept {
  return real().execvp(Text(name), TextList(arguments));
}
SPW_ENTRY int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                          const posix_spawnattr_t* attributes, char* const* arguments,
                          char* const* environment) {
  return real().posix_spawn(Native(child), Text(path), Native(actions), Native(attributes),
                            TextList(arguments), TextList(environment));
}
SPW_ENTRY int posix_spawnp(pid_t* child, const char* name, const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* attributes, char* const* arguments,
                           char* const* environment) {
  return real().posix_spawnp(Native(child), Text(name), Native(actions), Native(attributes),
                             TextList(arguments), TextList(environment));
}
SPW_ENTRY int system(const char* command) { return real().system(Text(command)); }
SPW_ENTRY FILE* popen(const char* command, const char* mode) {
  return real().popen(Text(command), Text(mode));
}
SPW_ENTRY int pipe(int* ends) noexcept { return real().pipe(Native(ends, 2)); }
SPW_ENTRY int pipe2(int* ends, int flags) noexcept { return real().pipe2(Native(ends, 2), flags); }

// Signals.
SPW_ENTRY int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  if (is_fault_signal(signal)) return set_fault_action(signal, Native(action), Native(before));
  if (action == nullptr) return real().sigaction(signal, nullptr, Native(before));
  struct sigaction wanted = *Native(action);
  remove_unblocked(wanted.sa_mask);
  return real().sigaction(signal, &wanted, Native(before));
}
// What signal() is in terms of sigaction() differs by the flags alone.
static sighandler_t set_handler(int number, sighandler_t handler, int flags,
                                sighandler_t (*otherwise)(int, sighandler_t)) {
  if (!is_fault_signal(number) || handler == SIG_ERR) return otherwise(number, handler);
  struct sigaction action{}, before;
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (flags == SA_RESTART) sigaddset(&action.sa_mask, number);
  return set_fault_action(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
SPW_ENTRY sighandler_t signal(int number, sighandler_t handler) noexcept {
  return set_handler(number, handler, SA_RESTART, real().signal);
}
SPW_ENTRY sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  return set_handler(number, handler, SA_RESETHAND | SA_NODEFER, real().__sysv_signal);
}
static int change_mask(int how, const sigset_t* set, sigset_t* before,
                       int (*change)(int, const sigset_t*, sigset_t*)) {
  if (set == nullptr || how == SIG_UNBLOCK) return change(how, Native(set), Native(before));
  sigset_t wanted = *Native(set);
  remove_unblocked(wanted);
  return change(how, &wanted, Native(before));
}
SPW_ENTRY int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_mask(how, set, before, real().sigprocmask);
}
SPW_ENTRY int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_mask(how, set, before, real().pthread_sigmask);
}
SPW_ENTRY int sigaltstack(const stack_t* wanted, stack_t* before) noexcept {
  return real().sigaltstack(Native(wanted), Native(before));
}
SPW_ENTRY int sigwait(const sigset_t* set, int* signal) {
  return real().sigwait(Native(set), Native(signal));
}

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
  return real().sendfile(to, from, Native(offset), bytes);
}
SPW_ENTRY ssize_t sendfile64(int to, int from, off_t* offset, size_t bytes) noexcept {
  return real().sendfile(to, from, Native(offset), bytes);
}
