// What else the kernel is given of managed memory: pages for a pipe, memory of a process for another, ranges to change,
// and what a program does with SIGSYS itself (see tests/endtoend/test_raw_calls.py).
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <thread>

#include "fresh.h"
#include "parts.h"
#include "raw_call.h"

namespace {

constexpr size_t kBytes = 3 << 20;

char letter(size_t i) { return static_cast<char>('a' + (i / 4096 + i) % 23); }
void fill(char* room, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) room[i] = letter(i);
}
char* filled(size_t bytes) {
  char* room = fresh<char>(bytes);
  fill(room, bytes);
  return room;
}
size_t wrong(const char* bytes, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) found += bytes[i] != letter(i);
  return found;
}
size_t not_zero(const char* bytes, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) found += bytes[i] != 0;
  return found;
}
template <class T>
long number_of(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

int pipe_of_pages(long) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  char *from = filled(kBytes), *to = fresh<char>(kBytes);
  size_t sent = 0, received = 0;
  std::thread sender([&] {
    evict();
    while (sent < kBytes) {
      iovec piece{from + sent, kBytes - sent};
      const ssize_t part = vmsplice(ends[1], &piece, 1, 0);
      if (part <= 0) break;
      sent += static_cast<size_t>(part);
    }
    close(ends[1]);
  });
  while (received < kBytes) {
    iovec piece{to + received, kBytes - received};
    const ssize_t part = vmsplice(ends[0], &piece, 1, 0);
    if (part <= 0) break;
    received += static_cast<size_t>(part);
  }
  sender.join();
  say("sent", static_cast<long>(sent));
  say("received", static_cast<long>(received));
  say("wrong", static_cast<long>(wrong(to, kBytes)));
  close(ends[0]);
  if (pipe(ends) != 0) return 1;
  // What waits in the pipe is what was there, though its pages are given to something else meanwhile.
  iovec piece{from, 32768};
  say("vmsplice", vmsplice(ends[1], &piece, 1, SPLICE_F_NONBLOCK));
  evict();
  say("read", read(ends[0], to, 32768));
  say("wrong", static_cast<long>(wrong(to, 32768)));
  auto* raw = holding(iovec{from, 4096});
  evict();
  say("raw vmsplice", raw_call(SYS_vmsplice, ends[1], number_of(raw), 1, 0, 0, 0));
  say("read", read(ends[0], to, 4096));
  say("wrong", static_cast<long>(wrong(to, 4096)));
  iovec whole{from, kBytes};
  const long part = vmsplice(ends[1], &whole, 1, SPLICE_F_NONBLOCK);
  say("not all", part > 0 && part < static_cast<long>(kBytes));
  say("full", vmsplice(ends[1], &whole, 1, SPLICE_F_NONBLOCK));
  const int file = open("file", O_CREAT | O_RDWR, 0600);
  say("no pipe", vmsplice(file, &whole, 1, 0));
  return 0;
}

int own_memory(long) {
  char *from = filled(kBytes), *to = fresh<char>(kBytes);
  static char native[8192];
  auto *near = holding(iovec{to, kBytes}), *far = fresh<iovec>(2);
  far[0] = {from, kBytes / 2};
  far[1] = {from + kBytes / 2, kBytes - kBytes / 2};
  evict();
  say("process_vm_readv", process_vm_readv(getpid(), near, 1, far, 2, 0));
  say("wrong", static_cast<long>(wrong(to, kBytes)));
  iovec native_piece{native, sizeof native}, far_piece{from, sizeof native};
  evict();
  say("into native memory", process_vm_readv(getpid(), &native_piece, 1, &far_piece, 1, 0));
  say("wrong", static_cast<long>(wrong(native, sizeof native)));
  char* back = fresh<char>(sizeof native);
  iovec back_piece{back, sizeof native};
  evict();
  say("process_vm_writev", process_vm_writev(getpid(), &native_piece, 1, &back_piece, 1, 0));
  say("wrong", static_cast<long>(wrong(back, sizeof native)));
  evict();
  say("raw", raw_call(SYS_process_vm_readv, getpid(), number_of(near), 1, number_of(far), 2, 0));
  iovec bad{reinterpret_cast<void*>(8), 100}, some{to, 100};
  say("bad", process_vm_readv(getpid(), &some, 1, &bad, 1, 0));
  return 0;
}

// Another process reads all of this one's memory: what it gets is right, or an error.
int watched_by_another(long) {
  char* from = filled(kBytes);
  auto* results =
      static_cast<long*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  evict();
  std::fflush(stdout);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    static char page[4096];
    for (size_t at = 0; at < kBytes; at += sizeof page) {
      iovec near{page, sizeof page}, far{from + at, sizeof page};
      const long got = raw_call(SYS_process_vm_readv, parent, number_of(&near), 1, number_of(&far), 1, 0);
      if (got < 0) {
        ++results[0];
        continue;
      }
      ++results[1];
      for (long i = 0; i < got; ++i) results[2] += page[i] != letter(at + static_cast<size_t>(i));
    }
    raw_call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("seen", results[0] + results[1]);
  say("wrong", results[2]);
  say("wrong here", static_cast<long>(wrong(from, kBytes)));
  return 0;
}

int ranges(long) {
  auto* range =
      static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  fill(range, kBytes);
  evict();
  say("madvise", raw_call(SYS_madvise, number_of(range), 1 << 20, MADV_DONTNEED, 0, 0, 0));
  say("not zero", static_cast<long>(not_zero(range, 1 << 20)));
  say("the rest", static_cast<long>(wrong(range + (1 << 20), 0)));
  fill(range, kBytes);
  evict();
  say("mprotect", raw_call(SYS_mprotect, number_of(range), 1 << 20, PROT_READ, 0, 0, 0));
  say("wrong", static_cast<long>(wrong(range, kBytes)));
  say("mprotect", raw_call(SYS_mprotect, number_of(range), 1 << 20, PROT_READ | PROT_WRITE, 0, 0, 0));
  evict();
  auto* longer = reinterpret_cast<char*>(
      raw_call(SYS_mremap, number_of(range), kBytes, 2 * kBytes, MREMAP_MAYMOVE, 0, 0));
  say("mremap", reinterpret_cast<long>(longer) > 0);
  say("wrong", static_cast<long>(wrong(longer, kBytes)));
  say("not zero", static_cast<long>(not_zero(longer + kBytes, kBytes)));
  fill(longer, 2 * kBytes);
  evict();
  say("munmap", raw_call(SYS_munmap, number_of(longer + kBytes), kBytes, 0, 0, 0, 0));
  evict();
  // What comes to lie there is new.
  for (int i = 0; i < 4; ++i) {
    auto* again =
        static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    say("not zero", static_cast<long>(not_zero(again, kBytes)));
    fill(again, kBytes);
    evict();
    say("wrong", static_cast<long>(wrong(again, kBytes)));
    say("munmap", syscall(SYS_munmap, again, kBytes));
  }
  say("wrong", static_cast<long>(wrong(longer, kBytes)));
  return 0;
}

volatile sig_atomic_t sent = 0, trapped = 0;
void on_system_signal(int, siginfo_t* info, void* context) {
  if (info->si_code != 1) {  // SYS_SECCOMP
    sent = sent + 1;
    return;
  }
  trapped = trapped + 1;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = 42;
}

int own_handler(long) {
  char* bytes = filled(kBytes);
  struct sigaction action{}, before{};
  action.sa_sigaction = &on_system_signal;
  action.sa_flags = SA_SIGINFO;
  say("sigaction", sigaction(SIGSYS, &action, nullptr));
  evict();
  say("raise", raise(SIGSYS));
  say("kill", kill(getpid(), SIGSYS));
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{4, filter};
  say("no new privileges", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  say("seccomp", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
  say("getppid", getppid());
  say("raw getppid", raw_call(SYS_getppid, 0, 0, 0, 0, 0, 0));
  evict();
  say("wrong", static_cast<long>(wrong(bytes, kBytes)));
  say("sent", sent);
  say("trapped", trapped);
  sigaction(SIGSYS, nullptr, &before);
  say("told", before.sa_sigaction == &on_system_signal);
  // As the kernel's default says.
  signal(SIGSYS, SIG_DFL);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    getppid();
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("ended by", WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
  return 0;
}

// Handlers that the kernel is told of without libc get their signals,
// and the runtime keeps its own. They return without libc, too.
volatile sig_atomic_t handled = 0;
void on_any_signal(int) { handled = handled + 1; }
extern "C" void return_from_handler();
__asm__(".globl return_from_handler\nreturn_from_handler:\n\tmov $15, %eax\n\tsyscall\n");

struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};

int raw_actions(long) {
  constexpr unsigned long kHasRestorer = 0x04000000;
  KernelAction action{&on_any_signal, kHasRestorer, &return_from_handler, 0}, before{};
  // This one before memory is watched, and so unseen.
  say("set", raw_call(SYS_rt_sigaction, SIGUSR2, number_of(&action), 0, 8, 0, 0));
  char* bytes = filled(kBytes);
  evict();
  for (int i = 0; i < 3; ++i) say("sent", raise(SIGUSR2));
  auto* page = fresh<char>(4096);
  say("read", raw_call(SYS_getrandom, number_of(page), 4096, 0, 0, 0, 0));
  for (const int signal : {SIGUSR1, SIGSEGV, SIGBUS, SIGSYS}) {
    say("set", raw_call(SYS_rt_sigaction, signal, number_of(&action), 0, 8, 0, 0));
    say("sent", raise(signal));
    evict();
    say("wrong", static_cast<long>(wrong(bytes, kBytes)));
    say("asked", raw_call(SYS_rt_sigaction, signal, 0, number_of(&before), 8, 0, 0));
    say("told", before.handler == action.handler);
  }
  say("handled", handled);
  return 0;
}

int queues(long) {
  struct Message {
    long type;
    char bytes[64];
  };
  const int queue = msgget(IPC_PRIVATE, 0600), set = semget(IPC_PRIVATE, 1, 0600);
  auto* out = holding(Message{3, "of System V"});
  evict();
  say("msgsnd", msgsnd(queue, out, sizeof out->bytes, 0));
  auto* in = fresh<Message>();
  say("msgrcv", msgrcv(queue, in, sizeof in->bytes, 3, 0));
  std::printf("%ld %s\n", in->type, in->bytes);
  say("raw msgsnd", raw_call(SYS_msgsnd, queue, number_of(out), 64, 0, 0, 0));
  auto* info = fresh<msqid_ds>();
  say("msgctl", msgctl(queue, IPC_STAT, info));
  std::printf("%ld\n", static_cast<long>(info->msg_qnum));
  auto* up = holding(sembuf{0, 1, 0});
  evict();
  say("semop", semop(set, up, 1));
  up->sem_op = -1;
  auto* wait = holding(timespec{1, 0});
  evict();
  say("semtimedop", semtimedop(set, up, 1, wait));
  msgctl(queue, IPC_RMID, nullptr);
  semctl(set, 0, IPC_RMID);
  char name[64];
  std::snprintf(name, sizeof name, "/spillway.%d", getpid());
  auto* attributes = holding(mq_attr{.mq_maxmsg = 2, .mq_msgsize = 8192});
  auto* managed_name = std::strcpy(fresh<char>(64), name);
  evict();
  const mqd_t posix = mq_open(managed_name, O_CREAT | O_RDWR, 0600, attributes);
  say("mq_open", posix >= 0);
  char *message = filled(8192), *received = fresh<char>(8192);
  auto* priority = fresh<unsigned>();
  evict();
  say("mq_send", mq_send(posix, message, 8192, 5));
  say("mq_receive", mq_receive(posix, received, 8192, priority));
  std::printf("%u %zu\n", *priority, wrong(received, 8192));
  say("mq_getattr", mq_getattr(posix, fresh<mq_attr>()));
  say("mq_unlink", mq_unlink(managed_name));
  auto* there = fresh<unsigned char>(4096);
  static char native[8192];
  say("mincore", mincore(reinterpret_cast<void*>(number_of(native) & -4096), 4096, there));
  say("getentropy", getentropy(fresh<char>(256), 256));
  say("affinity", pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), fresh<cpu_set_t>()));
  say("name", pthread_getname_np(pthread_self(), fresh<char>(32), 32));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  constexpr Part parts[] = {{"pipe_of_pages", &pipe_of_pages},
                            {"own_memory", &own_memory},
                            {"watched_by_another", &watched_by_another},
                            {"ranges", &ranges},
                            {"own_handler", &own_handler},
                            {"raw_actions", &raw_actions},
                            {"queues", &queues}};
  RUN_PARTS(parts, count, arguments);
}
