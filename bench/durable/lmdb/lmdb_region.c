#define _GNU_SOURCE
#include "lmdb_region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES ((size_t)4096)
#define PATH_BYTES ((size_t)4096)
static const char kRoot[] = "lmdb";

struct spw_durable_options lmdb_region_options = {.size = sizeof(struct spw_durable_options)};

/* The map follows at the next page. */
struct Head {
  uint64_t map_bytes;
};

static struct {
  spw_durable* region;
  char* map;
} g_open;

spw_durable* lmdb_region(void) { return g_open.region; }

static int ends_with(const char* text, const char* end) {
  const size_t length = strlen(text), wanted = strlen(end);
  return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static char* map_of(struct Head* head) {
  return (char*)(((uintptr_t)(head + 1) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
}

/* All that the file has and is no hole. */
static int copy_file(int fd, char* map, size_t bytes) {
  off_t from = 0;
  while ((from = lseek(fd, from, SEEK_DATA)) >= 0 && (size_t)from < bytes) {
    const off_t end = lseek(fd, from, SEEK_HOLE);
    if (end < 0) return -errno;
    const size_t to = (size_t)end < bytes ? (size_t)end : bytes;
    while ((size_t)from < to) {
      const ssize_t got = pread(fd, map + from, to - (size_t)from, from);
      if (got <= 0) return got < 0 ? -errno : -EIO;
      from += got;
    }
  }
  return from < 0 && errno != ENXIO ? -errno : 0;
}

static int fill_new(spw_durable* region, int fd, size_t bytes, struct Head** made) {
  struct Head* head = spw_durable_alloc(region, PAGE_BYTES + bytes);
  if (head == NULL) return -ENOMEM;
  head->map_bytes = bytes;
  const int error = copy_file(fd, map_of(head), bytes);
  if (error != 0) return error;
  *made = head;
  return spw_durable_set_root(region, kRoot, head);
}

static int make_map(spw_durable* region, int fd, size_t bytes, struct Head** made) {
  /* The region is of no use without it, and LMDB has not synced it. (Making the region has synced the directory.) */
  if (fsync(fd) != 0) return -errno;
  int error = spw_durable_begin();
  if (error != 0) return error;
  error = fill_new(region, fd, bytes, made);
  if (error != 0) (void)spw_durable_undo();
  const int ended = spw_durable_end();
  return error != 0 ? error : ended;
}

static int find_map(spw_durable* region, int fd, size_t bytes) {
  struct Head* head = spw_durable_root(region, kRoot);
  if (head == NULL) {
    const int error = make_map(region, fd, bytes, &head);
    if (error != 0) return error;
  }
  if (head->map_bytes < bytes) return -ENOMEM;
  g_open.map = map_of(head);
  return 0;
}

static int open_map(const char* data, int fd, size_t bytes) {
  char path[PATH_BYTES + 8];
  struct spw_durable_options options = lmdb_region_options;
  /* With room for the undo log of a transaction that changes every page, a few bytes a record. It takes addresses only. */
  if (options.capacity_bytes == 0) options.capacity_bytes = 8 * (uint64_t)bytes + ((uint64_t)64 << 20);
  snprintf(path, sizeof path, "%s.region", data);
  int error = spw_durable_open(path, &options, &g_open.region);
  if (error != 0) return error;
  error = find_map(g_open.region, fd, bytes);
  if (error == 0) return 0;
  (void)spw_durable_close(g_open.region);
  g_open.region = NULL;
  return error;
}

static void* failed(int error) {
  errno = error;
  return MAP_FAILED;
}

/* In place of mmap(), munmap() and msync() in mdb.c, which declares them by itself. */
void* lmdb_region_mmap(void* wanted, size_t bytes, int protection, int flags, int fd, off_t offset);
int lmdb_region_munmap(void* map, size_t bytes);
int lmdb_region_msync(void* at, size_t bytes, int flags);

void* lmdb_region_mmap(void* wanted, size_t bytes, int protection, int flags, int fd, off_t offset) {
  char link[32], path[PATH_BYTES];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return MAP_FAILED;
  path[length] = '\0';
  if (ends_with(path, "/lock.mdb") || ends_with(path, "-lock"))
    return mmap(wanted, bytes, protection, flags, fd, offset);
  if (wanted != NULL || (protection & PROT_WRITE) == 0) return failed(EINVAL);
  if (g_open.region != NULL) return failed(EBUSY);
  const int error = open_map(path, fd, bytes);
  return error == 0 ? g_open.map : failed(-error);
}

int lmdb_region_munmap(void* map, size_t bytes) {
  if (map != g_open.map) return munmap(map, bytes);
  const int error = spw_durable_close(g_open.region);
  if (error != 0) {
    errno = -error;
    return -1;
  }
  g_open.region = NULL;
  g_open.map = NULL;
  return 0;
}

/* Within a transaction its end will do it. */
int lmdb_region_msync(void* at, size_t bytes, int flags) {
  (void)at, (void)bytes, (void)flags;
  const int error = spw_durable_sync();
  if (error == 0 || error == -EBUSY) return 0;
  errno = -error;
  return -1;
}
