// The calls that change memory, as the kernel has them: every part prints what each call returned and what is there
// afterwards, to be compared with a run without Spillway. Before that the data outgrows the cap.
#include <fcntl.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "parts.h"

namespace {

constexpr size_t kPage = 4096, kMib = size_t{1} << 20, kBytes = 32 * kMib;
constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;

char* map_anywhere(size_t bytes = kBytes, int rights = PROT_READ | PROT_WRITE) {
  void* p = mmap(nullptr, bytes, rights, kAnonymous | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) std::exit(90);
  return static_cast<char*>(p);
}
char* filled(size_t bytes = kBytes) {
  char* p = map_anywhere(bytes);
  for (size_t i = 0; i < bytes; i += kPage) std::memset(p + i, static_cast<int>(1 + i / kPage % 100), kPage);
  return p;
}
// More than the cap.
void outgrow() {
  char* p = filled(2 * kBytes);
  munmap(p, 2 * kBytes);
}

void told(const char* name, long result) {
  std::printf("%s: %ld %d\n", name, result, result == -1 ? errno : 0);
}
void told(const char* name, const void* result) { told(name, result == MAP_FAILED ? -1L : 0L); }

sigjmp_buf g_back;
void on_fault(int) { siglongjmp(g_back, 1); }
// '.' where there is nothing to be read, else the letter of the byte; capital where it cannot be stored to.
char look(volatile char* at) {
  volatile char seen = 0;
  if (sigsetjmp(g_back, 1) != 0) return '.';
  seen = static_cast<char>('a' + static_cast<unsigned char>(*at) % 25);
  if (*at == 0) seen = 'z';
  if (sigsetjmp(g_back, 1) != 0) return static_cast<char>(seen - 'a' + 'A');
  *at = *at;
  return seen;
}
void show(const char* name, char* p, size_t pages) {
  std::printf("%s: ", name);
  for (size_t i = 0; i < pages; ++i) std::putchar(look(p + i * kPage + 7));
  std::putchar('\n');
}

int begin(bool outgrows) {
  std::signal(SIGSEGV, on_fault);
  std::signal(SIGBUS, on_fault);
  if (outgrows) outgrow();
  return 0;
}

int holes(long outgrows) {
  begin(outgrows != 0);
  char* p = filled();
  told("a hole", munmap(p + 2 * kPage, 2 * kPage));
  told("a hole twice", munmap(p + 2 * kPage, 2 * kPage));
  told("not at a page", munmap(p + 1, kPage));
  told("no bytes", munmap(p, 0));
  show("hole", p, 6);
  told("protect over it", mprotect(p, 6 * kPage, PROT_READ));
  show("protected", p, 6);
  told("protect again", mprotect(p + 2 * kPage, 4 * kPage, PROT_NONE));
  show("unchanged", p, 6);
  told("no such right", mprotect(p, kPage, 0x40));
  told("sync over it", msync(p, 6 * kPage, MS_ASYNC));
  told("sync both", msync(p, kPage, MS_ASYNC | MS_SYNC));
  told("sync what", msync(p, kPage, 0x40));
  unsigned char there[8];
  told("residents over it", mincore(p, 6 * kPage, there));
  told("residents", mincore(p, 2 * kPage, there));
  told("fill it", mmap(p + 2 * kPage, kPage, PROT_READ | PROT_WRITE, kAnonymous | MAP_FIXED, -1, 0));
  show("filled", p, 6);
  told("not over it", mmap(p + kPage, 2 * kPage, PROT_READ, kAnonymous | MAP_FIXED_NOREPLACE, -1, 0));
  told("into it", mmap(p + 3 * kPage, kPage, PROT_READ, kAnonymous | MAP_FIXED_NOREPLACE, -1, 0));
  show("whole", p, 6);
  told("over it", mmap(p, 5 * kPage, PROT_READ | PROT_WRITE, kAnonymous | MAP_FIXED, -1, 0));
  show("anew", p, 6);
  return 0;
}

int advice(long outgrows) {
  begin(outgrows != 0);
  char* p = filled();
  for (int value = -1; value < 30; ++value) {
    if (value == 25 /* MADV_COLLAPSE */) continue;  // it may find no huge page
    char name[32];
    std::snprintf(name, sizeof name, "advice %d", value);
    told(name, madvise(p + static_cast<size_t>(value + 1) * 4 * kPage, 2 * kPage, value));
  }
  for (const int value : {MADV_DODUMP, MADV_DOFORK, MADV_KEEPONFORK})
    told("taken back", madvise(p, kMib, value));
  told("of free", madvise(p, 0, MADV_FREE));  // contents may stay for a while, natively
  munmap(p, kBytes);
  p = filled();
  told("dropped", madvise(p + kPage, 2 * kPage, MADV_DONTNEED));
  show("dropped", p, 5);
  told("not at a page", madvise(p + 1, kPage, MADV_DONTNEED));
  munmap(p + 6 * kPage, kPage);
  told("collapsed not at a page", madvise(p + 1, kPage, 25));
  told("over a hole", madvise(p + 5 * kPage, 3 * kPage, MADV_DONTNEED));
  show("over a hole", p, 9);
  told("populate a hole", madvise(p + 5 * kPage, 3 * kPage, MADV_POPULATE_READ));
  mprotect(p + 10 * kPage, kPage, PROT_NONE);
  told("populate nothing", madvise(p + 10 * kPage, kPage, MADV_POPULATE_READ));
  told("drop without rights", madvise(p + 10 * kPage, kPage, MADV_DONTNEED));
  mprotect(p + 10 * kPage, kPage, PROT_READ | PROT_WRITE);
  show("dropped without rights", p + 9 * kPage, 3);
  char* object = static_cast<char*>(std::malloc(kMib));
  char* page = object + (kPage - reinterpret_cast<uintptr_t>(object) % kPage);
  std::memset(object, 5, kMib);
  told("of an object", madvise(page + kPage, 2 * kPage, MADV_DONTNEED));
  show("object", page, 5);
  std::free(object);
  return 0;
}

int locks(long outgrows) {
  begin(outgrows != 0);
  char* p = filled();
  told("lock", mlock(p + 10, 3 * kPage));
  told("drop locked", madvise(p, kPage, MADV_DONTNEED));
  told("drop up to locked", madvise(p + 20 * kPage, 3 * kPage, MADV_DONTNEED) + mlock(p + 31 * kPage, kPage));
  told("drop over locked", madvise(p + 30 * kPage, 3 * kPage, MADV_DONTNEED));
  show("dropped before it", p + 29 * kPage, 5);
  told("drop all the same", madvise(p + kPage, kPage, 24));
  told("free locked", madvise(p, kPage, MADV_FREE));
  told("page out locked", madvise(p, kPage, MADV_PAGEOUT));
  told("invalidate locked", msync(p, kPage, MS_INVALIDATE));
  told("unlock a part", munlock(p + kPage, kPage));
  told("drop that", madvise(p + kPage, kPage, MADV_DONTNEED));
  told("but not this", madvise(p + 2 * kPage, kPage, MADV_DONTNEED));
  show("locked", p, 5);
  munmap(p + 2 * kPage, kPage);
  told("lock over a hole", mlock(p, 4 * kPage));
  told("unlock over a hole", munlock(p, 4 * kPage));
  told("on fault", mlock2(p, kPage, MLOCK_ONFAULT));
  told("on what", mlock2(p, kPage, 4));
  mprotect(p + 8 * kPage, kPage, PROT_NONE);
  told("lock without rights", mlock(p + 8 * kPage, kPage));
  told("on fault without rights", mlock2(p + 8 * kPage, kPage, MLOCK_ONFAULT));
  told("all of it", munmap(p, kBytes));
  return 0;
}

int moves(long outgrows) {
  begin(outgrows != 0);
  char* p = filled(kMib);
  mprotect(p + kPage, kPage, PROT_READ);
  told("over a change of rights", mremap(p, kMib, 2 * kMib, MREMAP_MAYMOVE));
  mprotect(p, kMib, PROT_READ);
  char* q = static_cast<char*>(mremap(p, kMib, 2 * kMib, MREMAP_MAYMOVE));
  told("grown", q);
  show("rights", q, 5);
  show("rights of what is new", q + kMib, 3);
  mprotect(q, 2 * kMib, PROT_READ | PROT_WRITE);
  told("two flags", mremap(q, kMib, kMib, MREMAP_DONTUNMAP));
  told("no such flag", mremap(q, kMib, kMib, 8));
  told("nothing", mremap(q, kMib, 0, 0));
  told("of nothing", mremap(q, 0, kMib, MREMAP_MAYMOVE));
  told("not at a page", mremap(q + 1, kMib, kMib, 0));
  char* kept = static_cast<char*>(mremap(q, 2 * kMib, 2 * kMib, MREMAP_MAYMOVE | MREMAP_DONTUNMAP));
  told("kept", kept);
  show("moved", kept, 5);
  show("left", q, 5);
  char* into = map_anywhere(4 * kMib);
  std::memset(into, 3, 4 * kMib);
  told("onto itself", mremap(kept, 2 * kMib, 2 * kMib, MREMAP_MAYMOVE | MREMAP_FIXED, kept + kPage));
  told("fixed", mremap(kept, 2 * kMib, 2 * kMib, MREMAP_MAYMOVE | MREMAP_FIXED, into + kMib));
  show("fixed", into + kMib, 5);
  show("before it", into + kMib - 2 * kPage, 3);
  show("gone", kept, 2);
  char* shared =
      static_cast<char*>(mmap(nullptr, 8 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  mprotect(into + 16 * kPage, 2 * kPage, PROT_READ);
  told("out and grown",
       mremap(into + 16 * kPage, 2 * kPage, 4 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, shared));
  show("out and grown", shared, 6);
  told("shrunk", mremap(into, 4 * kMib, kMib, 0));
  show("shrunk", into + kMib - 2 * kPage, 4);
  char* none = map_anywhere(64 * kMib, PROT_NONE);
  char* larger = static_cast<char*>(mremap(none, 64 * kMib, 128 * kMib, MREMAP_MAYMOVE));
  told("a reservation", larger);
  told("of it", mprotect(larger + 100 * kMib, kPage, PROT_READ | PROT_WRITE));
  show("reserved", larger + 100 * kMib - kPage, 3);
  return 0;
}

int transfers(long outgrows) {
  begin(outgrows != 0);
  char* p = filled();
  char name[] = "/tmp/spw_memory_calls_XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  char some[3 * kPage];
  std::memset(some, 9, sizeof some);
  told("file", write(file, some, sizeof some));
  mprotect(p + kPage, kPage, PROT_NONE);
  mprotect(p + 4 * kPage, kPage, PROT_READ);
  munmap(p + 8 * kPage, kPage);
  told("read into none", pread(file, p + kPage, kPage, 0));
  told("read into read-only", pread(file, p + 4 * kPage, kPage, 0));
  told("read into a hole", pread(file, p + 8 * kPage, kPage, 0));
  told("read up to none", pread(file, p, 2 * kPage, 0));
  told("read nothing", pread(file, p + kPage, 0, 0));
  told("read what is not open", pread(999, p + kPage, kPage, 0));
  told("read at the end", pread(file, p + kPage, kPage, static_cast<off_t>(kMib)));
  show("read", p, 6);
  told("write none", pwrite(file, p + kPage, kPage, 0));
  told("write read-only", pwrite(file, p + 4 * kPage, kPage, 0));
  told("write a hole", pwrite(file, p + 8 * kPage, kPage, 0));
  told("write up to a hole", pwrite(file, p + 7 * kPage, 2 * kPage, 0));
  iovec pieces[] = {{p, kPage}, {p + 2 * kPage, kPage}, {p + kPage, kPage}};
  told("pieces", preadv(file, pieces, 3, 0));
  iovec wrong[] = {{p + kPage, kPage}, {p, kPage}};
  told("wrong pieces", preadv(file, wrong, 2, 0));
  char* native =
      static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  mprotect(native + kPage, kPage, PROT_READ);
  iovec mixed[] = {{p, kPage}, {native + 100, 2 * kPage - 100}};
  told("pieces of other memory", pwritev(file, mixed, 2, 0));
  told("read-only ones", preadv(file, mixed, 2, 0));
  munmap(native + kPage, kPage);
  told("pieces that end", pwritev(file, mixed, 2, 0));
  mixed[1] = mixed[0];
  mixed[0] = {native + kPage, kPage};
  told("a wrong piece first", pwritev(file, mixed, 2, 0));
  told("into a wrong piece", preadv(file, mixed, 2, 0));
  told("pieces in a hole", preadv(file, reinterpret_cast<iovec*>(p + 8 * kPage), 2, 0));
  int ends[2];
  if (pipe(ends) != 0) return 91;
  told("pipe", write(ends[1], p + kPage, 100));
  told("pipe in", write(ends[1], "hello", 5));
  told("pipe out", read(ends[0], p + kPage, 5));
  told("pipe still", read(ends[0], p, 5));
  struct stat* info = reinterpret_cast<struct stat*>(p + kPage);
  told("stat", syscall(SYS_fstat, file, info));
  told("open", open(p + kPage, O_RDONLY));
  auto* word = reinterpret_cast<uint32_t*>(p + 4 * kPage);  // read-only
  std::memset(p + kBytes / 2, 8, kBytes / 2);               // it may be evicted
  told("futex", syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0));
  told("private futex", syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0));
  told("random", syscall(SYS_getrandom, p + kPage, 8, 0));
  return 0;
}

// Memory that may not be executed, but holds code: `ret`.
int calls(long outgrows) {
  begin(outgrows != 0);
  char* p = filled();
  volatile int ran = 0, refused = 0;
  for (volatile size_t at = 0; at < kBytes; at = at + 7 * kPage) {
    p[at] = static_cast<char>(0xC3);
    void (*volatile code)();
    void* entry = p + at;
    std::memcpy(const_cast<void (**)()>(&code), &entry, sizeof entry);
    if (sigsetjmp(g_back, 1) != 0) {
      refused = refused + 1;
      continue;
    }
    code();
    ran = ran + 1;
  }
  std::printf("ran %d, refused %d\n", ran, refused);
  told("executable", mprotect(p, kBytes, PROT_READ | PROT_EXEC));
  void (*code)();
  void* entry = p + 7 * kPage;
  std::memcpy(&code, &entry, sizeof entry);
  code();
  told("ran", 0L);
  return 0;
}

int children(long outgrows) {
  begin(outgrows != 0);
  char* p = filled();
  told("wipe", madvise(p + kPage, 2 * kPage, MADV_WIPEONFORK));
  told("do not fork", madvise(p + 4 * kPage, kPage, MADV_DONTFORK));
  told("do after all",
       madvise(p + 6 * kPage, kPage, MADV_DONTFORK) + madvise(p + 6 * kPage, kPage, MADV_DOFORK));
  told("lock", mlock(p + 8 * kPage, kPage));
  const int file = memfd_create("short", 0);
  told("a short file", ftruncate(file, kPage));
  auto* short_file =
      static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  std::fflush(stdout);
  for (int round = 0; round < 2; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      told("lock in a child", mlock(p + 7 * kPage, kPage));
      show("child", p, 9);
      show("behind a file's end", short_file, 2);
      told("not locked", madvise(p + 8 * kPage, kPage, MADV_DONTNEED));
      const pid_t grandchild = fork();
      if (grandchild == 0) {
        show("its child", p, 9);
        std::fflush(stdout);
        _exit(0);
      }
      waitpid(grandchild, nullptr, 0);
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    told("ended", status);
    show("parent", p, 9);
    munmap(p + 2 * kPage, kPage);
    std::fflush(stdout);
  }
  return 0;
}

const Part kParts[] = {{"holes", holes},         {"advice", advice},     {"locks", locks}, {"moves", moves},
                       {"transfers", transfers}, {"children", children}, {"calls", calls}};

}  // namespace

int main(int count, char** words) { RUN_PARTS(kParts, count, words); }
