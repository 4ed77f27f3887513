#include "store/sparse_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <stdexcept>

#include "umap/store/SparseStore.h"

namespace Umap {

namespace {

constexpr const char* kMetadataOfUmap = "/_metadata";
// The most that one request moves, so that it never sticks out of the store by more than a block.
constexpr std::size_t kStepBytesMax = spw::store::kMaxBlockBytes;

std::size_t rounded_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

[[noreturn]] void fail(const spw::Status& status) { throw std::runtime_error(status.message()); }

void refuse_layout_of_umap(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path + kMetadataOfUmap, error)) return;
  throw std::runtime_error(
      "the sparse store in " + path +
      ": it was made by LLNL's UMap, whose layout is another; copy its contents into a new one");
}

std::size_t capacity_of(const spw::store::Shape& shape) {
  return std::max<std::size_t>(shape.size_bytes, shape.segment_bytes);
}

struct FreeBuffer {
  void operator()(char* buffer) const { std::free(buffer); }
};

}  // namespace

struct SparseStore::State {
  std::unique_ptr<spw::store::SparseStore> store;
  std::size_t capacity = 0;

  static std::unique_ptr<State> open(const std::string& path, spw::store::Access access,
                                     spw::store::Shape shape) {
    refuse_layout_of_umap(path);
    spw::store::SparseOptions options;
    options.access = access;
    options.shape = shape;
    auto opened = spw::store::SparseStore::open(path, options);
    if (!opened) fail(opened.status());
    auto state = std::make_unique<State>();
    state->store = std::move(*opened);
    state->capacity = capacity_of(state->store->shape());
    return state;
  }

  // One aligned request. 0 or a positive errno.
  int transfer(spw::store::Op op, char* buffer, std::size_t bytes, std::size_t offset) {
    spw::store::Request request;
    request.op = op;
    request.offset_bytes = offset;
    request.segment_count = 1;
    request.segments[0] = {buffer, bytes};
    return store->transfer(request).error();
  }

  // A request of any alignment: through a buffer, whose other bytes a write reads first. The caller keeps threads off
  // the same bytes, but not off their neighbours in an aligned unit; so unaligned writes are one at a time.
  int transfer_unaligned(spw::store::Op op, char* buffer, std::size_t bytes, std::size_t offset) {
    const std::size_t unit = store->alignment_bytes();
    const std::size_t from = offset / unit * unit;
    const std::size_t length = rounded_up(offset + bytes - from, unit);
    std::unique_ptr<char, FreeBuffer> aligned(static_cast<char*>(std::aligned_alloc(unit, length)));
    if (!aligned) return ENOMEM;
    std::unique_lock lock(unaligned_writes, std::defer_lock);
    if (op == spw::store::Op::kWrite) lock.lock();
    if (int error = transfer(spw::store::Op::kRead, aligned.get(), length, from)) return error;
    if (op == spw::store::Op::kRead) {
      std::memcpy(buffer, aligned.get() + (offset - from), bytes);
      return 0;
    }
    std::memcpy(aligned.get() + (offset - from), buffer, bytes);
    return transfer(spw::store::Op::kWrite, aligned.get(), length, from);
  }

  // Up to kStepBytesMax bytes; how many, or -1 with errno.
  ssize_t move(spw::store::Op op, char* buffer, std::size_t bytes, off_t offset) {
    if (!store || offset < 0) return errno = store ? EINVAL : EBADF, -1;
    const auto from = static_cast<std::size_t>(offset);
    if (from >= capacity) return op == spw::store::Op::kRead ? 0 : (errno = ENOSPC, -1);
    bytes = std::min({bytes, capacity - from, kStepBytesMax});
    const std::size_t unit = store->alignment_bytes();
    bool aligned = (from | bytes | reinterpret_cast<uintptr_t>(buffer)) % unit == 0;
    int error = aligned ? transfer(op, buffer, bytes, from) : transfer_unaligned(op, buffer, bytes, from);
    if (error == 0) return static_cast<ssize_t>(bytes);
    errno = error;
    return -1;
  }

  std::mutex unaligned_writes;
};

SparseStore::SparseStore(std::size_t rsize, std::size_t aligned_size, std::string root_path,
                         std::size_t file_size) {
  if (rsize == 0 || aligned_size == 0 || file_size == 0)
    throw std::runtime_error("the sparse store in " + root_path +
                             ": its size, alignment and files cannot be 0 bytes");
  const std::size_t multiple = std::lcm<std::size_t>(aligned_size, spw::store::kSegmentGrainBytes);
  const std::size_t segment = rounded_up(file_size, multiple);
  // A region as large as one file can be mapped even if it was made for less.
  const std::size_t size = std::max(rounded_up(rsize, spw::kMmuPageBytes), segment);
  state_ = State::open(root_path, spw::store::Access::kCreate, {segment, size});
}

SparseStore::SparseStore(std::string root_path, bool read_only)
    : state_(State::open(root_path, read_only ? spw::store::Access::kRead : spw::store::Access::kOpen, {})) {}

SparseStore::~SparseStore() = default;

ssize_t SparseStore::read_from_store(char* buf, std::size_t nb, off_t off) {
  return state_->move(spw::store::Op::kRead, buf, nb, off);
}

ssize_t SparseStore::write_to_store(char* buf, std::size_t nb, off_t off) {
  return state_->move(spw::store::Op::kWrite, buf, nb, off);
}

std::size_t SparseStore::get_current_capacity() { return state_->capacity; }

std::size_t SparseStore::get_capacity(std::string base_path) {
  refuse_layout_of_umap(base_path);
  auto shape = spw::store::SegmentDirectory::shape_of(base_path);
  if (!shape) fail(shape.status());
  return capacity_of(*shape);
}

int SparseStore::close_files() {
  if (!state_->store) return 0;
  spw::store::Request sync;
  sync.op = spw::store::Op::kSync;
  spw::Status status = state_->store->transfer(sync);
  state_->store.reset();
  if (status) return 0;
  errno = status.error();
  return -1;
}

}  // namespace Umap
