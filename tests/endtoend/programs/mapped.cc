// Mappings of the file "data" in the working directory, which is larger than the cap.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "parts.h"
#include "print.h"

namespace {

struct File {
  int fd;
  size_t bytes;
  unsigned char* data;
};

File map_data(int open_flags, int protection, int flags) {
  File file{open("data", open_flags), 0, nullptr};
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0) std::exit(97);
  file.bytes = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, file.bytes, protection, flags, file.fd, 0);
  if (data == MAP_FAILED) {
    std::perror("mmap");
    std::exit(96);
  }
  file.data = static_cast<unsigned char*>(data);
  return file;
}

File map_shared() { return map_data(O_RDWR, PROT_READ | PROT_WRITE, MAP_SHARED); }

// Some bytes of each page, the file's last ones among them, become others.
void change(File file) {
  for (size_t at = 0; at + 8 <= file.bytes; at += 1021) {
    uint64_t word;
    std::memcpy(&word, file.data + at, 8);
    word = word * 3 + at;
    std::memcpy(file.data + at, &word, 8);
  }
  file.data[file.bytes - 1] ^= 0x55;
}

void print_hash(File file) {
  uint64_t sum = file.bytes;
  for (size_t at = 0; at + 8 <= file.bytes; at += 8) {
    uint64_t word;
    std::memcpy(&word, file.data + at, 8);
    sum = mix(sum, word);
  }
  print_sum("contents", mix(sum, file.data[file.bytes - 1]));
  std::fflush(stdout);
}

int die_at_once() { return raise(SIGKILL); }

int sync_and_die(long) {
  File file = map_shared();
  change(file);
  print_hash(file);
  if (msync(file.data, file.bytes, MS_SYNC) != 0) return 95;
  return die_at_once();
}

int unmap_and_die(long) {
  File file = map_shared();
  change(file);
  if (munmap(file.data, file.bytes) != 0) return 95;
  return die_at_once();
}

// In pieces, from the end and from the middle.
int unmap_pieces_and_die(long) {
  File file = map_shared();
  change(file);
  size_t third = file.bytes / 3 / 4096 * 4096;
  if (munmap(file.data + third, third) != 0) return 95;
  file.data[5] ^= 1;
  if (munmap(file.data, third) != 0) return 95;
  file.data[2 * third + 5] ^= 1;
  if (munmap(file.data + 2 * third, file.bytes - 2 * third) != 0) return 95;
  return die_at_once();
}

int return_from_main(long) {
  File file = map_shared();
  change(file);
  close(file.fd);  // the mapping does not need it
  print_hash(file);
  return 0;
}

void change_at_exit() { change(map_shared()); }

int call_exit(long) {
  change(map_shared());
  std::exit(7);
}

int change_in_an_exit_handler(long) {
  std::atexit(change_at_exit);
  return 0;
}

int two_views(long) {
  File file = map_data(O_RDONLY, PROT_READ, MAP_SHARED), again = map_data(O_RDONLY, PROT_READ, MAP_SHARED);
  print_hash(file);
  print_hash(again);
  return 0;
}

int keep_private(long) {
  File file = map_data(O_RDWR, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  change(file);
  print_hash(file);
  msync(file.data, file.bytes, MS_SYNC);
  munmap(file.data, file.bytes / 2 / 4096 * 4096);
  return 0;
}

int read_only(long) {
  print_hash(map_data(O_RDONLY, PROT_READ, MAP_PRIVATE));
  print_hash(map_data(O_RDONLY, PROT_READ, MAP_SHARED));
  File file = map_data(O_RDONLY, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  change(file);
  print_hash(file);
  int fd = open("data", O_RDONLY);
  void* refused = mmap(nullptr, file.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  std::printf("a shared writable view of a file that is open for reading is %s\n",
              refused == MAP_FAILED ? "refused" : "given");
  return 0;
}

// The file becomes larger while it is mapped; what was there before is what the mapping holds.
int grow(long) {
  File file = map_shared();
  change(file);
  if (ftruncate(file.fd, static_cast<off_t>(file.bytes + (8u << 20))) != 0) return 95;
  print_hash(file);
  return 0;
}

// `by_name`: this process could not change the file by its descriptor.
int shrink(long by_name) {
  File file = map_data(by_name != 0 ? O_RDONLY : O_RDWR, PROT_READ, MAP_SHARED);
  if ((by_name != 0 ? truncate("data", 1 << 20) : ftruncate(file.fd, 1 << 20)) != 0) return 95;
  print_hash(file);
  return 0;
}

int end_at_once(long how) {
  change(map_shared());
  if (how == 0) _exit(0);
  std::abort();
}

const Part kParts[] = {{"sync_and_die", sync_and_die},
                       {"unmap_and_die", unmap_and_die},
                       {"unmap_pieces_and_die", unmap_pieces_and_die},
                       {"return", return_from_main},
                       {"exit", call_exit},
                       {"exit_handler", change_in_an_exit_handler},
                       {"two_views", two_views},
                       {"private", keep_private},
                       {"read_only", read_only},
                       {"grow", grow},
                       {"shrink", shrink},
                       {"end_at_once", end_at_once}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
