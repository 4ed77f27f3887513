// What a mapping's bytes come from and go to, as UMap's programs implement it.
//
// Both functions move up to `nb` bytes at `off` and return how many, or -1 with errno. Fewer than asked is no error: the rest is
// asked for again; 0 from a read is the end, behind which there are zeros.
// Threads: called by several threads at a time, for different bytes. Lifetime: outlives the mapping.
#ifndef UMAP_STORE_STORE_HPP
#define UMAP_STORE_STORE_HPP

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace Umap {

class Store {
 public:
  virtual ~Store() = default;

  // A store on a file. `region` and `alignsize` are UMap's and of no meaning here; the descriptor is duplicated. The caller's to
  // delete. A null pointer, with errno, for a descriptor that is none.
  static Store* make_store(void* region, std::size_t rsize, std::size_t alignsize, int fd);

  virtual ssize_t read_from_store(char* buf, std::size_t nb, off_t off) = 0;
  virtual ssize_t write_to_store(char* buf, std::size_t nb, off_t off) = 0;
};

}  // namespace Umap

#endif
