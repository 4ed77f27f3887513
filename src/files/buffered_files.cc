#include "files/buffered_files.h"

#include <algorithm>

#include "base/check.h"
#include "files/path_patterns.h"

namespace spw::files {

Result<BufferedFiles::Opened> BufferedFiles::open(int fd, const std::string& name,
                                                  const platform::FileStamp& before, Guard guard) {
  Dropped dropped;  // outlives the lock
  std::unique_lock lock(mutex_);
  const Key key{before.device, before.inode};
  await_leavings(lock, key);
  if (!std::exchange(has_looked_, true)) refuse_what_was_open(key);
  if (guard == Guard::kGuarded)
    if (auto trial = try_out(before, name.empty())) return Opened{nullptr, std::move(trial)};
  auto file = open_locked(fd, name, before, guard, Since::kNow, &dropped);
  return file ? Result<Opened>(Opened{std::move(*file), nullptr}) : Result<Opened>(file.status());
}

Result<std::shared_ptr<BufferedFile>> BufferedFiles::open_locked(int fd, const std::string& name,
                                                                 const platform::FileStamp& before,
                                                                 Guard guard, Since since, Dropped* dropped) {
  const auto path = [&] { return name.empty() ? path_of(fd) : name; };
  if (!before.is_regular) return Status::sentence(EINVAL, path() + " is not a regular file");
  const Key key{before.device, before.inode};
  if (kernels_.contains(key)) return Status::sentence(EBUSY, path() + " is left to the kernel");
  if (trials_.contains(key)) return Status::sentence(EBUSY, path() + " is open as one of the kernel's");
  if (const auto striped = striped_of(key); striped != files_.end() && !make_way(striped, dropped))
    return Status::sentence(EBUSY, path() + " is a member of a striped file that is open");
  Entry& entry = files_[key];
  // Before a descriptor of our own has it open, too.
  const bool is_new = entry.file == nullptr || entry.is_parked;
  if (guard == Guard::kOpen) others_.forget(fd, key);
  if (guard == Guard::kGuarded && is_new && (is_refused(key) || !is_claimed(fd, key, since))) {
    if (entry.is_parked) unpark(entry);
    dropped->push_back(std::move(entry.file));
    files_.erase(key);
    refused_.insert(key);
    return Status::sentence(EBUSY, "others have " + path() + " open");
  }
  // As the file is now that nobody else changes it, and that whoever closed it meanwhile has written it.
  auto now = is_new ? platform::file_stamp(fd) : Result<platform::FileStamp>(before);
  const platform::FileStamp stamp = now ? *now : platform::FileStamp{};
  if (entry.is_parked) {
    unpark(entry);
    if (entry.stamp != stamp || !entry.file->unpark({&fd, 1})) dropped->push_back(std::move(entry.file));
  }
  if (entry.file == nullptr) {
    auto opened = now ? make(fd, path(), stamp) : now.status();
    if (!opened) {
      files_.erase(key);
      others_.forget(fd, key);
      if (guard == Guard::kGuarded) refused_.insert(key);
      return opened.status();
    }
    entry.file = std::move(*opened);
    entry.file->know_as(key);
  }
  if (is_new) entry.stamp = stamp;
  entry.file->open_by(fd);
  ++entry.opens;
  return entry.file;
}

// ---- Trials ----

// The trial of a file that is small and not in the table; nullptr: it is to be buffered at once, or never.
std::shared_ptr<Trial> BufferedFiles::try_out(const platform::FileStamp& stamp, bool has_no_name) {
  const Key key{stamp.device, stamp.inode};
  auto found = trials_.find(key);
  if (found == trials_.end()) {
    if (!may_go_on_trial(stamp)) return nullptr;
    if (files_.contains(key) || kernels_.contains(key) || striped_of(key) != files_.end()) return nullptr;
    auto trial = std::make_shared<Trial>(key, parts_.trial_calls, others_.hand_outs());
    found = trials_.emplace(key, std::move(trial)).first;
  }
  if (++found->second->opens_ == 1) found->second->is_name_sure_ = !has_no_name;
  return found->second;
}

// What another process may have been given meanwhile, nobody can say of: it has the program's own open file.
Result<std::shared_ptr<BufferedFile>> BufferedFiles::end_trial(Trial& trial, int fd, uint64_t opens,
                                                               Guard guard) {
  Dropped dropped;  // outlives the lock
  std::lock_guard lock(mutex_);
  if (trial.opens_ != opens || (opens > 1 && guard == Guard::kGuarded))
    return Status(EAGAIN, "the file is open more than once");
  auto stamp = platform::file_stamp(fd);
  if (!stamp || Key{stamp->device, stamp->inode} != trial.key())
    return Status(EAGAIN, "the descriptor is another file's by now");
  auto entry = trials_.extract(trial.key());
  const bool is_guarded = guard == Guard::kGuarded;
  const std::string name = path_of(fd);
  auto file = is_guarded && !trial.is_name_sure_ && !matches_any(parts_.patterns, name)
                  ? Status(ENOENT, "it is not one of the files to be buffered")
              : is_guarded && trial.hand_outs() != others_.hand_outs()
                  ? Status(EBUSY, "others may have been given the file")
                  : open_locked(fd, name, *stamp, guard, Since::kEarlier, &dropped);
  if (file) {
    files_.at(trial.key()).opens += opens - 1;
    return file;
  }
  trial.give_up();
  trials_.insert(std::move(entry));
  return file;
}

void BufferedFiles::leave_trial(Trial& trial) {
  std::lock_guard lock(mutex_);
  if (--trial.opens_ == 0) trials_.erase(trial.key());
}

std::shared_ptr<Trial> BufferedFiles::trial_of(const FileKey& key) const {
  std::lock_guard lock(mutex_);
  const auto found = trials_.find(key);
  return found == trials_.end() ? nullptr : found->second;
}

// The first file of a device shows what transfers its files take.
Result<std::unique_ptr<BufferedFile>> BufferedFiles::make(int fd, const std::string& name,
                                                          const platform::FileStamp& stamp) {
  if (Status made = make_shared_parts(); !made) return made;
  const FileTools tools{shared_->nodes, shared_->flusher, shared_->runs_beside_managed};
  if (const auto known = direct_devices_.find(stamp.device); known != direct_devices_.end())
    return BufferedFile::open_later(parts_, tools, stamp, name, known->second);
  auto file = BufferedFile::open(parts_, tools, fd, name, {stamp.device, stamp.inode});
  if (file && (*file)->is_direct()) direct_devices_[stamp.device] = (*file)->alignment_bytes();
  return file;
}

// What was handed to the program, or opened before the first file that is buffered, which is being opened now.
void BufferedFiles::refuse_what_was_open(const Key& now) {
  unsigned of_now = 0;
  platform::for_program_files([&](uint64_t device, uint64_t inode) {
    const Key key{device, inode};
    if (key != now || ++of_now > 1) refused_.insert(key);
  });
}

// Whether the program may still have a descriptor of the file that is the kernel's: one on its way into open() or out
// of close() counts as well, and the file is asked about again by the next open(). What such a one writes is seen by
// nobody here, who would write over it.
bool BufferedFiles::is_refused(const Key& key) {
  const auto refused = refused_.find(key);
  if (refused == refused_.end()) return false;
  if (platform::program_descriptors_of(key.device, key.inode) != 1) return true;  // 0: they cannot be counted
  refused_.erase(refused);
  return false;
}

// False: others have it open, or that is not known and matters.
bool BufferedFiles::is_claimed(int fd, const Key& key, Since since) {
  const auto claim = others_.claim(fd, key, since == Since::kNow);
  // Of what was opened earlier, whoever else has it may hide behind duplicates of the descriptor.
  const bool may_hide = since == Since::kEarlier && claim == OtherOpeners::Claim::kUnsure &&
                        platform::own_descriptors_of(fd) > 1;
  if (may_hide || (claim == OtherOpeners::Claim::kUnsure && others_.are_locks_used())) {
    others_.forget(fd, key);
    return false;
  }
  return claim != OtherOpeners::Claim::kOthers;
}

Status BufferedFiles::make_shared_parts() {
  if (shared_) return {};
  auto slots = files::UseSlots::map_memory();
  if (!slots) return slots.status();
  auto made = std::make_unique<Shared>(std::move(*slots), parts_, [this] { return list(); });
  if (Status status = parts_.room.evictors > 0 ? made->room.start() : Status::ok(); !status) return status;
  if (Status status = made->flusher.start(); !status)
    return status;  // the last: it may want the lock that is held here
  shared_ = std::move(made);
  return {};
}

std::vector<std::shared_ptr<BufferedFile>> BufferedFiles::list() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<BufferedFile>> files;
  for (const auto& [key, entry] : files_)
    if (!entry.is_parked) files.push_back(entry.file);
  return files;
}

uint64_t BufferedFiles::metadata_bytes() const {
  std::lock_guard lock(mutex_);
  return shared_ ? shared_->nodes.mapped_bytes() : 0;
}

std::map<BufferedFiles::Key, BufferedFiles::Entry>::iterator BufferedFiles::entry_of(
    const BufferedFile* file) {
  const auto entry = files_.find(file->key());
  return entry != files_.end() && entry->second.file.get() == file ? entry : files_.end();
}

void BufferedFiles::unpark(Entry& entry) {
  parked_.erase(entry.parked_at);
  entry.is_parked = false;
}

Status BufferedFiles::close(const std::shared_ptr<BufferedFile>& file, int fd) {
  {
    std::lock_guard lock(mutex_);
    const auto entry = entry_of(file.get());
    SPW_CHECK(entry != files_.end() && entry->second.opens > 0);
    if (--entry->second.opens > 0) return {};
    ++entry->second.closers;
  }
  const bool is_lost = is_unreachable(*file, fd);
  Status status = is_lost ? Status::ok() : file->hand_over();
  std::shared_ptr<BufferedFile> dropped;  // outlives the lock
  std::lock_guard lock(mutex_);
  const auto entry = entry_of(file.get());
  // Somebody has it open again, or writes what was dirty then; or it is dirty still.
  if (--entry->second.closers > 0 || entry->second.opens > 0 || !status) return status;
  // What was written while somebody held it counts as dirty still, and nobody would write it again.
  others_.forget(fd >= 0 ? fd : file->fd(), entry->first);
  const bool is_kernels = kernels_.contains(entry->first);
  if (is_kernels && others_.are_locks_used()) kept_open_.push_back(file);
  const bool stays = !is_lost && file->is_clean() && !is_kernels;
  auto stamp = stays ? file->park() : Status(ENOTSUP, "it is not kept");
  if (stamp.status().error() == ENODATA) stamp = entry->second.stamp;
  if (!stamp || stamp->links == 0) {
    dropped = std::move(entry->second.file);
    files_.erase(entry);
    return {};
  }
  entry->second.is_parked = true;
  entry->second.stamp = *stamp;
  entry->second.parked_at = ++parkings_;
  parked_.emplace(entry->second.parked_at, entry->first);
  if (parked_.size() > kParkedFilesMax)  // the one that was parked longest ago goes
    dropped = take_parked(files_.find(parked_.begin()->second));
  return {};
}

// Whether nobody can get at the file any more: it was deleted, and nobody has it open but for `fd`, which is about to
// be closed. So much of it is dirty that it is worth the look.
bool BufferedFiles::is_unreachable(const BufferedFile& file, int fd) {
  const FileKey& key = file.key();
  return fd >= 0 && file.has_much_to_write() && file.links() == 0 && others_.is_alone(key) &&
         platform::program_descriptors_of(key.device, key.inode) == 1;
}

Result<uintptr_t> BufferedFiles::map(const std::shared_ptr<BufferedFile>& file, uint64_t offset,
                                     uint64_t bytes) {
  auto address = file->map(offset, bytes);
  if (!address) return address;
  std::lock_guard lock(mutex_);
  ++entry_of(file.get())->second.opens;
  mapped_.emplace(*address, file);
  return address;
}

Status BufferedFiles::unmap(uintptr_t address, bool save) {
  std::shared_ptr<BufferedFile> file;
  {
    std::lock_guard lock(mutex_);
    const auto found = mapped_.find(address);
    if (found == mapped_.end()) return Status(ENOENT, "no mapped file begins there");
    file = std::move(found->second);
    mapped_.erase(found);
  }
  file->unmap(address);
  const Status saved = save ? file->sync(false) : Status::ok();
  const Status closed = close(file, -1);
  return saved ? closed : saved;
}

// A parked file leaves the table; its blocks go with the last pointer to it.
std::shared_ptr<BufferedFile> BufferedFiles::take_parked(Files::iterator entry) {
  unpark(entry->second);
  std::shared_ptr<BufferedFile> file = std::move(entry->second.file);
  files_.erase(entry);
  return file;
}

Status BufferedFiles::for_all(Status (*what)(BufferedFile&)) {
  Status first_failure;
  for (const auto& file : list())
    if (Status status = what(*file); !status && first_failure) first_failure = status;
  return first_failure;
}

std::shared_ptr<BufferedFile> BufferedFiles::find(uint64_t device, uint64_t inode) const {
  std::lock_guard lock(mutex_);
  const auto entry = files_.find(Key{device, inode});
  // Of a parked one the kernel knows better.
  const bool is_it = entry != files_.end() && !entry->second.is_parked && entry->second.members.empty();
  return is_it ? entry->second.file : nullptr;
}

bool BufferedFiles::knows(const platform::FileStamp& stamp) const {
  std::lock_guard lock(mutex_);
  const Key key{stamp.device, stamp.inode};
  return files_.contains(key) || trials_.contains(key);
}

void BufferedFiles::await_leavings(std::unique_lock<std::mutex>& lock, const Key& key) {
  left_.wait(lock, [&] {
    const auto entry = files_.find(key);
    return entry == files_.end() || entry->second.leavings == 0;
  });
}

void BufferedFiles::begin_leaving(const BufferedFile& file) {
  std::lock_guard lock(mutex_);
  if (const auto entry = entry_of(&file); entry != files_.end()) ++entry->second.leavings;
}

void BufferedFiles::end_leaving(const BufferedFile& file) {
  std::lock_guard lock(mutex_);
  if (const auto entry = entry_of(&file); entry != files_.end() && entry->second.leavings > 0)
    --entry->second.leavings;
  left_.notify_all();
}

bool BufferedFiles::stays(const BufferedFile& file) {
  std::unique_lock lock(mutex_);
  await_leavings(lock, file.key());
  return !kernels_.contains(file.key());
}

void BufferedFiles::refuse(const FileKey& key) {
  std::lock_guard lock(mutex_);
  refused_.insert(key);
}

void BufferedFiles::leave_to_kernel(const BufferedFile& file) {
  std::lock_guard lock(mutex_);
  if (const auto entry = entry_of(&file); entry != files_.end()) kernels_.insert(entry->first);
}

bool BufferedFiles::leave_to_kernel(const FileKey& key) {
  std::lock_guard lock(mutex_);
  const auto found = trials_.find(key);
  if (found == trials_.end()) return false;
  found->second->give_up();
  kernels_.insert(key);
  return true;
}

size_t BufferedFiles::count() const {
  std::lock_guard lock(mutex_);
  return files_.size();
}

}  // namespace spw::files
