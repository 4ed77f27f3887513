#include "libc/stdio/stdio.h"

#include <errno.h>

#include <algorithm>

#include "libc/alloc/allocate.h"
#include "libc/bytes/strings.h"
#include "libc/entry.h"
#include "libc/io/bounce.h"
#include "libc/io/descriptors.h"
#include "libc/managed.h"
#include "libc/real.h"

namespace spw::libc {

namespace {

class FileLock {
 public:
  explicit FileLock(FILE* file) : file_(file) { flockfile(file); }
  ~FileLock() { funlockfile(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FILE* file_;
};

// Moves up to `total` bytes in pieces; `move_piece(data, bytes, done)` says how many of a piece it moved.
template <class MovePiece>
size_t in_pieces(size_t total, MovePiece move_piece) {
  Bounce bounce(total);
  if (bounce.bytes() == 0) {
    errno = ENOMEM;
    return 0;
  }
  size_t done = 0;
  while (done < total) {
    size_t wanted = std::min(total - done, bounce.bytes());
    size_t moved = move_piece(bounce.data(), wanted, done);
    done += moved;
    if (moved < wanted) break;
  }
  return done;
}

}  // namespace

size_t read_file(void* buffer, size_t bytes, size_t count, FILE* file) {
  if (!kernel_cannot_reach(buffer) || bytes == 0 || count == 0)
    return real().fread(buffer, bytes, count, file);
  FileLock lock(file);
  return in_pieces(bytes * count,
                   [&](std::byte* data, size_t wanted, size_t done) {
                     size_t got = real().fread(data, 1, wanted, file);
                     copy_bytes(static_cast<char*>(buffer) + done, data, got);
                     return got;
                   }) /
         bytes;
}

size_t write_file(const void* buffer, size_t bytes, size_t count, FILE* file) {
  if (!kernel_cannot_reach(buffer) || bytes == 0 || count == 0)
    return real().fwrite(buffer, bytes, count, file);
  FileLock lock(file);
  return in_pieces(bytes * count,
                   [&](std::byte* data, size_t wanted, size_t done) {
                     copy_bytes(data, static_cast<const char*>(buffer) + done, wanted);
                     return real().fwrite(data, 1, wanted, file);
                   }) /
         bytes;
}

namespace {

char* read_line_into(char* buffer, size_t bytes, FILE* file) {
  FileLock lock(file);
  char piece[512];
  size_t done = 0;
  int c = 0;
  while (done + 1 < bytes && c != '\n' && c != EOF) {
    size_t filled = 0, wanted = std::min(sizeof(piece), bytes - 1 - done);
    while (filled < wanted && c != '\n' && (c = getc_unlocked(file)) != EOF)
      piece[filled++] = static_cast<char>(c);
    copy_bytes(buffer + done, piece, filled);
    done += filled;
  }
  if ((done == 0 && bytes > 1) || (c == EOF && ferror_unlocked(file))) return nullptr;
  store_value(buffer + done, '\0');
  return buffer;
}

// Reads a native line first, then makes room for it where the caller keeps its own.
ssize_t read_line_by_way_of_native(char** line, size_t* bytes, int delimiter, FILE* file) {
  char* native = nullptr;
  size_t native_bytes = 0;
  ssize_t length = getdelim(&native, &native_bytes, delimiter, file);
  if (length >= 0) {
    size_t needed = static_cast<size_t>(length) + 1;
    char* held = load_value(line);
    if (held == nullptr || load_value(bytes) < needed) {
      held = static_cast<char*>(reallocate(held, needed));
      if (held != nullptr) {
        store_value(line, held);
        store_value(bytes, needed);
      } else {
        length = fail(ENOMEM);
      }
    }
    if (held != nullptr) copy_bytes(held, native, needed);
  }
  release(native);
  return length;
}

}  // namespace
}  // namespace spw::libc

using namespace spw::libc;

SPW_ENTRY size_t __spw_fread_v1(void* buffer, size_t bytes, size_t count, FILE* file) {
  return read_file(buffer, bytes, count, file);
}
SPW_ENTRY size_t __spw_fwrite_v1(const void* buffer, size_t bytes, size_t count, FILE* file) {
  return write_file(buffer, bytes, count, file);
}
SPW_ENTRY char* __spw_fgets_v1(char* buffer, int bytes, FILE* file) {
  if (!kernel_cannot_reach(buffer) || bytes <= 0) return fgets(buffer, bytes, file);
  return read_line_into(buffer, static_cast<size_t>(bytes), file);
}
SPW_ENTRY int __spw_fputs_v1(const char* text, FILE* file) {
  if (!kernel_cannot_reach(text)) return real().fputs(text, file);
  size_t length = string_length(text);
  return write_file(text, 1, length, file) == length ? 1 : EOF;
}
SPW_ENTRY int __spw_puts_v1(const char* text) {
  if (!kernel_cannot_reach(text)) return real().puts(text);
  FileLock lock(stdout);
  return __spw_fputs_v1(text, stdout) == EOF || putc_unlocked('\n', stdout) == EOF ? EOF : 1;
}
SPW_ENTRY ssize_t __spw_getdelim_v1(char** line, size_t* bytes, int delimiter, FILE* file) {
  bool plain = !kernel_cannot_reach_any(static_cast<void*>(line), static_cast<void*>(bytes)) &&
               !kernel_cannot_reach(*line);
  return plain ? getdelim(line, bytes, delimiter, file)
               : read_line_by_way_of_native(line, bytes, delimiter, file);
}
SPW_ENTRY ssize_t __spw_getline_v1(char** line, size_t* bytes, FILE* file) {
  return __spw_getdelim_v1(line, bytes, '\n', file);
}
