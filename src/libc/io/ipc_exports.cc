// Queues, semaphores, memory of other processes, and calls that few programs make, under their ordinary names: what
// they are given may be managed.
#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/quota.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "libc/entry.h"
#include "libc/io/native_argument.h"
#include "libc/io/remote_memory.h"
#include "libc/io/transfers.h"

using namespace spw::libc;

namespace {
// What the fourth argument points to; 0: it is a number, or nothing.
size_t semctl_bytes(int set, int command) {
  semid_ds of_set;
  switch (command) {
    case IPC_STAT:
    case IPC_SET:
    case SEM_STAT:
    case SEM_STAT_ANY:
      return sizeof(semid_ds);
    case IPC_INFO:
    case SEM_INFO:
      return sizeof(seminfo);
    case GETALL:
    case SETALL:
      return real().semctl(set, 0, IPC_STAT, &of_set) == 0 ? of_set.sem_nsems * sizeof(unsigned short) : 0;
    default:
      return 0;
  }
}
}  // namespace

// Memory of pipes and processes.
SPW_ENTRY ssize_t vmsplice(int fd, const iovec* pieces, size_t count, unsigned flags) {
  return splice_memory(fd, pieces, count, flags);
}
SPW_ENTRY ssize_t process_vm_readv(pid_t process, const iovec* local, unsigned long local_count,
                                   const iovec* remote, unsigned long remote_count,
                                   unsigned long flags) noexcept {
  return copy_remote(true, process, {local, local_count, remote, remote_count}, flags);
}
SPW_ENTRY ssize_t process_vm_writev(pid_t process, const iovec* local, unsigned long local_count,
                                    const iovec* remote, unsigned long remote_count,
                                    unsigned long flags) noexcept {
  return copy_remote(false, process, {local, local_count, remote, remote_count}, flags);
}

// Queues and semaphores of System V. A message begins with its type.
SPW_ENTRY int msgsnd(int queue, const void* message, size_t bytes, int flags) {
  return real().msgsnd(queue, Native<const void>::of_bytes(message, sizeof(long) + bytes), bytes, flags);
}
SPW_ENTRY ssize_t msgrcv(int queue, void* message, size_t bytes, long type, int flags) {
  return real().msgrcv(queue, Native<void>::of_bytes(message, sizeof(long) + bytes), bytes, type, flags);
}
SPW_ENTRY int msgctl(int queue, int command, msqid_ds* argument) noexcept {
  return real().msgctl(queue, command, Native(argument));
}
SPW_ENTRY int shmctl(int segment, int command, shmid_ds* argument) noexcept {
  return real().shmctl(segment, command, Native(argument));
}
SPW_ENTRY int semctl(int set, int number, int command, ...) noexcept {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  const size_t bytes = kernel_cannot_reach(argument) ? semctl_bytes(set, command) : 0;
  if (bytes == 0) return real().semctl(set, number, command, argument);
  return real().semctl(set, number, command, static_cast<void*>(Native<void>::of_bytes(argument, bytes)));
}
SPW_ENTRY int semop(int set, sembuf* operations, size_t count) noexcept {
  return real().semop(set, Native(operations, count), count);
}
SPW_ENTRY int semtimedop(int set, sembuf* operations, size_t count, const timespec* timeout) noexcept {
  return real().semtimedop(set, Native(operations, count), count, Native(timeout));
}

// Queues of POSIX.
SPW_ENTRY mqd_t mq_open(const char* name, int flags, ...) noexcept {
  va_list more;
  va_start(more, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : mode_t{0};
  auto* attributes = (flags & O_CREAT) != 0 ? va_arg(more, mq_attr*) : nullptr;
  va_end(more);
  return real().mq_open(Text(name), flags, mode, static_cast<mq_attr*>(Native(attributes)));
}
SPW_ENTRY int mq_unlink(const char* name) noexcept { return real().mq_unlink(Text(name)); }
SPW_ENTRY int mq_getattr(mqd_t queue, mq_attr* out) noexcept { return real().mq_getattr(queue, Native(out)); }
SPW_ENTRY int mq_setattr(mqd_t queue, const mq_attr* wanted, mq_attr* before) noexcept {
  return real().mq_setattr(queue, Native(wanted), Native(before));
}
SPW_ENTRY int mq_send(mqd_t queue, const char* message, size_t bytes, unsigned priority) {
  return real().mq_send(queue, Native(message, bytes), bytes, priority);
}
SPW_ENTRY int mq_timedsend(mqd_t queue, const char* message, size_t bytes, unsigned priority,
                           const timespec* until) {
  return real().mq_timedsend(queue, Native(message, bytes), bytes, priority, Native(until));
}
SPW_ENTRY ssize_t mq_receive(mqd_t queue, char* out, size_t bytes, unsigned* priority) {
  return real().mq_receive(queue, Native(out, bytes), bytes, Native(priority));
}
SPW_ENTRY ssize_t mq_timedreceive(mqd_t queue, char* out, size_t bytes, unsigned* priority,
                                  const timespec* until) {
  return real().mq_timedreceive(queue, Native(out, bytes), bytes, Native(priority), Native(until));
}

// Random bytes that libc fetches for itself.
SPW_ENTRY int getentropy(void* out, size_t bytes) {
  return real().getentropy(Native<void>::of_bytes(out, bytes), bytes);
}

// Handles of files.
namespace {
Native<file_handle> handle_of(file_handle* handle) {
  const size_t bytes = handle == nullptr ? 0 : load_value(&handle->handle_bytes);
  return Native<file_handle>::of_bytes(handle, sizeof(file_handle) + bytes);
}
}  // namespace
SPW_ENTRY int name_to_handle_at(int directory, const char* path, file_handle* handle, int* mount_id,
                                int flags) noexcept {
  return real().name_to_handle_at(directory, Text(path), handle_of(handle), Native(mount_id), flags);
}
SPW_ENTRY int open_by_handle_at(int mount_fd, file_handle* handle, int flags) {
  return real().open_by_handle_at(mount_fd, handle_of(handle), flags);
}

// The system.
SPW_ENTRY int mount(const char* source, const char* target, const char* type, unsigned long flags,
                    const void* data) noexcept {
  return real().mount(Text(source), Text(target), Text(type), flags, Text(static_cast<const char*>(data)));
}
SPW_ENTRY int umount(const char* target) noexcept { return real().umount(Text(target)); }
SPW_ENTRY int umount2(const char* target, int flags) noexcept { return real().umount2(Text(target), flags); }
SPW_ENTRY int chroot(const char* path) noexcept { return real().chroot(Text(path)); }
SPW_ENTRY int clock_settime(clockid_t clock, const timespec* wanted) noexcept {
  return real().clock_settime(clock, Native(wanted));
}
SPW_ENTRY int sched_rr_get_interval(pid_t thread, timespec* out) noexcept {
  return real().sched_rr_get_interval(thread, Native(out));
}
SPW_ENTRY int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t* out) noexcept {
  return real().pthread_getaffinity_np(thread, bytes, Native<cpu_set_t>::of_bytes(out, bytes));
}
SPW_ENTRY int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t* set) noexcept {
  return real().pthread_setaffinity_np(thread, bytes, Native<const cpu_set_t>::of_bytes(set, bytes));
}
SPW_ENTRY int pthread_setschedparam(pthread_t thread, int policy, const sched_param* wanted) noexcept {
  return real().pthread_setschedparam(thread, policy, Native(wanted));
}
SPW_ENTRY int pthread_getname_np(pthread_t thread, char* out, size_t bytes) noexcept {
  return real().pthread_getname_np(thread, Native(out, bytes), bytes);
}
SPW_ENTRY int timer_create(clockid_t clock, sigevent* event, timer_t* out) noexcept {
  return real().timer_create(clock, Native(event), Native(out));
}
