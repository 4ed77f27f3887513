// Memory that is used as more than data: code, stacks, futexes, System V's shared memory, the break, files that end
// within a page, and what /proc/self/mem says.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "guarded.h"
#include "operations.h"

namespace torture {

namespace {

Range choose(Context& context, unsigned kinds, uint32_t pages_max) {
  Slot* slot = choose_slot(context.random, kinds, context.groups);
  if (slot == nullptr) return {nullptr, 0, 0};
  const Range range = choose_range(context.random, *slot, pages_max);
  log_range(context, range);
  return range;
}

// A function that returns a number.
void execute(Context& context) {
  const Range range = choose(context, kOfAll, 1);
  const uint64_t offset = context.random.below(kPage - 16);
  context.log->in("offset", static_cast<int64_t>(offset));
  context.log->calls();
  if (range.slot == nullptr) return;
  const auto number = static_cast<uint32_t>(context.random.next());
  unsigned char code[6] = {0xB8, 0, 0, 0, 0, 0xC3};
  std::memcpy(code + 1, &number, sizeof number);
  auto* at = reinterpret_cast<volatile unsigned char*>(range.begin() + offset);
  volatile bool there = true;
  const bool stored = guarded([&] {
    for (unsigned byte = 0; byte < sizeof code; ++byte) at[byte] = code[byte];
    for (unsigned byte = 0; byte < sizeof code; ++byte) there = there && at[byte] == code[byte];
  });
  if (!stored || !there) return log_caught(*context.log, *range.slot);
  volatile uint32_t returned = 0;
  if (guarded([&] { returned = reinterpret_cast<uint32_t (*)()>(reinterpret_cast<uintptr_t>(at))(); })) {
    context.log->hex("returned", returned);
  } else {
    log_caught(*context.log, *range.slot);
  }
}

void grow_down(Context& context) {
  const Range range = choose(context, kOfFar, 4);
  context.log->calls();
  if (range.slot == nullptr || range.page < 16) return;
  const Range below{range.slot, range.page - 16, 16};
  context.log->result("munmap", munmap(below.begin(), below.bytes()));
  mark(below, 0);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN;
  void* at = mmap(range.begin(), range.bytes(), PROT_READ | PROT_WRITE, kFlags, -1, 0);
  context.log->result("offset", at == MAP_FAILED ? -1 : static_cast<char*>(at) - range.begin());
  if (at == MAP_FAILED) return;
  mark(range, mixed(context.number) | 1);
  const uint32_t down = 1 + static_cast<uint32_t>(context.random.below(12));
  const Range grown{range.slot, range.page - down, down};
  store_pages(context, {range.slot, grown.page, 1}, false);
  load_pages(context, grown, false);
  // It would go on growing.
  context.log->result("munmap", munmap(grown.begin(), grown.bytes() + range.bytes()));
  mark({range.slot, grown.page, down + range.pages}, 0);
}

void* sum_on_stack(void* given) {
  volatile unsigned char bytes[16000];
  auto sum = reinterpret_cast<uintptr_t>(given);
  for (unsigned at = 0; at < sizeof bytes; ++at) bytes[at] = static_cast<unsigned char>(sum + at);
  for (unsigned at = 0; at < sizeof bytes; at += 64) sum = sum * 31 + bytes[at];
  return reinterpret_cast<void*>(sum);
}

// A thread whose stack is in a slot.
void stack_in_slot(Context& context) {
  const Range range = choose(context, kOfAll, 64);
  context.log->calls();
  static const bool in_managed = allowed("stack_in_managed");
  if (range.slot == nullptr || range.pages < 16 || (range.slot->may_be_managed() && !in_managed) ||
      !accessible(range, true))
    return;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, range.begin(), range.bytes());
  pthread_t thread;
  const int made =
      pthread_create(&thread, &attributes, sum_on_stack, reinterpret_cast<void*>(context.random.next()));
  pthread_attr_destroy(&attributes);
  context.log->out("made", made);
  if (made != 0) return;
  void* sum = nullptr;
  context.log->out("joined", pthread_join(thread, &sum));
  context.log->hex("sum", reinterpret_cast<uintptr_t>(sum));
  rewrite_pages(context, range);
}

void use_futex(Context& context) {
  const Range range = choose(context, kOfAll, 1);
  const bool wakes = context.random.percent(50);
  context.log->in("wakes", wakes);
  context.log->calls();
  if (range.slot == nullptr) return;
  auto* word = reinterpret_cast<uint32_t*>(range.begin() + context.random.below(kPage / 4) * 4);
  // Of one process, or of several.
  const int own = context.random.percent(50) ? FUTEX_PRIVATE_FLAG : 0;
  volatile uint32_t value = 0;
  guarded([&] { value = *static_cast<volatile uint32_t*>(word) + 1; });
  const timespec at_once{0, 1};
  const int64_t done = syscall(SYS_futex, word, (wakes ? FUTEX_WAKE : FUTEX_WAIT) | own, wakes ? 1 : value,
                               &at_once, nullptr, 0);
  context.log->result("futex", done);
}

void attach_shared(Context& context) {
  const Range range = choose(context, kOfMapped, 64);
  context.log->calls();
  if (range.slot == nullptr) return;
  static const bool into_managed = allowed("share_managed");
  if (range.slot->may_be_managed() && !into_managed) return context.log->word("left_out");
  const int shared = shmget(IPC_PRIVATE, range.bytes(), IPC_CREAT | 0600);
  context.log->result("made", shared < 0 ? -1 : 0);
  if (shared < 0) return;
  static constexpr int kFlags[] = {SHM_REMAP, SHM_REMAP, SHM_REMAP | SHM_RDONLY, 0};
  const int flags = context.random.of(kFlags);
  context.log->out("flags", flags);
  void* at = shmat(shared, range.begin(), flags);
  context.log->result("offset", at == MAP_FAILED ? -1 : static_cast<char*>(at) - range.begin());
  void* other = shmat(shared, nullptr, 0);
  shmctl(shared, IPC_RMID, nullptr);
  if (other != MAP_FAILED) {
    std::memset(other, static_cast<int>(context.random.next()), range.bytes());
    context.log->result("detached", shmdt(other));
  }
  if (at == MAP_FAILED) return;
  mark(range, mixed(context.number) | 1);
  probe_range(context, range);
}

void move_break(Context& context) {
  const intptr_t bytes = static_cast<intptr_t>((1 + context.random.below(256)) * kPage);
  context.log->in("bytes", bytes);
  context.log->calls();
  auto* at = static_cast<char*>(sbrk(bytes));
  if (at == MAP_FAILED) return context.log->result("sbrk", -1);
  volatile bool zeros = true;
  for (intptr_t byte = 0; byte < bytes; byte += 512) zeros = zeros && at[byte] == 0;
  std::memset(at, 7, static_cast<size_t>(bytes));
  context.log->out("zeros", zeros);
  context.log->out("end", static_cast<char*>(sbrk(0)) - at);
  context.log->out("back", static_cast<char*>(sbrk(-bytes)) - at);
}

// What is behind a file's end in its last page is zeros at first, and never gets to the file.
void map_odd_file(Context& context) {
  static int files[kGroups] = {-1, -1, -1};
  const size_t bytes = 1 + context.random.below(3 * kPage);
  const bool shared = context.random.percent(50);
  context.log->in("bytes", static_cast<int64_t>(bytes));
  context.log->in("shared", shared);
  context.log->calls();
  const unsigned group = context.group();
  if (files[group] < 0) files[group] = memfd_create("odd", MFD_CLOEXEC);
  const int file = files[group];
  char* ours = scratches[group].bytes;
  std::memset(ours, static_cast<int>(context.random.next() % 255 + 1), bytes);
  context.log->result("cut", ftruncate(file, 0));
  context.log->result("pwrite", pwrite(file, ours, bytes, 0));
  void* at = mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, file, 0);
  context.log->result("mapped", at == MAP_FAILED ? -1 : 0);
  if (at == MAP_FAILED) return;
  auto* mapped = static_cast<volatile char*>(at);
  const size_t end = (bytes + kPage - 1) / kPage * kPage;
  int64_t behind = 0;
  for (size_t byte = bytes; byte < end; ++byte) behind += mapped[byte] != 0;
  context.log->out("behind", behind);
  for (size_t byte = 0; byte < end; byte += 100) mapped[byte] = 'x';
  if (!guarded([&] { mapped[end] = 1; })) log_caught(*context.log, static_cast<char*>(at));
  context.log->result("msync", msync(at, end, MS_SYNC));
  const ssize_t back = pread(file, ours, 4 * kPage, 0);
  context.log->out("back", back);
  uint64_t sum = 0;
  for (ssize_t byte = 0; byte < back; ++byte)
    sum = (sum ^ static_cast<unsigned char>(ours[byte])) * 0x100000001B3u;
  context.log->hex("sum", sum);
  context.log->result("munmap", munmap(at, 4 * kPage));
}

void use_proc_mem(Context& context) {
  const Range range = choose(context, kOfAll, 4);
  const bool writes = context.random.percent(40);
  context.log->in("writes", writes);
  context.log->calls();
  static const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  static const pid_t process = getpid();
  if (range.slot == nullptr || getpid() != process) return;
  static const bool of_managed = allowed("proc_mem_of_managed");
  if (range.slot->may_be_managed() && !of_managed) return context.log->word("left_out");
  char* ours = scratches[range.slot->group].bytes;
  const auto offset = static_cast<off_t>(reinterpret_cast<uintptr_t>(range.begin()));
  std::memset(ours, static_cast<int>(context.random.next()), range.bytes());
  const ssize_t done =
      writes ? pwrite(memory, ours, range.bytes(), offset) : pread(memory, ours, range.bytes(), offset);
  context.log->result("done", done);
  uint64_t sum = 0;
  for (ssize_t byte = 0; byte < done; byte += 8) sum = mixed(sum, static_cast<unsigned char>(ours[byte]));
  context.log->hex("sum", sum);
}

}  // namespace

const Operation special_operations[] = {
    {"execute", 12, execute, false},
    {"grow_down", 4, grow_down, false},
    {"stack_in_slot", 3, stack_in_slot, false},
    {"use_futex", 8, use_futex, false},
    {"attach_shared", 3, attach_shared, false},
    {"move_break", 2, move_break, true},
    {"map_odd_file", 4, map_odd_file, true},
    {"use_proc_mem", 3, use_proc_mem, true},
    {nullptr, 0, nullptr, false},
};

}  // namespace torture
