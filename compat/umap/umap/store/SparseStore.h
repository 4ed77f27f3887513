// A store in a directory of equal files, each made by the first write
// to it (UMap, section 4.1; Spillway's sparse: store).
//
//     auto* store = new Umap::SparseStore(bytes, page, "/data/graph", 128 << 20);   // create: the directory must not hold one
//     auto* store = new Umap::SparseStore("/data/graph", read_only);                // open
//     ... umap_ex(..., -1, 0, store); uunmap(...); store->close_files(); delete store;
//
// Errors: the constructors throw std::runtime_error with one line; the other functions return -1 with errno.
// Threads: any, but for the constructors, close_files() and the destructor. One process has it open for writing, or
// several for reading. Directories made by LLNL's UMap have another layout and are refused.
// Limits: file sizes are rounded up to a multiple of 64 KiB and of `aligned_size`; 65536 files.
#ifndef UMAP_STORE_SPARSE_STORE_H
#define UMAP_STORE_SPARSE_STORE_H

#include <cstddef>
#include <memory>
#include <string>

#include "umap/store/Store.hpp"
#include "umap/umap.h"

namespace Umap {

class SparseStore : public Store {
 public:
  SparseStore(std::size_t rsize, std::size_t aligned_size, std::string root_path, std::size_t file_size);
  SparseStore(std::string root_path, bool read_only);
  ~SparseStore() override;
  SparseStore(const SparseStore&) = delete;
  SparseStore& operator=(const SparseStore&) = delete;

  ssize_t read_from_store(char* buf, std::size_t nb, off_t off) override;
  ssize_t write_to_store(char* buf, std::size_t nb, off_t off) override;

  // Bytes that can be mapped: the size it was created with, at least one file's.
  std::size_t get_current_capacity();
  // That of a store that need not be open here. Throws as the constructors.
  static std::size_t get_capacity(std::string base_path);
  // Syncs and closes. 0, or -1 with errno; later calls fail with EBADF.
  int close_files();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace Umap

#endif
