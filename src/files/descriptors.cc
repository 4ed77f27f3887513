#include "files/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "files/path_patterns.h"

namespace spw::files {

Descriptors::Descriptors(const FileParts& parts, void (*warn)(std::string_view))
    : warn_(warn),
      files_(parts, [this](const FileKey& key, const char* why) { give_back_to_others(key, why); }) {}

// ---- Open files ----

Status OpenFile::check(bool is_write) const {
  const int mode = flags() & O_ACCMODE;
  if (mode == (is_write ? O_RDONLY : O_WRONLY))
    return Status::sentence(EBADF, is_write ? "the descriptor is open for reading only"
                                            : "the descriptor is open for writing only");
  return {};
}

Result<uint64_t> OpenFile::read(std::span<const iovec> to) {
  if (Status status = check(false); !status) return status;
  std::lock_guard lock(mutex_);
  if (!given_back_) return given_back_;
  auto moved = file_->read(offset_, to);
  if (moved) offset_ += *moved;
  return moved;
}

Result<uint64_t> OpenFile::read_at(uint64_t offset, std::span<const iovec> to) {
  if (Status status = check(false); !status) return status;
  return file_->read(offset, to);
}

// O_SYNC and O_DSYNC.
Result<uint64_t> OpenFile::write_through(uint64_t offset, const Result<uint64_t>& written) {
  const bool is_durable = (flags() & (O_SYNC | O_DSYNC)) != 0;
  if ((!is_durable && !owner_->writes_through()) || !written || *written == 0) return written;
  const Status status =
      is_durable ? file_->sync((flags() & O_SYNC) == O_SYNC) : file_->flush(offset, *written);
  return status ? written : Result<uint64_t>(status);
}

Result<uint64_t> OpenFile::write(std::span<const iovec> from) {
  if (Status status = check(true); !status) return status;
  std::lock_guard lock(mutex_);
  if (!given_back_) return given_back_;
  const bool appends = (flags() & O_APPEND) != 0;
  uint64_t at = offset_;
  auto moved = appends ? file_->append(from, &at) : file_->write(at, from);
  if (moved && *moved > 0) offset_ = at + *moved;
  return write_through(at, moved);
}

// As in Linux, one that appends writes to the end wherever it is asked to.
Result<uint64_t> OpenFile::write_at(uint64_t offset, std::span<const iovec> from) {
  if (Status status = check(true); !status) return status;
  auto moved = (flags() & O_APPEND) != 0 ? file_->append(from, &offset) : file_->write(offset, from);
  return write_through(offset, moved);
}

Result<uint64_t> OpenFile::seek(int64_t offset, int whence) {
  std::lock_guard lock(mutex_);
  if (!given_back_) return given_back_;
  const uint64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? offset_ : file_->size();
  int64_t to;
  if ((whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END) ||
      __builtin_add_overflow(static_cast<int64_t>(from), offset, &to) || to < 0)
    return Status::sentence(EINVAL, "no such position in a file");
  offset_ = static_cast<uint64_t>(to);
  return offset_;
}

Result<uintptr_t> OpenFile::map(uint64_t offset, uint64_t bytes) {
  if ((flags() & O_ACCMODE) != O_RDWR)
    return Status::sentence(EACCES, "a file that is mapped has to be open for reading and writing");
  return owner_->files().map(file_, offset, bytes);
}

Status OpenFile::resize(uint64_t bytes) {
  if (!may_write(flags())) return Status::sentence(EINVAL, "the descriptor is open for reading only");
  return file_->resize(bytes);
}

void OpenFile::change_flags(int flags) {
  constexpr int kChangeable = O_APPEND | O_SYNC | O_DSYNC;
  flags_.store_relaxed((flags_.load_relaxed() & ~kChangeable) | (flags & kChangeable));
}

uint64_t OpenFile::place() {
  std::lock_guard lock(mutex_);
  return offset_;
}

// ---- Descriptors ----

Descriptors::Ref Descriptors::find_in(Chunk& chunk, int fd) {
  Atomic<OpenFile*>& entry = chunk.entries[entry_of(fd)];
  while (OpenFile* file = entry.load_acquire()) {
    uint32_t refs = file->refs_.load_relaxed();
    while (refs > 0 && !file->refs_.cas_weak_acquire(refs, refs + 1)) {
    }
    if (refs == 0) continue;  // on its way out of the table
    if (entry.load_acquire() == file) return Ref(*this, file);
    (void)leave(file);
  }
  return {};
}

Descriptors::Chunk& Descriptors::chunk_for(int fd) {
  Atomic<Chunk*>& slot = chunks_[chunk_of(fd)];
  if (slot.load_acquire() == nullptr) slot.store_release(new Chunk);
  return *slot.load_acquire();
}

template <class Visit>
void Descriptors::for_each(Visit visit) {
  for (int chunk = 0; chunk < kDescriptorsMax >> kChunkShift; ++chunk) {
    if (chunks_[chunk].load_acquire() == nullptr) continue;
    for (int entry = 0; entry < 1 << kChunkShift; ++entry) {
      const int fd = (chunk << kChunkShift) + entry;
      if (const Ref file = find(fd)) visit(fd, file);
    }
  }
}

Status Descriptors::settle() {
  for_each([](int fd, const Ref& file) {
    if (!file->is_on_trial()) (void)::lseek(fd, static_cast<off_t>(file->place()), SEEK_SET);
  });
  files_.others().handed_out();
  return files_.flush_all();
}

// A child that appends to them, too, does so at the kernel's end.
void Descriptors::before_fork() {
  std::set<std::shared_ptr<BufferedFile>> appended;
  for_each([&](int, const Ref& file) {
    if (!file->is_on_trial() && (file->flags() & O_APPEND) != 0 && may_write(file->flags()))
      appended.insert(file->file_);
  });
  for (const auto& file : appended) (void)give_back(*file);
  files_.others().before_fork();
}

// While the places of all its open files are held, nobody moves them; then it retires, and those who come next, here or
// to the file, go on to the kernel, which has the same contents and places.
Status Descriptors::give_back(BufferedFile& file) {
  files_.begin_leaving(file);
  const Status status = give_back_alone(file);
  files_.end_leaving(file);
  return status;
}

// Whoever has it open now was seen in the table, or finds out by himself (BufferedFiles::stays()).
Status Descriptors::give_back_alone(BufferedFile& file) {
  std::vector<std::pair<int, Ref>> fds;
  for_each([&](int fd, const Ref& open) {
    if (!open->is_on_trial() && &open->file() == &file) fds.emplace_back(fd, find(fd));
  });
  std::map<OpenFile*, std::unique_lock<std::mutex>> held;
  for (const auto& [fd, open] : fds)
    if (open && !open->is_on_trial() && &open->file() == &file) held.try_emplace(open.operator->());
  for (auto& [open, lock] : held) lock = std::unique_lock(open->mutex_);
  if (Status status = file.retire(); !status) return status;
  files_.leave_to_kernel(file);
  for (const auto& [open, lock] : held)
    open->given_back_ = Status(BufferedFile::kRetired, "the file is left to the kernel");
  for (const auto& [fd, open] : fds) {
    const Ref still = find(fd);  // it may have been closed, and be another file's
    if (!held.contains(open.operator->()) || still.operator->() != open.operator->()) continue;
    (void)::lseek(fd, static_cast<off_t>(open->offset_), SEEK_SET);
    bool was;
    (void)leave_table(fd, &was, Now::kOpen, Moving::kByThisThread);
  }
  return {};
}

void Descriptors::give_back_to_others(const FileKey& key, const char* why) {
  const auto file = files_.find(key.device, key.inode);
  if (!file || file->is_retired()) return;
  const std::string name = file->name();
  const Status status = give_back(*file);
  if (warn_ == nullptr) return;
  if (!status)
    warn_(name + " stays buffered, though " + why + ", which may miss what is written: " + status.message());
  else
    warn_(name + " is left to the kernel from now on: " + why);
}

// Who gets the lock next reads what the kernel has.
Status Descriptors::lock_ends() {
  Status first_failure;
  for (const auto& file : files_.list())
    if (Status status = file->is_clean() ? Status::ok() : file->hand_over(); !status && first_failure)
      first_failure = status;
  return first_failure;
}

OpenFile* Descriptors::take() {
  if (free_ == nullptr) return new OpenFile;
  return std::exchange(free_, free_->next_free_);
}

Status Descriptors::leave(OpenFile* file, int fd) {
  if (file->refs_.fetch_sub_acq_rel(1) != 1) return {};
  const std::shared_ptr<BufferedFile> closed = std::move(file->file_);
  const std::shared_ptr<Trial> trial = std::move(file->trial_);
  {
    std::lock_guard lock(mutex_);
    file->next_free_ = std::exchange(free_, file);
  }
  if (closed) return files_.close(closed, fd);
  files_.leave_trial(*trial);
  return {};
}

Status Descriptors::attach(int fd, int flags, const std::string& name, const platform::FileStamp& stamp,
                           BufferedFiles::Guard guard) {
  if (static_cast<unsigned>(fd) >= kDescriptorsMax)
    return Status::sentence(EMFILE, "the descriptor is too high");
  const FileKey key{stamp.device, stamp.inode};
  if (const auto trial = guard == BufferedFiles::Guard::kOpen ? files_.trial_of(key) : nullptr)
    (void)end_trial(*trial, open_files_of(*trial), guard);  // else open() says so
  auto opened = files_.open(fd, name, stamp, guard);
  if (!opened) return opened.status();
  if (opened->trial) {
    seat_open_file(fd, flags, std::move(*opened));
    return {};
  }
  if (guard == BufferedFiles::Guard::kOpen)
    if (Status status = opened->file->open_now(); !status) {
      (void)files_.close(opened->file, fd);
      return status;
    }
  return seat(fd, flags, std::move(opened->file));
}

Status Descriptors::attach_striped(int fd, int flags, const StripedMembers& members) {
  if (static_cast<unsigned>(fd) >= kDescriptorsMax)
    return Status::sentence(EMFILE, "the descriptor is too high");
  const bool truncates = (flags & O_TRUNC) != 0 && may_write(flags);
  return seat(fd, flags, files_.open_striped(members, truncates));
}

Status Descriptors::seat(int fd, int flags, Result<std::shared_ptr<BufferedFile>> file) {
  if (!file) return file.status();
  if (may_write(flags) && !(*file)->is_writable()) {
    (void)give_back(**file);  // else the others would not see what this one writes
    (void)files_.close(*file, fd);
    return Status::sentence(EACCES, path_of(fd) + " cannot be read and written, which buffering it takes");
  }
  if ((flags & O_TRUNC) != 0 && may_write(flags) &&
      !(*file)->has_fixed_size())  // others may have it open, with what the kernel's file no longer has
    if (Status status = (*file)->make_empty(); !status) {
      (void)files_.close(*file, fd);
      return status;
    }
  const std::shared_ptr<BufferedFile> seated = *file;
  seat_open_file(fd, flags, {std::move(*file), nullptr});
  return files_.stays(*seated) ? Status() : give_back(*seated);
}

void Descriptors::seat_open_file(int fd, int flags, BufferedFiles::Opened opened) {
  bool was;
  (void)detach(fd, &was);  // it was closed without our knowing
  std::lock_guard lock(mutex_);
  OpenFile* open = take();
  open->file_ = std::move(opened.file);
  open->is_on_trial_.store_relaxed(opened.trial != nullptr);
  open->trial_ = std::move(opened.trial);
  open->flags_.store_relaxed(flags);
  open->owner_ = this;
  open->offset_ = 0;
  open->given_back_ = {};
  open->refs_.store_release(1);
  chunk_for(fd).entries[entry_of(fd)].store_release(open);
}

// ---- Trials ----

Descriptors::KernelCall::KernelCall(Descriptors& owner, int fd, Counts counts) {
  const Ref open = owner.find(fd);
  if (!open || open->trial_ == nullptr || open->trial_->is_over()) return;
  const std::shared_ptr<Trial> trial = open->trial_;
  if (counts == Counts::kAsOne && trial->count()) owner.end_trial(fd);
  std::shared_lock lock(trial->kept());
  is_over_ = !open->is_on_trial();
  if (is_over_) return;
  trial_ = trial;
  lock_ = std::move(lock);
}

Descriptors::KernelCall::KernelCall(Descriptors& owner, const FileKey& key) {
  std::shared_ptr<Trial> trial = owner.files_.trial_of(key);
  if (!trial) return;
  std::shared_lock lock(trial->kept());
  is_over_ = owner.files_.trial_of(key) != trial;
  if (is_over_) return;
  trial_ = std::move(trial);
  lock_ = std::move(lock);
}

// One for each that has the file, and a descriptor of it.
Descriptors::OpenFiles Descriptors::open_files_of(const Trial& trial) {
  OpenFiles open;
  for_each([&](int fd, const Ref& file) {
    if (file->trial_.get() == &trial && !open.contains(file.operator->()))
      if (Ref kept = find(fd); kept.operator->() == file.operator->())
        open.try_emplace(file.operator->(), fd, std::move(kept));
  });
  return open;
}

void Descriptors::end_trial(int fd) {
  Ref file = find(fd);
  if (!file || !file->is_on_trial()) return;
  const std::shared_ptr<Trial> trial = file->trial_;
  OpenFiles open;
  open.try_emplace(file.operator->(), fd, std::move(file));
  (void)end_trial(*trial, std::move(open), BufferedFiles::Guard::kGuarded);
}

// False: it could not be, now or ever.
bool Descriptors::end_trial(Trial& trial, OpenFiles open, BufferedFiles::Guard guard) {
  const std::unique_lock alone(trial.kept(), std::try_to_lock);
  if (!alone || trial.is_over() || open.empty()) return false;
  const int fd = open.begin()->second.first;
  auto file = files_.end_trial(trial, fd, open.size(), guard);
  if (!file) return false;
  bool writes = false;
  for (const auto& [each, place] : open) {
    const off_t offset = ::lseek(place.first, 0, SEEK_CUR);
    each->file_ = *file;
    each->offset_ = offset < 0 ? 0 : static_cast<uint64_t>(offset);
    each->is_on_trial_.store_release(false);
    writes |= may_write(each->flags());
  }
  if (files_.stays(**file) && (!writes || (*file)->is_writable())) return true;
  return !give_back(**file);  // as seat() has it
}

bool Descriptors::share(int from, int to) {
  bool was;
  if (from == to) return static_cast<bool>(find(from));
  (void)detach(to, &was);
  const Ref shared = find(from);
  if (!shared || static_cast<unsigned>(to) >= kDescriptorsMax) return false;
  shared->refs_.fetch_add_relaxed(1);
  std::lock_guard lock(mutex_);
  chunk_for(to).entries[entry_of(to)].store_release(shared.operator->());
  return true;
}

void Descriptors::detach_range(int first, int last) {
  for (int fd = first; fd <= last && fd < kDescriptorsMax; ++fd) {
    if (chunks_[chunk_of(fd)].load_acquire() == nullptr) {
      fd |= (1 << kChunkShift) - 1;
      continue;
    }
    bool was;
    (void)detach(fd, &was, Now::kOpen);
  }
}

Status Descriptors::detach(int fd, bool* was, Now now) { return leave_table(fd, was, now, Moving::kPerhaps); }

// Who gives the file back may be about to move the kernel's descriptor, which must not be another one's by then.
Status Descriptors::leave_table(int fd, bool* was, Now now, Moving moving) {
  *was = false;
  if (static_cast<unsigned>(fd) >= kDescriptorsMax) return {};
  Chunk* chunk = chunks_[chunk_of(fd)].load_acquire();
  if (chunk == nullptr) return {};
  OpenFile* file = chunk->entries[entry_of(fd)].exchange_acq_rel(nullptr);
  if (file == nullptr) return {};
  *was = true;
  if (moving == Moving::kPerhaps) std::lock_guard is_over(file->mutex_);
  return leave(file, now == Now::kOpen ? fd : -1);
}

}  // namespace spw::files
