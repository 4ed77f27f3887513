#include "front/file/buffered_files.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/check.h"

namespace spw::front {

Result<std::shared_ptr<BufferedFile>> BufferedFiles::open(int fd, const std::string& name) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return Status(errno, "cannot use file descriptor " + std::to_string(fd));
  if (!S_ISREG(info.st_mode)) return Status::sentence(EINVAL, name + " is no regular file");
  std::lock_guard lock(mutex_);
  Entry& entry = files_[Key{info.st_dev, info.st_ino}];
  if (entry.file == nullptr) {
    auto opened = BufferedFile::open(parts_, fd, name);
    if (!opened) {
      files_.erase(Key{info.st_dev, info.st_ino});
      return opened.status();
    }
    entry.file = std::move(*opened);
  }
  ++entry.opens;
  return entry.file;
}

std::map<BufferedFiles::Key, BufferedFiles::Entry>::iterator BufferedFiles::entry_of(
    const BufferedFile* file) {
  return std::find_if(files_.begin(), files_.end(),
                      [&](const auto& one) { return one.second.file.get() == file; });
}

Status BufferedFiles::close(const std::shared_ptr<BufferedFile>& file) {
  {
    std::lock_guard lock(mutex_);
    const auto entry = entry_of(file.get());
    SPW_CHECK(entry != files_.end() && entry->second.opens > 0);
    if (--entry->second.opens > 0) return {};
  }
  const Status status = file->flush();
  if (!status) return status;
  std::lock_guard lock(mutex_);
  if (const auto entry = entry_of(file.get()); entry != files_.end() && entry->second.opens == 0)
    files_.erase(entry);
  return {};
}

Status BufferedFiles::for_all(Status (*what)(BufferedFile&)) {
  std::vector<std::shared_ptr<BufferedFile>> files;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : files_) files.push_back(entry.file);
  }
  Status first_failure;
  for (const auto& file : files)
    if (Status status = what(*file); !status && first_failure) first_failure = status;
  return first_failure;
}

std::shared_ptr<BufferedFile> BufferedFiles::find(uint64_t device, uint64_t inode) const {
  std::lock_guard lock(mutex_);
  const auto entry = files_.find(Key{device, inode});
  return entry == files_.end() ? nullptr : entry->second.file;
}

size_t BufferedFiles::count() const {
  std::lock_guard lock(mutex_);
  return files_.size();
}

}  // namespace spw::front
