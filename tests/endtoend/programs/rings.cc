// io_uring and libaio: rings that are made before the runtime watches memory, and after it (see
// tests/endtoend/test_raw_calls.py).
//   rings uring_before|uring_after|aio_before|aio_after
#include <fcntl.h>
#include <libaio.h>
#include <liburing.h>
#include <unistd.h>

#include <cstdint>

#include "fresh.h"
#include "parts.h"

namespace {

constexpr size_t kBytes = 4 << 20;
constexpr size_t kPieceBytes = 256 << 10;

uint64_t word(size_t i) { return i * 0x9E3779B97F4A7C15u + 1; }

// transfer(is_write, fd, buffer, bytes, offset) -> bytes or an error. Written from evicted memory, and read into
// evicted memory. What a device reads straight into memory that is evicted meanwhile may be lost (spillway-regions(7)),
// so of that only the results are looked at.
template <class Transfer>
void there_and_back(int flags, Transfer transfer) {
  const int fd = open("file", O_CREAT | O_RDWR | O_TRUNC | flags, 0600);
  if (fd < 0) {
    std::printf("no direct I/O here\n");
    return;
  }
  auto *from = fresh<uint64_t>(kBytes / 8), *to = fresh<uint64_t>(kBytes / 8);
  for (size_t i = 0; i < kBytes / 8; ++i) from[i] = word(i);
  for (const bool is_write : {true, false}) {
    evict();
    long moved = 0;
    for (size_t at = 0; at < kBytes; at += kPieceBytes) {
      char* buffer = reinterpret_cast<char*>(is_write ? from : to) + at;
      const long result = transfer(is_write, fd, buffer, kPieceBytes, static_cast<off_t>(at));
      if (result < 0) std::printf("error %ld\n", result);
      moved += result;
    }
    std::printf("%s %ld\n", is_write ? "written" : "read", moved);
  }
  size_t wrong = 0;
  for (size_t i = 0; i < kBytes / 8; ++i) wrong += to[i] != word(i);
  if (flags == 0) std::printf("wrong %zu\n", wrong);
  // What was written, by libc.
  auto* again = fresh<uint64_t>(kBytes / 8);
  evict();
  const int plain = open("file", O_RDONLY);
  std::printf("in the file %ld\n", static_cast<long>(read(plain, again, kBytes)));
  wrong = 0;
  for (size_t i = 0; i < kBytes / 8; ++i) wrong += again[i] != word(i);
  std::printf("wrong %zu\n", wrong);
  close(plain);
  close(fd);
}

long through_uring(io_uring* ring, bool is_write, int fd, char* buffer, size_t bytes, off_t at) {
  io_uring_sqe* entry = io_uring_get_sqe(ring);
  if (is_write)
    io_uring_prep_write(entry, fd, buffer, static_cast<unsigned>(bytes), static_cast<uint64_t>(at));
  else
    io_uring_prep_read(entry, fd, buffer, static_cast<unsigned>(bytes), static_cast<uint64_t>(at));
  io_uring_submit(ring);
  io_uring_cqe* done;
  if (const int error = io_uring_wait_cqe(ring, &done); error < 0) return error;
  const long result = done->res;
  io_uring_cqe_seen(ring, done);
  return result;
}

long through_aio(io_context_t context, bool is_write, int fd, char* buffer, size_t bytes, off_t at) {
  iocb block, *list[] = {&block};
  is_write ? io_prep_pwrite(&block, fd, buffer, bytes, at) : io_prep_pread(&block, fd, buffer, bytes, at);
  if (const int error = io_submit(context, 1, list); error < 0) return error;
  io_event event;
  if (const int got = io_getevents(context, 1, 1, &event, nullptr); got != 1) return got;
  return static_cast<long>(event.res);
}

int uring_before(long) {
  io_uring ring;
  if (const int error = io_uring_queue_init(8, &ring, 0); error < 0)
    return std::printf("none: %d\n", error), 0;
  for (const int flags : {0, O_DIRECT})
    there_and_back(flags, [&](auto... arguments) { return through_uring(&ring, arguments...); });
  io_uring_queue_exit(&ring);
  return 0;
}

int aio_before(long) {
  io_context_t context{};
  if (const int error = io_setup(8, &context); error < 0) return std::printf("none: %d\n", error), 0;
  for (const int flags : {0, O_DIRECT})
    there_and_back(flags, [&](auto... arguments) { return through_aio(context, arguments...); });
  io_destroy(context);
  return 0;
}

int uring_after(long) {
  evict();
  for (int i = 0; i < 2; ++i) {
    io_uring ring;
    std::printf("io_uring_setup %d\n", io_uring_queue_init(8, &ring, 0));
  }
  return 0;
}

int aio_after(long) {
  evict();
  for (int i = 0; i < 2; ++i) {
    io_context_t context{};
    std::printf("io_setup %d\n", io_setup(8, &context));
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  constexpr Part parts[] = {{"uring_before", &uring_before},
                            {"uring_after", &uring_after},
                            {"aio_before", &aio_before},
                            {"aio_after", &aio_after}};
  RUN_PARTS(parts, count, arguments);
}
