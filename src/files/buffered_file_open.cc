// Opening: which descriptors of its own a file has, and since when.
#include <fcntl.h>

#include <string>
#include <utility>
#include <vector>

#include "files/buffered_file.h"
#include "platform/opens_watch.h"
#include "store/file_store.h"

namespace spw::files {

using Use = store::GrowingStore::Use;

Result<platform::File> BufferedFile::open_for_both(int fd, const std::string& name) {
  const std::string path = "/proc/thread-self/fd/" + std::to_string(fd);
  auto own = platform::open_file(path, O_RDWR);
  if (!own) own = platform::open_file(path, O_RDONLY);
  return own ? std::move(own) : Status(own.status().error(), "cannot read " + name);
}

Result<std::unique_ptr<BufferedFile>> BufferedFile::open(const FileParts& parts, const FileTools& tools,
                                                         int fd, const std::string& name,
                                                         const FileKey& key) {
  auto own = open_for_both(fd, name);
  if (!own) return own.status();
  store::FileOptions options;
  options.grows = true;
  options.device = key.device;
  options.inode = key.inode;
  auto store = store::FileStore::take_over(std::move(*own), name, options);
  if (!store) return store.status();
  return open_on(parts, tools, std::move(*store), name);
}

Result<std::unique_ptr<BufferedFile>> BufferedFile::open_later(const FileParts& parts, const FileTools& tools,
                                                               const platform::FileStamp& stamp,
                                                               const std::string& name,
                                                               uint64_t alignment_bytes) {
  store::FileOptions options;
  options.grows = true;
  options.direct_works = true;
  options.device = stamp.device;
  options.inode = stamp.inode;
  auto file = open_on(parts, tools,
                      store::FileStore::unopened(name, stamp.size_bytes, alignment_bytes, options), name);
  if (file) (*file)->open_for_.store_relaxed(0);
  return file;
}

// A dirty block has to have where it can be written to, whoever evicts it. So a file is open for writes before it has
// any, and stays so.
Status BufferedFile::need(Use use) {
  if (is_open_for(use)) [[likely]]
    return {};
  Status status = file_->open_for(use, program_fd_.load_relaxed());
  if (status.error() == EBADF || status.error() == ENOENT || status.error() == ENXIO)
    if (const int other = platform::own_descriptor_of(key_.device, key_.inode); other >= 0)
      status = file_->open_for(use, other);
  if (!status) return Status(kNotOpened, "cannot open " + name_ + " once more");
  if (use != Use::kReads && !is_writable()) {
    open_for_.fetch_or_acq_rel(static_cast<uint8_t>(Use::kReads));
    return Status(kNotOpened, name_ + " cannot be read and written, which buffering it takes");
  }
  open_for_.fetch_or_acq_rel(static_cast<uint8_t>(use));
  return {};
}

Status BufferedFile::open_now() {
  std::shared_lock lock(io_);
  if (Status status = need(Use::kReads); !status) return status;
  return is_writable() ? need(Use::kTransfers) : Status::ok();
}

Result<std::unique_ptr<BufferedFile>> BufferedFile::open_on(const FileParts& parts, const FileTools& tools,
                                                            std::unique_ptr<store::GrowingStore> store,
                                                            const std::string& name) {
  if (store->alignment_bytes() > parts.regions.block_bytes())
    return Status::sentence(EINVAL, name + ": its disk takes only blocks of at least " +
                                        format_size(store->alignment_bytes()) + "; set the option block");
  std::unique_ptr<BufferedFile> file(new BufferedFile(parts, tools));
  file->name_ = name;
  file->file_ = store.get();
  file->open_for_.store_relaxed(static_cast<uint8_t>(file->is_writable() ? Use::kTransfers : Use::kReads));
  file->size_.store_release(file->file_->size_bytes());
  file->settled_size_ = file->size();
  if (file->has_fixed_size()) file->bytes_max_ = file->size();
  file->store_ = parts.regions.adopt(std::move(store));
  parts.engine.watch();
  if (Status status = file->reserve(file->size(), Reach::kCalls); !status) return status;
  return file;
}

uint64_t BufferedFile::links() const {
  auto stamp = file_->stamp();
  return stamp ? stamp->links : UINT64_MAX;
}

Result<platform::FileStamp> BufferedFile::park() {
  std::lock_guard lock(io_);
  is_parked_ = true;
  if (open_for_.load_acquire() == 0) return Status(ENODATA, "the file was never opened");
  auto stamp = file_->stamp();
  file_->stop();
  parts_.cache.close_store(parts_.engine.client(), *store_);
  file_->close_files();
  open_for_.store_release(0);
  return stamp;
}

Status BufferedFile::unpark(std::span<const int> fds) {
  std::lock_guard lock(io_);
  if (!file_->opens_when_needed()) {
    std::vector<platform::File> own;
    for (const int fd : fds) {
      auto file = open_for_both(fd, "a file that was open before");
      if (!file) return file.status();
      own.push_back(std::move(*file));
    }
    if (Status status = file_->reopen(own); !status) return status;
    open_for_.store_release(static_cast<uint8_t>(is_writable() ? Use::kTransfers : Use::kReads));
  }
  is_parked_ = false;
  return {};
}

}  // namespace spw::files
