// A short program whose calls are made to fail (every_nth.py): what it is told of a failure it says, and ends with 3;
// what it was promised it says at once, by a line of its own, so that the promise can be looked up in the file. Few
// calls are its own.
//
//   program heap             memory that does not fit: filled, changed, checked, partly given back and used again
//   program threads          the same by three threads at a time
//   program fork             a forked child checks and changes memory that does not fit, and so does its parent
//   program map_read FILE    all of a mapped file, which may only be read
//   program map_write FILE   the file's words are replaced by those of version 1, msync, and by those of version 2
//   program map_leave FILE   the same, and it ends without unmapping the file
//   program buffer FILE      as map_write by pwrite and fsync; and all is read in between
//   program leave FILE       the same, and it ends without closing the file
//   program grow FILE        the file, which is not there, is made: version 1 by write, fsync, a piece more and ftruncate,
//                            and version 2
//
// A file has kFileBytes and at first the words of version 0. Lines on standard output: "synced V" when version V is
// durable, "closed" when the file was closed, "ended" at the end.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr uint64_t kMib = 1 << 20, kHeapBytes = 10 * kMib, kFileBytes = 10 * kMib, kPieceBytes = 64 << 10;
constexpr int kTold = 3, kWrong = 4;

// Without a buffer, which would be memory that may be spilled.
void say(const char* line) {
  char text[100];
  const int bytes = snprintf(text, sizeof text, "%s\n", line);
  if (write(1, text, static_cast<size_t>(bytes)) != bytes) _exit(kWrong);
}

[[noreturn]] void told(const char* call) {
  const int error = errno;
  char text[100];
  const int bytes = snprintf(text, sizeof text, "program: %s failed: %s\n", call, strerror(error));
  if (write(2, text, static_cast<size_t>(bytes)) != bytes) _exit(kWrong);
  exit(kTold);
}

[[noreturn]] void wrong(const char* what, uint64_t at) {
  printf("wrong: %s at word %llu\n", what, static_cast<unsigned long long>(at));
  fflush(stdout);
  _exit(kWrong);
}

uint64_t word(uint64_t index, uint64_t version) { return (index + 1) * 0x9E3779B97F4A7C15u + version; }

void fill(uint64_t* words, uint64_t from, uint64_t count, uint64_t version) {
  for (uint64_t i = 0; i < count; ++i) words[i] = word(from + i, version);
}
void expect(const uint64_t* words, uint64_t from, uint64_t count, uint64_t version, const char* what) {
  for (uint64_t i = 0; i < count; ++i)
    if (words[i] != word(from + i, version)) wrong(what, from + i);
}

uint64_t* allocated(uint64_t bytes) {
  auto* words = static_cast<uint64_t*>(malloc(bytes));
  if (words == nullptr) told("malloc");
  return words;
}

void use_heap() {
  constexpr uint64_t kWords = kHeapBytes / 8, kHalf = kWords / 2;
  uint64_t* one = allocated(kHeapBytes / 2);
  uint64_t* other = allocated(kHeapBytes / 2);
  fill(one, 0, kHalf, 1);
  fill(other, kHalf, kHalf, 1);
  expect(one, 0, kHalf, 1, "first pass");
  for (uint64_t at = 0; at < kHalf; at += 1024) other[at] = word(kHalf + at, 2);
  free(one);
  one = allocated(kHeapBytes / 4);
  fill(one, 0, kHalf / 2, 3);
  for (uint64_t at = 0; at < kHalf; ++at)
    if (other[at] != word(kHalf + at, at % 1024 == 0 ? 2 : 1)) wrong("second pass", at);
  expect(one, 0, kHalf / 2, 3, "third pass");
  free(one);
  free(other);
}

void* use_part(void* part) {
  constexpr uint64_t kWords = kHeapBytes / 3 / 8;
  const auto from = reinterpret_cast<uintptr_t>(part) * kWords;
  uint64_t* words = allocated(kWords * 8);
  for (uint64_t version = 1; version <= 2; ++version) {
    fill(words, from, kWords, version);
    expect(words, from, kWords, version, "a thread's part");
  }
  free(words);
  return nullptr;
}

void use_threads() {
  constexpr uintptr_t kThreads = 3;
  pthread_t threads[kThreads];
  for (uintptr_t i = 0; i < kThreads; ++i)
    if ((errno = pthread_create(&threads[i], nullptr, &use_part, reinterpret_cast<void*>(i))) != 0)
      told("pthread_create");
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
}

void use_fork() {
  constexpr uint64_t kWords = kHeapBytes / 8;
  uint64_t* words = allocated(kHeapBytes);
  fill(words, 0, kWords, 1);
  const pid_t child = fork();
  if (child < 0) told("fork");
  const uint64_t version = child == 0 ? 2 : 3;
  expect(words, 0, kWords, 1, "what both have");
  fill(words, 0, kWords / 2, version);
  expect(words, 0, kWords / 2, version, "its own half");
  expect(words + kWords / 2, kWords / 2, kWords / 2, 1, "the other half");
  if (child == 0) exit(0);
  int status;
  if (waitpid(child, &status, 0) != child) told("waitpid");
  if (WIFSIGNALED(status)) wrong("signal of the child", static_cast<uint64_t>(WTERMSIG(status)));
  if (WEXITSTATUS(status) == kWrong) _exit(kWrong);
  errno = ECHILD;
  if (status != 0) told("the child");
  free(words);
}

int opened(const char* path, int flags) {
  const int fd = open(path, flags | O_CLOEXEC);
  if (fd < 0) told("open");
  return fd;
}
void closed(int fd) {
  if (close(fd) != 0) told("close");
  say("closed");
}

uint64_t* mapped(int fd, int rights) {
  void* at = mmap(nullptr, kFileBytes, rights, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) told("mmap");
  return static_cast<uint64_t*>(at);
}

void map_read(const char* path) {
  const int fd = opened(path, O_RDONLY);
  const uint64_t* words = mapped(fd, PROT_READ);
  expect(words, 0, kFileBytes / 8, 0, "reading it once");
  for (uint64_t i = kFileBytes / 8; i > 0; i -= 512)
    if (words[i - 1] != word(i - 1, 0)) wrong("reading it back to front", i - 1);
  if (munmap(const_cast<uint64_t*>(words), kFileBytes) != 0) told("munmap");
  closed(fd);
}

void map_write(const char* path, bool unmaps) {
  const int fd = opened(path, O_RDWR);
  uint64_t* words = mapped(fd, PROT_READ | PROT_WRITE);
  expect(words, 0, kFileBytes / 8, 0, "what it was");
  fill(words, 0, kFileBytes / 8, 1);
  if (msync(words, kFileBytes, MS_SYNC) != 0) told("msync");
  say("synced 1");
  expect(words, 0, kFileBytes / 8, 1, "what was synced");
  fill(words, 0, kFileBytes / 8, 2);
  if (!unmaps) return;
  if (munmap(words, kFileBytes) != 0) told("munmap");
  closed(fd);
}

void write_all(int fd, uint64_t* piece, uint64_t version) {
  for (uint64_t at = 0; at < kFileBytes; at += kPieceBytes) {
    fill(piece, at / 8, kPieceBytes / 8, version);
    for (uint64_t done = 0; done < kPieceBytes;) {
      const ssize_t moved = pwrite(fd, reinterpret_cast<char*>(piece) + done, kPieceBytes - done,
                                   static_cast<off_t>(at + done));
      if (moved <= 0) told("pwrite");
      done += static_cast<uint64_t>(moved);
    }
  }
}
void read_all(int fd, uint64_t* piece, uint64_t version, const char* what) {
  for (uint64_t at = 0; at < kFileBytes; at += kPieceBytes) {
    for (uint64_t done = 0; done < kPieceBytes;) {
      const ssize_t moved =
          pread(fd, reinterpret_cast<char*>(piece) + done, kPieceBytes - done, static_cast<off_t>(at + done));
      if (moved <= 0) told("pread");
      done += static_cast<uint64_t>(moved);
    }
    expect(piece, at / 8, kPieceBytes / 8, version, what);
  }
}

alignas(4096) uint64_t piece[kPieceBytes / 8];

void buffer(const char* path, bool closes) {
  const int fd = opened(path, O_RDWR);
  read_all(fd, piece, 0, "what it was");
  write_all(fd, piece, 1);
  if (fsync(fd) != 0) told("fsync");
  say("synced 1");
  read_all(fd, piece, 1, "what was synced");
  write_all(fd, piece, 2);
  if (closes) closed(fd);
}

void append(int fd, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t moved = write(fd, reinterpret_cast<char*>(piece) + done, bytes - done);
    if (moved <= 0) told("write");
    done += static_cast<uint64_t>(moved);
  }
}

void grow(const char* path) {
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) told("open");
  for (uint64_t at = 0; at < kFileBytes; at += kPieceBytes) {
    fill(piece, at / 8, kPieceBytes / 8, 1);
    append(fd, kPieceBytes);
  }
  if (fsync(fd) != 0) told("fsync");
  say("synced 1");
  append(fd, kPieceBytes / 3);
  if (ftruncate(fd, static_cast<off_t>(kFileBytes)) != 0) told("ftruncate");
  read_all(fd, piece, 1, "what was synced");
  write_all(fd, piece, 2);
  closed(fd);
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const char* path = argc > 2 ? argv[2] : "";
  if (strcmp(what, "heap") == 0)
    use_heap();
  else if (strcmp(what, "threads") == 0)
    use_threads();
  else if (strcmp(what, "fork") == 0)
    use_fork();
  else if (strcmp(what, "map_read") == 0)
    map_read(path);
  else if (strcmp(what, "map_write") == 0 || strcmp(what, "map_leave") == 0)
    map_write(path, strcmp(what, "map_write") == 0);
  else if (strcmp(what, "buffer") == 0 || strcmp(what, "leave") == 0)
    buffer(path, strcmp(what, "buffer") == 0);
  else if (strcmp(what, "grow") == 0)
    grow(path);
  else
    return kWrong;
  say("ended");
  return 0;
}
