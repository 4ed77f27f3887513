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
  return {};
}

void FileStore::stop() {
  target_.fd.store_relaxed(-1);
  target_.tail_fd.store_relaxed(-1);
}

void FileStore::close_files() {
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
  name_ = std::move(name);
  buffered_ = std::move(opened);
  const auto wanted = !options.direct        ? platform::Direct::kNo
                      : options.direct_works ? platform::Direct::kIfAccepted
                                             : platform::Direct::kIfPossible;
  if (Status status = open_transfers(wanted); !status) return status;
  engine_chosen_here_ = options.engine == IoEngineKind::kAuto;
  engine_ = engine_chosen_here_ ? choose_engine() : options.engine;
  target_.size_bytes = size_bytes;
  target_.alignment_bytes = std::max(kMmuPageBytes, direct_ ? platform::direct_alignment(file_) : 0);
  target_.spill = spill;
  target_.faults = options.faults;
  // Each direct write would look for its pages among those that the
  // kernel has cached, and io_uring would leave it to a thread.
  if (direct_ && !spill && size_bytes >= kForgottenBytesMin) platform::forget_cached(buffered_.fd());
  has_fixed_size_ = options.has_fixed_size;
  if (options.grows) {
    growth_ = take_growth(size_bytes);
    target_.growth = growth_.get();
  }
  space_.emplace(file_, size_bytes);
  target_.space = &*space_;
  return Status::ok();
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
  const Status status = platform::set_file_size(buffered_, bytes);
  const auto now = status ? Result<uint64_t>(bytes) : platform::file_size(buffered_);
  is_too_long_ = now && *now > bytes;
  if (status) growth_->settle(bytes);
  return status;
}

Status FileStore::settle_size() {
  const auto now = platform::file_size(buffered_);
  if (!now) return now.status();
  const uint64_t wanted = growth_->size_bytes.load_acquire();
  return *now == wanted || (*now > wanted && !is_too_long_) ? Status::ok() : resize_file(wanted);
}

Status FileStore::sync_file(bool whole) {
  const int64_t result = whole ? platform::sync_all(buffered_.fd()) : platform::sync_data(buffered_.fd());
  return result == 0 ? Status::ok() : Status(static_cast<int>(-result), "cannot sync " + describe());
}

Status FileStore::transfer(Request& request) {
  Progress progress;
  int error = transfer_now(progress, request, target_, run_io);
  return error == 0 ? Status::ok() : transfer_failed(error, request, describe());
}

}  // namespace spw::store
