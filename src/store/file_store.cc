#include "store/file_store.h"

#include <fcntl.h>

#include <algorithm>

#include "platform/device_use.h"
#include "store/engine/transfer_queue.h"

namespace spw::store {

namespace {

// What is cached of a smaller file may well be read by way of the kernel again, and matters little.
constexpr uint64_t kForgottenBytesMin = uint64_t{1} << 20;

// Gives a new spill file its size: as much of `wanted` as the filesystem and RLIMIT_FSIZE have room for in one file.
Result<uint64_t> make_as_long(const platform::File& file, uint64_t wanted) {
  constexpr uint64_t kSmallestUseful = kMaxBlockBytes;
  uint64_t bytes = wanted;
  Status status = platform::set_file_size(file, bytes);
  // ext4's largest file is one page short of a power of two.
  if (!status && wanted > kSmallestUseful)
    status = platform::set_file_size(file, bytes = wanted - kMaxBlockBytes);
  while (!status && (status.error() == EFBIG || status.error() == EINVAL) && bytes / 2 >= kSmallestUseful)
    status = platform::set_file_size(file, bytes = round_up(bytes / 2, kMaxBlockBytes));
  return status ? Result<uint64_t>(bytes) : Result<uint64_t>(status);
}

}  // namespace

Result<std::unique_ptr<FileStore>> FileStore::open(const std::string& path, const FileOptions& options) {
  auto file = platform::open_file(path, O_RDWR);
  if (!file && (file.status().error() == EACCES || file.status().error() == EROFS))
    file = platform::open_file(path, O_RDONLY);
  if (!file) return file.status();
  return take_over(std::move(*file), path, options);
}

Result<std::unique_ptr<FileStore>> FileStore::open_descriptor(int fd, const std::string& name,
                                                              const FileOptions& options) {
  auto opened = platform::reopen_file(fd, platform::Direct::kNo);
  if (!opened) return opened.status();
  return take_over(std::move(opened->file), name, options);
}

Result<std::unique_ptr<FileStore>> FileStore::take_over(platform::File file, const std::string& name,
                                                        const FileOptions& options) {
  auto size = platform::file_size(file);
  if (!size) return size.status();
  std::unique_ptr<FileStore> store(new FileStore);
  if (Status status = store->set_up(std::move(file), name, false, *size, options); !status) return status;
  return store;
}

Result<std::unique_ptr<FileStore>> FileStore::open_device(const std::string& path, const std::string& name,
                                                          Overwrite overwrite, const FileOptions& options) {
  auto device = platform::open_device_alone(path);
  if (device.status().error() == EBUSY)
    return Status::sentence(EBUSY, name + ": " + std::string(device.status().context()) +
                                       ", and one process at a time can spill there: end that use, or name a "
                                       "directory, which any number of processes can share");
  if (!device) return device.status();
  auto store = take_over(std::move(*device), path, options);
  if (!store) return store.status();
  if (Status status = claim(**store, (*store)->target_, name, overwrite); !status) return status;
  return store;
}

Result<std::unique_ptr<FileStore>> FileStore::open_spill(const std::string& directory,
                                                         const FileOptions& options, uint64_t size_bytes) {
  auto file = platform::open_spill_file(directory);
  if (!file) return file.status();
  auto size = make_as_long(*file, std::min(size_bytes, kSpillBytesMax));
  if (!size) return size.status();
  std::unique_ptr<FileStore> store(new FileStore);
  if (Status status = store->set_up(std::move(*file), directory, true, *size, options); !status)
    return status;
  return store;
}

Status FileStore::open_transfers(platform::Direct direct) {
  auto transfers = platform::reopen_file(buffered_.fd(), direct);
  if (!transfers) return transfers.status();
  file_ = std::move(transfers->file);
  direct_ = transfers->direct;
  target_.fd.store_relaxed(file_.fd());
  target_.tail_fd.store_relaxed(buffered_.fd());
  const int flags = ::fcntl(buffered_.fd(), F_GETFL);
  is_read_only_.store_release(flags >= 0 && (flags & O_ACCMODE) == O_RDONLY);
  return {};
}

std::unique_ptr<FileStore> FileStore::unopened(const std::string& name, uint64_t size_bytes,
                                               uint64_t alignment_bytes, const FileOptions& options) {
  std::unique_ptr<FileStore> store(new FileStore);
  store->direct_ = options.direct_works;
  store->be(name, false, size_bytes, alignment_bytes, options);
  return store;
}

// A descriptor of our own; of `fd` only where none is open yet. What else may have its number by now is not disturbed
// by being opened: no terminal is taken over, and nobody is waited for.
Status FileStore::open_own(int fd, bool direct, platform::File* own) {
  const bool is_first = !plain_now().is_open();
  const std::string path = "/proc/thread-self/fd/" + std::to_string(is_first ? fd : plain_now().fd());
  const int flags = O_NOCTTY | O_NONBLOCK | (direct ? O_DIRECT : 0);
  auto opened = platform::open_file(path, O_RDWR | flags);
  const bool is_read_only = !opened;
  // Not beside one that can write: what is to be written goes by either.
  if (!opened && (is_first || !is_writable())) opened = platform::open_file(path, O_RDONLY | flags);
  if (!opened) return opened.status();
  if (is_first) {
    const auto stamp = platform::file_stamp(opened->fd());
    if (!stamp) return stamp.status();
    if (const auto& found = *stamp; found.device != device_ || found.inode != inode_)
      return Status(EBADF, "the descriptor is another file's");
  }
  if (is_read_only) is_read_only_.store_release(true);
  *own = std::move(*opened);
  return {};
}

Status FileStore::open_for(Use use, int fd) {
  std::lock_guard lock(opening_);
  const bool is_direct = direct_ && !shares_page_cache_.load_acquire();
  if ((use != Use::kWrites || !direct_) && !file_.is_open()) {
    Status status = open_own(fd, is_direct, &file_);
    if (status.error() == EINVAL && is_direct) status = open_own(fd, false, &file_);  // not of this file
    if (!status && buffered_.is_open()) return {};  // that one serves for transfers, too
    if (!status) return status;
    if (direct_ && target_.size() >= kForgottenBytesMin) platform::forget_cached(file_.fd());
  }
  if (use != Use::kReads && direct_ && !buffered_.is_open())
    if (Status status = open_own(fd, false, &buffered_); !status) return status;
  target_.tail_fd.store_release(plain_now().fd());
  target_.fd.store_release(file_.is_open() ? file_.fd() : buffered_.fd());
  return {};
}

void FileStore::stop() {
  target_.fd.store_relaxed(-1);
  target_.tail_fd.store_relaxed(-1);
}

void FileStore::close_files() {
  std::lock_guard lock(opening_);
  is_read_only_.store_release(false);
  file_ = platform::File();
  buffered_ = platform::File();
}

Status FileStore::reopen(std::span<platform::File> files) {
  const bool was_direct = direct_;
  buffered_ = std::move(files[0]);
  if (Status status = open_transfers(was_direct ? platform::Direct::kIfAccepted : platform::Direct::kNo);
      !status)
    return status;
  return direct_ == was_direct
             ? Status::ok()
             : Status::sentence(EINVAL, "the file's transfers are no longer what they were");
}

Status FileStore::set_up(platform::File opened, std::string name, bool spill, uint64_t size_bytes,
                         const FileOptions& options) {
  buffered_ = std::move(opened);
  const auto wanted = !options.direct        ? platform::Direct::kNo
                      : options.direct_works ? platform::Direct::kIfAccepted
                                             : platform::Direct::kIfPossible;
  if (Status status = open_transfers(wanted); !status) return status;
  be(std::move(name), spill, size_bytes,
     std::max(kMmuPageBytes, direct_ ? platform::direct_alignment(file_) : 0), options);
  // Each direct write would look for its pages among those that the
  // kernel has cached, and io_uring would leave it to a thread.
  if (direct_ && !spill && size_bytes >= kForgottenBytesMin) platform::forget_cached(buffered_.fd());
  return Status::ok();
}

// All of it but its files.
void FileStore::be(std::string name, bool spill, uint64_t size_bytes, uint64_t alignment_bytes,
                   const FileOptions& options) {
  name_ = std::move(name);
  engine_chosen_here_ = options.engine == IoEngineKind::kAuto;
  engine_ = engine_chosen_here_ ? choose_engine() : options.engine;
  if (engine_chosen_here_ || engine_ == IoEngineKind::kAio) start_engine_workers();
  if (!engine_chosen_here_ && engine_ == IoEngineKind::kThreads && spill)
    workers_.start(kWorkers);  // not in the page faults that use it
  target_.size_bytes = size_bytes;
  target_.alignment_bytes = alignment_bytes;
  target_.spill = spill;
  target_.faults = options.faults;
  has_fixed_size_ = options.has_fixed_size;
  device_ = options.device;
  inode_ = options.inode;
  if (options.grows) {
    growth_ = take_growth(size_bytes);
    target_.growth = growth_.get();
  }
  space_.emplace(file_, size_bytes);
  target_.space = &*space_;
}

std::string FileStore::describe() const {
  std::string text = (target_.spill ? "spill:" : "file:") + name_ + " (";
  text += engine_name(engine_);
  return text + (direct_ ? ", O_DIRECT" : ", buffered") + begins_at(target_) + ")";
}

Result<std::unique_ptr<IoQueue>> FileStore::open_queue(size_t depth) {
  auto engine = create_engine(engine_chosen_here_ ? IoEngineKind::kAuto : engine_, depth, workers_);
  if (!engine) return engine.status();
  return std::unique_ptr<IoQueue>(std::make_unique<TransferQueue>(std::move(*engine), target_, depth));
}

Status FileStore::resize_file(uint64_t bytes) {
  const Status status = platform::set_file_size(plain(), bytes);
  const auto now = status ? Result<uint64_t>(bytes) : platform::file_size(plain());
  is_too_long_ = now && *now > bytes;
  if (status) growth_->settle(bytes);
  return status;
}

Status FileStore::settle_size() {
  const auto now = platform::file_size(plain());
  if (!now) return now.status();
  const uint64_t wanted = growth_->size_bytes.load_acquire();
  return *now == wanted || (*now > wanted && !is_too_long_) ? Status::ok() : resize_file(wanted);
}

Status FileStore::sync_file(bool whole) {
  const int64_t result = whole ? platform::sync_all(plain().fd()) : platform::sync_data(plain().fd());
  return result == 0 ? Status::ok() : Status(static_cast<int>(-result), "cannot sync " + describe());
}

Status FileStore::transfer(Request& request) {
  Progress progress;
  int error = transfer_now(progress, request, target_, run_io);
  return error == 0 ? Status::ok() : transfer_failed(error, request, describe());
}

}  // namespace spw::store
