// POSIX asynchronous I/O whose control blocks, lists, buffers and attributes lie in managed memory that nobody has
// touched since it was evicted, or ever (see tests/endtoend/test_aio.py).
#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "asleep.h"
#include "fresh.h"
#include "parts.h"

namespace {

constexpr size_t kBytes = 50'000;

int file_of(const char* name) { return open(name, O_RDWR | O_CREAT, 0600); }

aiocb* request(int fd, char* buffer, size_t bytes, off_t offset) {
  aiocb wanted{};
  wanted.aio_fildes = fd;
  wanted.aio_buf = buffer;
  wanted.aio_nbytes = bytes;
  wanted.aio_offset = offset;
  wanted.aio_sigevent.sigev_notify = SIGEV_NONE;
  return holding(wanted);
}

long finish(aiocb* block) {
  while (aio_error(block) == EINPROGRESS) usleep(100);
  const int error = aio_error(block);
  const long result = aio_return(block);
  errno = 0;
  if (error != 0) std::printf("%s, ", std::strerror(error));
  return result;
}

long sum(const char* bytes, size_t count) {
  long total = 0;
  for (size_t i = 0; i < count; ++i) total = total * 31 + bytes[i];
  return total & 0xFFFFFF;
}

char* pattern(size_t bytes, int seed) {
  char* out = fresh<char>(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>((i * 7 + static_cast<size_t>(seed)) >> 3);
  return out;
}

int transfers(long) {
  const int fd = file_of("data");
  char* out = pattern(kBytes, 1);
  aiocb* write = request(fd, out, kBytes, 1000);
  evict();
  say("aio_write", aio_write(write));
  say("written", finish(write));
  aiocb* sync = request(fd, nullptr, 0, 0);
  evict();
  say("aio_fsync", aio_fsync(O_DSYNC, sync));
  say("synced", finish(sync));
  char* in = fresh<char>(kBytes + 2000);
  std::memset(in, 'x', kBytes + 2000);
  aiocb* read = request(fd, in, kBytes + 500, 500);
  evict();
  say("aio_read", aio_read(read));
  say("read", finish(read));
  say("again", aio_return(read));
  std::printf("%ld %ld %c\n", sum(in + 500, kBytes), sum(out, kBytes), in[kBytes + 500]);
  // What is native in one part or the other.
  aiocb own{};
  own.aio_fildes = fd;
  own.aio_buf = in;
  own.aio_nbytes = 100;
  evict();
  say("managed buffer", aio_read(&own));
  say("read", finish(&own));
  static char native[5000];
  aiocb* block = request(fd, native, sizeof native, 1000);
  evict();
  say("managed block", aio_read(block));
  say("read", finish(block));
  std::printf("%d\n", std::memcmp(native, out, sizeof native));
  int ends[2];
  say("pipe", pipe(ends));
  aiocb* waiting = request(ends[0], in, 1000, 0);
  say("aio_read", aio_read(waiting));
  say("in progress", aio_error(waiting) == EINPROGRESS);
  say("write", ::write(ends[1], "hello", 5));
  say("read", finish(waiting));
  std::printf("%.6s\n", in);
  return 0;
}

int errors(long) {
  const int fd = file_of("data");
  aiocb* bad = request(1000, fresh<char>(100), 100, 0);
  evict();
  say("aio_read", aio_read(bad));
  say("bad descriptor", finish(bad));
  aiocb* closed = request(open("data", O_RDONLY), pattern(100, 1), 100, 0);
  say("aio_write", aio_write(closed));
  say("no rights", finish(closed));
  aiocb* urgent = request(fd, fresh<char>(100), 100, 0);
  urgent->aio_reqprio = -1;
  evict();
  say("urgent", aio_read(urgent));
  std::printf("%s\n", std::strerror(aio_error(urgent)));
  aiocb* unknown = request(fd, nullptr, 0, 0);
  say("fsync of what", aio_fsync(12345, unknown));
  say("nothing to cancel", aio_cancel(fd, nullptr) == AIO_ALLDONE);
  say("cancel what is over", aio_cancel(fd, holding(aiocb{})) < 0 ? errno : 0);
  const aiocb* const over[] = {bad};
  say("wait for what is over", aio_suspend(over, 1, nullptr));
  say("wait for less than nothing", aio_suspend(over, -1, nullptr));
  return 0;
}

int waits(long) {
  constexpr int kCount = 100;  // more than fit a short list
  const int fd = file_of("data");
  char* out = pattern(kCount * 1000, 3);
  aiocb* write = request(fd, out, kCount * 1000, 0);
  aio_write(write);
  say("written", finish(write));
  int ends[2];
  say("pipe", pipe(ends));
  auto** list = fresh<aiocb*>(kCount);
  static char native[1000];
  for (int i = 0; i < kCount; ++i) list[i] = nullptr;
  list[3] = request(ends[0], fresh<char>(100), 100, 0);
  list[70] = request(ends[0], native, 100, 0);
  aio_read(list[3]);
  aio_read(list[70]);
  auto* soon = holding(timespec{0, 10'000'000});
  evict();
  say("aio_suspend", aio_suspend(list, kCount, soon));
  ::write(ends[1], "abc", 3);
  evict();
  say("aio_suspend", aio_suspend(list, kCount, nullptr));
  say("first", finish(list[3]));
  list[3] = nullptr;
  std::thread writer([&, waiter = gettid()] {
    await_asleep(waiter);
    ::write(ends[1], "defg", 4);
  });
  say("aio_suspend", aio_suspend(list, kCount, holding(timespec{20, 0})));
  say("second", finish(list[70]));
  writer.join();
  long total = 0;
  for (int i = 0; i < kCount; ++i) {
    char* room = i % 3 == 0 ? static_cast<char*>(malloc(1000)) : fresh<char>(1000);
    list[i] = request(fd, room, 1000, i * 1000);
    aio_read(list[i]);
  }
  evict();
  for (int left = kCount; left > 0;) {
    if (aio_suspend(list, kCount, nullptr) != 0) return 1;
    for (int i = 0; i < kCount; ++i) {
      if (list[i] == nullptr || aio_error(list[i]) == EINPROGRESS) continue;
      total += sum(static_cast<char*>(const_cast<void*>(list[i]->aio_buf)), 1000) + aio_return(list[i]);
      list[i] = nullptr;
      --left;
    }
  }
  long expected = 0;
  for (int i = 0; i < kCount; ++i) expected += sum(out + i * 1000, 1000) + 1000;
  say("the same", total == expected);
  return 0;
}

// What notifications find.
std::atomic<int> g_told{0};
std::atomic<long> g_sum{0};

void look(aiocb* block) {
  // The data is there whoever is asked first.
  g_sum += sum(static_cast<char*>(const_cast<void*>(block->aio_buf)), block->aio_nbytes);
  if (aio_error(block) != 0 || aio_return(block) != static_cast<ssize_t>(block->aio_nbytes)) g_sum += 1 << 30;
  ++g_told;
}
void by_thread(sigval of) { look(static_cast<aiocb*>(of.sival_ptr)); }
void by_signal(int, siginfo_t* info, void*) {
  if (info->si_code == SI_ASYNCIO) look(static_cast<aiocb*>(info->si_value.sival_ptr));
}
void wait_for(int told) {
  for (int i = 0; i < 20'000 && g_told < told; ++i) usleep(1000);
  say("told", g_told);
}

// `how`: 0 by a thread, 1 by a thread with attributes, 2 by a handler, 3 by sigwaitinfo.
int notifications(long how) {
  constexpr int kCount = 20;
  const int fd = file_of("data");
  char* out = pattern(kCount * 1000, 5);
  ::write(fd, out, kCount * 1000);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGRTMIN);
  struct sigaction action{};
  action.sa_sigaction = by_signal;
  action.sa_flags = SA_SIGINFO;
  if (how == 2) sigaction(SIGRTMIN, &action, nullptr);
  if (how == 3) pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  auto* attributes = fresh<pthread_attr_t>();
  pthread_attr_init(attributes);
  pthread_attr_setdetachstate(attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(attributes, 1 << 20);
  aiocb* blocks[kCount];
  for (int i = 0; i < kCount; ++i) {
    aiocb* block = blocks[i] = request(fd, fresh<char>(1000), 1000, i * 1000);
    sigevent& event = block->aio_sigevent;
    event.sigev_notify = how < 2 ? SIGEV_THREAD : SIGEV_SIGNAL;
    event.sigev_value.sival_ptr = block;
    if (how >= 2) event.sigev_signo = SIGRTMIN;
    if (how < 2) event.sigev_notify_function = by_thread;
    if (how < 2) event.sigev_notify_attributes = how == 1 ? attributes : nullptr;
  }
  evict();
  for (aiocb* block : blocks)
    if (aio_read(block) != 0) say("aio_read", -1);
  for (int i = 0; how == 3 && i < kCount; ++i) {
    auto* info = fresh<siginfo_t>();
    if (sigwaitinfo(&signals, info) == SIGRTMIN) by_signal(SIGRTMIN, info, nullptr);
  }
  wait_for(kCount);
  long expected = 0;
  for (int i = 0; i < kCount; ++i) expected += sum(out + i * 1000, 1000);
  say("the same", g_sum == expected);
  return 0;
}

void list_is_over(sigval of) {
  auto** list = static_cast<aiocb**>(of.sival_ptr);
  for (int i = 0; i < 10; ++i)
    if (list[i] != nullptr && list[i]->aio_lio_opcode == LIO_READ) look(list[i]);
}

int lists(long) {
  constexpr int kCount = 10;
  const int fd = file_of("data");
  char* out = pattern(kCount * 1000, 9);
  auto** list = fresh<aiocb*>(kCount);
  static char native[1000];
  for (int i = 0; i < kCount; ++i) {
    list[i] = request(fd, out + i * 1000, 1000, i * 1000);
    list[i]->aio_lio_opcode = LIO_WRITE;
  }
  list[4]->aio_lio_opcode = LIO_NOP;
  evict();
  say("lio_listio", lio_listio(LIO_WAIT, list, kCount, nullptr));
  for (int i = 0; i < kCount; ++i)
    if (i != 4) say("written", aio_error(list[i]) == 0 ? aio_return(list[i]) : -1);
  std::memcpy(native, out + 5000, 1000);
  for (int i = 0; i < kCount; ++i) {
    list[i]->aio_lio_opcode = LIO_READ;
    list[i]->aio_buf = i == 5 ? native : fresh<char>(1000);
  }
  list[2] = nullptr;
  list[4] = static_cast<aiocb*>(std::memcpy(malloc(sizeof(aiocb)), list[0], sizeof(aiocb)));
  list[4]->aio_buf = native;
  list[4]->aio_offset = 3000;
  auto* event = fresh<sigevent>();
  std::memset(event, 0, sizeof *event);
  event->sigev_notify = SIGEV_THREAD;
  event->sigev_notify_function = list_is_over;
  event->sigev_value.sival_ptr = list;
  evict();
  say("lio_listio", lio_listio(LIO_NOWAIT, list, kCount, event));
  wait_for(kCount - 1);
  say("sum", g_sum);
  // One that fails.
  list[0]->aio_fildes = 1000;
  evict();
  say("lio_listio", lio_listio(LIO_WAIT, list, kCount, nullptr));
  std::printf("%s\n", std::strerror(aio_error(list[0])));
  say("others", aio_return(list[1]));
  say("nothing to do", lio_listio(LIO_WAIT, list, 0, nullptr));
  say("what mode", lio_listio(7, list, kCount, nullptr));
  return 0;
}

int cancelling(long) {
  int ends[2];
  say("pipe", pipe(ends));
  aiocb *first = request(ends[0], fresh<char>(1), 1, 0), *blocks[4];
  say("aio_read", aio_read(first));
  for (aiocb*& block : blocks) {
    block = request(ends[0], fresh<char>(100), 100, 0);
    say("aio_read", aio_read(block));
  }
  ::write(ends[1], "x", 1);
  say("read", finish(first));  // so libc's thread is at the next
  evict();
  say("another's", aio_cancel(ends[1], blocks[1]));
  say("running", aio_cancel(ends[0], blocks[0]) == AIO_NOTCANCELED);
  say("queued", aio_cancel(ends[0], blocks[2]) == AIO_CANCELED);
  std::printf("%s\n", std::strerror(aio_error(blocks[2])));
  say("all", aio_cancel(ends[0], nullptr) == AIO_NOTCANCELED);
  for (int i : {0, 1, 3}) std::printf("%s\n", std::strerror(aio_error(blocks[i])));
  ::write(ends[1], "abc", 3);
  say("running", finish(blocks[0]));
  std::printf("%.3s\n", static_cast<char*>(const_cast<void*>(blocks[0]->aio_buf)));
  say("all", aio_cancel(ends[0], nullptr) == AIO_ALLDONE);
  say("one", aio_cancel(ends[0], blocks[0]) == AIO_ALLDONE);
  return 0;
}

int cancelled_waits(long) {
  int ends[2];
  say("pipe", pipe(ends));
  aiocb* block = request(ends[0], fresh<char>(100), 100, 0);
  say("aio_read", aio_read(block));
  auto** list = fresh<const aiocb*>(100);
  for (int i = 0; i < 100; ++i) list[i] = i == 70 ? block : nullptr;
  evict();
  pthread_t waiter;
  static std::atomic<pid_t> waits{0};
  const auto wait = [](void* all) -> void* {
    waits = gettid();
    aio_suspend(static_cast<const aiocb**>(all), 100, nullptr);
    return nullptr;
  };
  say("thread", pthread_create(&waiter, nullptr, wait, list));
  await_asleep(waits);
  say("cancel", pthread_cancel(waiter));
  void* result = nullptr;
  say("join", pthread_join(waiter, &result));
  say("cancelled", result == PTHREAD_CANCELED);
  ::write(ends[1], "abc", 3);
  say("read", finish(block));
  return 0;
}

// Threads that look at the same requests, interrupted by a handler that does, too.
std::atomic<aiocb*> g_looked_at{nullptr};
void look_from_handler(int) {
  const int saved_errno = errno;
  if (aiocb* block = g_looked_at.load()) {
    aio_error(block);
    const aiocb* const list[] = {block};
    const timespec now{0, 0};
    aio_suspend(list, 1, &now);
  }
  errno = saved_errno;
}

int races(long) {
  const int fd = file_of("data");
  char* out = pattern(kBytes, 7);
  ::write(fd, out, kBytes);
  const long expected = sum(out, kBytes);
  struct sigaction action{};
  action.sa_handler = look_from_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  long wrong = 0;
  for (int round = 0; round < 100; ++round) {
    char* in = fresh<char>(kBytes);
    aiocb* block = request(fd, in, kBytes, 0);
    if (aio_read(block) != 0) return 1;
    g_looked_at = block;
    std::atomic<long> bad{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        const aiocb* const list[] = {block};
        while (aio_error(block) == EINPROGRESS) aio_suspend(list, 1, nullptr);
        if (aio_error(block) != 0 || aio_return(block) != static_cast<ssize_t>(kBytes) ||
            sum(in, kBytes) != expected)
          ++bad;
      });
    for (std::thread& thread : threads) thread.join();
    g_looked_at = nullptr;
    wrong += bad;
    free(in);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  say("wrong", wrong);
  return 0;
}

constexpr Part kParts[] = {{"transfers", transfers},
                           {"errors", errors},
                           {"waits", waits},
                           {"notifications", notifications},
                           {"lists", lists},
                           {"cancelling", cancelling},
                           {"cancelled waits", cancelled_waits},
                           {"races", races}};

}  // namespace

int main(int count, char** arguments) {
  char own[] = "aio.XXXXXX";  // each run begins in an empty directory
  if (mkdtemp(own) == nullptr || chdir(own) != 0) return 98;
  RUN_PARTS(kParts, count, arguments);
}
