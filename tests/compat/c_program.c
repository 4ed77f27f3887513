/* umap.h is C, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "umap/umap.h"

int main(void) {
  char path[] = "/tmp/umap_c.XXXXXX";
  int fd = mkstemp(path);
  size_t page = umapcfg_get_umap_page_size(), bytes = 4 * page;
  if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) return 1;
  unlink(path);
  char* data = umap(NULL, bytes, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 0);
  if (data == UMAP_FAILED) return 2;
  memset(data, 'c', bytes);
  char last = 0;
  if (umap_flush() != 0 || pread(fd, &last, 1, (off_t)bytes - 1) != 1 || last != 'c') return 3;
  return uunmap(data, bytes) == 0 && umap_has_write_support() ? 0 : 4;
}
