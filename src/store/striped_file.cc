#include "store/striped_file.h"

#include <algorithm>

#include "platform/thread.h"

namespace spw::store {

// What the files' own sizes say.
Result<uint64_t> StripedFile::size_of_files(const std::vector<Member>& members) const {
  const Stripes& stripes = striped_->stripes();
  uint64_t sum = 0, end = 0;
  size_t longest = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    sum += files_[i]->size_bytes();
    const uint64_t end_with = stripes.end_with(i, files_[i]->size_bytes());
    if (end_with > end) longest = i;
    end = std::max(end, end_with);
  }
  if (sum == end) return sum;  // every byte before the end is there
  size_t first = 0;
  while (files_[first]->size_bytes() >= stripes.offset_in_member(first, end)) ++first;
  const std::string wanted = std::to_string(stripes.offset_in_member(first, end));
  return Status::sentence(
      EINVAL, "member " + std::to_string(first + 1) + " of a striped file, " + members[first].name +
                  ", has " + std::to_string(files_[first]->size_bytes()) + " bytes where " +
                  members[longest].name + " asks for " + wanted + ": see that members, order and chunk (" +
                  format_size(stripes.chunk_bytes) +
                  ") are the file's; if they are, it was not closed, and truncate -s " + wanted +
                  " adds what is missing, as zeros");
}

// That of the smallest, in whole chunks, times their number.
Result<uint64_t> StripedFile::size_of_devices() const {
  const uint64_t chunk_bytes = striped_->stripes().chunk_bytes;
  uint64_t smallest = UINT64_MAX;
  for (const GrowingStore* device : files_) smallest = std::min(smallest, device->size_bytes());
  if (smallest < chunk_bytes)
    return Status::sentence(
        EINVAL, "a striped file needs devices of at least one chunk, " + format_size(chunk_bytes));
  return smallest / chunk_bytes * chunk_bytes * files_.size();
}

Result<std::unique_ptr<StripedFile>> StripedFile::create(std::vector<Member> members, uint64_t chunk_bytes,
                                                         bool is_empty) {
  std::unique_ptr<StripedFile> file(new StripedFile);
  std::vector<std::unique_ptr<Store>> stores;
  size_t fixed = 0;
  for (Member& member : members) {
    file->files_.push_back(member.store.get());
    if (member.store->has_fixed_size()) ++fixed;
    stores.push_back(std::move(member.store));
  }
  if (fixed != 0 && fixed < members.size())
    return Status::sentence(EINVAL, "the members of a striped file are all files or all devices");
  file->has_fixed_size_ = fixed != 0;
  file->growth_ = take_growth(0);
  auto striped = StripedStore::create(std::move(stores), chunk_bytes, nullptr, file->growth_.get());
  if (!striped) return striped.status();
  file->striped_ = std::move(*striped);
  const Result<uint64_t> size = file->has_fixed_size_ ? file->size_of_devices()
                                : is_empty            ? Result<uint64_t>(uint64_t{0})
                                                      : file->size_of_files(members);
  if (!size) return size.status();
  file->set_size(*size);
  file->growth_->settle(*size);
  return file;
}

// A request finds members that are at least as long as the size that
// it began with, where that grows; see StripedStore where it does not.
void StripedFile::set_size(uint64_t bytes) {
  if (bytes < size_bytes()) growth_->set(bytes);
  for (size_t i = 0; i < files_.size(); ++i) files_[i]->set_size(size_in(i, bytes));
  growth_->set(bytes);
}

Status StripedFile::resize_members(uint64_t bytes) {
  Status first_failure;
  for (size_t i = 0; i < files_.size(); ++i)
    if (Status status = files_[i]->resize_file(size_in(i, bytes)); !status && first_failure)
      first_failure = Status(status.error(), std::string(status.context()) + ", " + files_[i]->describe());
  return first_failure;
}

Status StripedFile::resize_file(uint64_t bytes) {
  const uint64_t before = size_bytes();
  if (has_fixed_size_)
    return bytes == before ? Status::ok() : Status::sentence(EINVAL, "devices keep their size");
  if (bytes < before) growth_->set(bytes);
  const Status status = resize_members(bytes);
  is_uneven_ = !status;
  if (status) {
    growth_->settle(bytes);
  } else if (bytes > before) {
    is_uneven_ = !resize_members(before);
  }
  return status;
}

Status StripedFile::settle_size() {
  if (has_fixed_size_) return {};
  if (is_uneven_) return resize_file(size_bytes());
  Status first_failure;
  for (GrowingStore* file : files_)
    if (Status status = file->settle_size(); !status && first_failure) first_failure = status;
  return first_failure;
}

bool StripedFile::is_writable() const {
  return std::ranges::all_of(files_, [](const GrowingStore* file) { return file->is_writable(); });
}

void StripedFile::stop() {
  striped_->stop();
  for (GrowingStore* file : files_) file->stop();
}

void StripedFile::close_files() {
  striped_->rest();
  for (GrowingStore* file : files_) file->close_files();
}

Status StripedFile::reopen(std::span<platform::File> files) {
  for (size_t i = 0; i < files_.size(); ++i)
    if (Status status = files_[i]->reopen(files.subspan(i, 1)); !status) return status;
  return striped_->go_on();
}

// A member that changes is changed later than all were before, and so is the latest of them.
Result<platform::FileStamp> StripedFile::stamp_of(std::span<const platform::FileStamp> members) {
  platform::FileStamp all = members[0];
  all.size_bytes = 0;
  for (const platform::FileStamp& member : members) {
    if (!member.is_regular) return Status::sentence(ENOTSUP, "a device does not say when it was changed");
    all.size_bytes += member.size_bytes;
    all.links = std::min(all.links, member.links);
    all.modified_ns = std::max(all.modified_ns, member.modified_ns);
    all.changed_ns = std::max(all.changed_ns, member.changed_ns);
  }
  return all;
}

Result<platform::FileStamp> StripedFile::stamp() const {
  std::vector<platform::FileStamp> stamps;
  for (const GrowingStore* file : files_) {
    auto stamp = file->stamp();
    if (!stamp) return stamp.status();
    stamps.push_back(*stamp);
  }
  return stamp_of(stamps);
}

void StripedFile::write_to_kernel(bool begins) {
  for (GrowingStore* file : files_) file->write_to_kernel(begins);
}

Status StripedFile::sync_file(bool whole) {
  std::vector<Status> outcomes(files_.size());
  {
    const auto sync = [&](size_t i) { outcomes[i] = files_[i]->sync_file(whole); };
    std::vector<platform::Thread> others;  // joined when they go
    for (size_t i = 1; i < files_.size(); ++i) {
      auto thread = platform::Thread::start([&sync, i] { sync(i); });
      if (thread) {
        others.push_back(std::move(*thread));
      } else {
        sync(i);
      }
    }
    sync(0);
  }
  const auto failed = std::ranges::find_if(outcomes, [](const Status& status) { return !status; });
  return failed == outcomes.end() ? Status::ok() : *failed;
}

bool StripedFile::is_direct() const {
  return std::ranges::all_of(files_, [](const GrowingStore* file) { return file->is_direct(); });
}

}  // namespace spw::store
