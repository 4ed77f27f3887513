// System calls that are given pointers into the slots, also to what cannot be reached.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "guarded.h"
#include "operations.h"

namespace torture {

Scratch scratches[kGroups];

namespace {

constexpr size_t kBytesMax = sizeof scratches[0].bytes;
constexpr uint32_t kPagesMax = kBytesMax / kPage;
constexpr size_t kFileBytes = 4 * kBytesMax;

uint64_t sum_of(const char* at, size_t bytes) {
  uint64_t sum = bytes;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 29;
  }
  for (; bytes > 0; --bytes) sum = mixed(sum, static_cast<unsigned char>(*at++));
  return sum;
}

struct Buffer {
  Slot* slot;
  char* at;
  size_t bytes;
  Range pages;
};

// Some bytes of a slot, seldom whole pages; one whose slot is null if there is none.
Buffer choose_buffer(Context& context, uint32_t pages_max) {
  Random& random = context.random;
  Slot* slot = choose_slot(random, kOfAll, context.groups);
  if (slot == nullptr) return {nullptr, nullptr, 0, {nullptr, 0, 0}};
  const Range range = choose_range(random, *slot, random.percent(70) ? std::min(pages_max, 3u) : pages_max);
  size_t first = 0, last = range.bytes();
  if (random.percent(70)) first = random.below(kPage);
  if (random.percent(70)) last -= random.below(kPage);
  if (first >= last) first = 0;
  log_range(context, range);
  context.log->in("first", static_cast<int64_t>(first));
  context.log->in("bytes", static_cast<int64_t>(last - first));
  return {slot, range.begin() + first, last - first, range};
}

// After a call that may have stored to some of it.
void settle(Context& context, const Buffer& buffer, ssize_t done) {
  if (done >= 0 && static_cast<size_t>(done) == buffer.bytes) return;
  rewrite_pages(context, buffer.pages);
}

void log_sum(Context& context, const Buffer& buffer, size_t bytes) {
  volatile uint64_t sum = 0;
  if (guarded([&] { sum = sum_of(buffer.at, bytes); })) {
    context.log->hex("sum", sum);
  } else {
    log_caught(*context.log, *buffer.slot);
  }
}

// Between a buffer and the group's file, by the file's position or at an offset.
struct Transfer {
  Buffer buffer;
  off_t offset;
  bool seeks;
};
Transfer choose_transfer(Context& context) {
  const Buffer buffer = choose_buffer(context, kPagesMax);
  const auto offset = static_cast<off_t>(context.random.below(kFileBytes - kBytesMax));
  const bool seeks = context.random.percent(50);
  context.log->in("offset", offset);
  context.log->in("seeks", seeks);
  context.log->calls();
  return {buffer, offset, seeks};
}

void read_file(Context& context) {
  const auto [buffer, offset, seeks] = choose_transfer(context);
  if (buffer.slot == nullptr) return;
  const int file = scratches[buffer.slot->group].file;
  if (seeks) lseek(file, offset, SEEK_SET);
  const ssize_t done =
      seeks ? read(file, buffer.at, buffer.bytes) : pread(file, buffer.at, buffer.bytes, offset);
  context.log->result("read", done);
  if (seeks) context.log->out("moved", lseek(file, 0, SEEK_CUR) - offset);
  if (done > 0) log_sum(context, buffer, static_cast<size_t>(done));
  settle(context, buffer, done);
}

void write_file(Context& context) {
  const auto [buffer, offset, seeks] = choose_transfer(context);
  if (buffer.slot == nullptr) return;
  Scratch& scratch = scratches[buffer.slot->group];
  if (seeks) lseek(scratch.file, offset, SEEK_SET);
  const ssize_t done = seeks ? write(scratch.file, buffer.at, buffer.bytes)
                             : pwrite(scratch.file, buffer.at, buffer.bytes, offset);
  context.log->result("write", done);
  if (seeks) context.log->out("moved", lseek(scratch.file, 0, SEEK_CUR) - offset);
  if (done <= 0) return;
  const ssize_t back = pread(scratch.file, scratch.bytes, static_cast<size_t>(done), offset);
  context.log->hex("sum", sum_of(scratch.bytes, static_cast<size_t>(std::max<ssize_t>(back, 0))));
}

void read_vectors(Context& context) {
  Buffer buffers[3];
  iovec vectors[3];
  const unsigned count = 1 + static_cast<unsigned>(context.random.below(3));
  for (unsigned at = 0; at < count; ++at) {
    buffers[at] = choose_buffer(context, 4);
    vectors[at] = {buffers[at].at, buffers[at].bytes};
    if (buffers[at].slot == nullptr) return context.log->calls();
  }
  const bool writes = context.random.percent(50);
  context.log->in("writes", writes);
  context.log->calls();
  Scratch& scratch = scratches[buffers[0].slot->group];
  const auto offset = static_cast<off_t>(context.random.below(kBytesMax));
  if (writes) {
    const ssize_t done = pwritev(scratch.file, vectors, static_cast<int>(count), offset);
    context.log->result("pwritev", done);
    const ssize_t back =
        pread(scratch.file, scratch.bytes, static_cast<size_t>(std::max<ssize_t>(done, 0)), offset);
    context.log->hex("sum", sum_of(scratch.bytes, static_cast<size_t>(std::max<ssize_t>(back, 0))));
    return;
  }
  const ssize_t done = preadv(scratch.file, vectors, static_cast<int>(count), offset);
  context.log->result("preadv", done);
  size_t wanted = 0;
  for (unsigned at = 0; at < count; ++at) wanted += buffers[at].bytes;
  for (unsigned at = 0; at < count; ++at) {
    if (done == static_cast<ssize_t>(wanted)) log_sum(context, buffers[at], buffers[at].bytes);
    settle(context, buffers[at],
           done == static_cast<ssize_t>(wanted) ? static_cast<ssize_t>(buffers[at].bytes) : -1);
  }
}

// Of this process.
void copy_of_process(Context& context) {
  const Buffer buffer = choose_buffer(context, kPagesMax);
  const bool writes = context.random.percent(50);
  context.log->in("writes", writes);
  context.log->calls();
  if (buffer.slot == nullptr) return;
  static const bool reads_unreadable = allowed("unreadable_of_process");
  if (!writes && buffer.slot->may_be_managed() && buffer.slot->is_unreadable && !reads_unreadable)
    return context.log->word("left_out");
  Scratch& scratch = scratches[buffer.slot->group];
  std::memset(scratch.bytes, static_cast<int>(context.random.next()), buffer.bytes);
  const iovec ours{scratch.bytes, buffer.bytes}, theirs{buffer.at, buffer.bytes};
  const ssize_t done = writes ? process_vm_writev(getpid(), &ours, 1, &theirs, 1, 0)
                              : process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0);
  context.log->result("done", done);
  if (writes) {
    settle(context, buffer, done);
  } else if (done > 0) {
    context.log->hex("sum", sum_of(scratch.bytes, static_cast<size_t>(done)));
  }
}

// Whether pages are spliced that may be stored to or executed, but not read, depends on whether their tables are there.
bool spliced_for_sure(const Buffer& from, Scratch& scratch) {
  const iovec ours{scratch.bytes, from.bytes}, theirs{from.at, from.bytes};
  const bool copied = process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == static_cast<ssize_t>(from.bytes);
  return copied == accessible(from.pages, false);
}

void use_pipe(Context& context) {
  const Buffer from = choose_buffer(context, 8), to = choose_buffer(context, 8);
  const bool splices = context.random.percent(40);
  context.log->in("splices", splices);
  context.log->calls();
  if (from.slot == nullptr || to.slot == nullptr) return;
  Scratch& scratch = scratches[from.slot->group];
  static const bool takes_part = allowed("part_into_pipe");
  const bool is_part = (from.slot->may_be_managed() && !accessible(from.pages, false)) ||
                       ((splices || to.slot->may_be_managed()) && !accessible(to.pages, true));
  if (is_part && !takes_part) return context.log->word("left_out");
  const iovec vector{from.at, from.bytes};
  static const bool reads_unreadable = allowed("unreadable_of_process");
  // Of the kernel's own memory, too: what is there of its tables depends on who has read it for the program.
  const bool is_unsure = from.slot->is_unreadable && !(from.slot->may_be_managed() && reads_unreadable);
  if (splices && (is_unsure || !spliced_for_sure(from, scratch))) return context.log->word("neither");
  const ssize_t written =
      splices ? vmsplice(scratch.pipe[1], &vector, 1, 0) : write(scratch.pipe[1], from.at, from.bytes);
  context.log->result(splices ? "vmsplice" : "write", written);
  // What was spliced may be the memory itself.
  const bool itself = splices && from.slot == to.slot;
  char* into = itself ? scratch.bytes : to.at;
  const ssize_t read_bytes = read(scratch.pipe[0], into, itself ? kBytesMax : to.bytes);
  context.log->result("read", read_bytes);
  if (read_bytes > 0 && itself) context.log->hex("sum", sum_of(into, static_cast<size_t>(read_bytes)));
  if (read_bytes > 0 && !itself) log_sum(context, to, static_cast<size_t>(read_bytes));
  while (read(scratch.pipe[0], scratch.bytes, kBytesMax) > 0) {
  }
  if (!itself) settle(context, to, read_bytes);
}

// Structures that the kernel stores, and names that it loads.
void call_with_structure(Context& context) {
  Buffer buffer = choose_buffer(context, 2);
  const uint64_t which = context.random.below(5);
  context.log->in("which", static_cast<int64_t>(which));
  context.log->calls();
  if (buffer.slot == nullptr) return;
  // The largest of them ends before the range does.
  buffer.at = std::min(buffer.at, buffer.pages.begin() + buffer.pages.bytes() - 512);
  const int file = scratches[buffer.slot->group].file;
  int64_t done = 0;
  switch (which) {
    case 0:
      done = fstat(file, reinterpret_cast<struct stat*>(buffer.at));
      break;
    case 1:
      done = uname(reinterpret_cast<utsname*>(buffer.at));
      break;
    case 2:
      done = getrlimit(RLIMIT_CORE, reinterpret_cast<rlimit*>(buffer.at));
      break;
    case 3:
      done = readlink("/proc/self/exe", buffer.at, 1);
      break;
    default:
      if (!guarded([&] { std::memcpy(buffer.at, "/dev", 5); })) log_caught(*context.log, *buffer.slot);
      done = open(buffer.at, O_RDONLY | O_DIRECTORY);
      break;
  }
  context.log->result("call", done >= 0 ? 0 : -1);
  if (which == 4 && done >= 0) close(static_cast<int>(done));
  rewrite_pages(context, buffer.pages);
}

}  // namespace

void set_up_scratches() {
  for (Scratch& scratch : scratches) {
    scratch.file = memfd_create("scratch", MFD_CLOEXEC);
    bool good = scratch.file >= 0 && pipe2(scratch.pipe, O_NONBLOCK | O_CLOEXEC) == 0;
    for (size_t at = 0; at < kBytesMax; ++at) scratch.bytes[at] = static_cast<char>(mixed(at));
    for (size_t offset = 0; good && offset < kFileBytes; offset += kBytesMax) {
      good = pwrite(scratch.file, scratch.bytes, kBytesMax, static_cast<off_t>(offset)) ==
             static_cast<ssize_t>(kBytesMax);
    }
    if (good) continue;
    std::perror("mmtorture: a file to write to");
    std::exit(98);
  }
}

const Operation call_operations[] = {
    {"read_file", 24, read_file, false},
    {"write_file", 24, write_file, false},
    {"read_vectors", 16, read_vectors, false},
    {"copy_of_process", 16, copy_of_process, false},
    {"use_pipe", 16, use_pipe, false},
    {"call_with_structure", 8, call_with_structure, false},
    {nullptr, 0, nullptr, false},
};

}  // namespace torture
