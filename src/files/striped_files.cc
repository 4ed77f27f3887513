// Striped files among the buffered ones.
#include <algorithm>

#include "files/buffered_files.h"
#include "store/file_store.h"
#include "store/striped_file.h"

namespace spw::files {

// The striped file that has this member. striped_ keeps what files that are gone have left, until somebody asks.
BufferedFiles::Files::iterator BufferedFiles::striped_of(const Key& member) {
  const auto found = striped_.find(member);
  if (found == striped_.end()) return files_.end();
  const auto entry = files_.find(found->second);
  if (entry != files_.end() && std::ranges::count(entry->second.members, member) > 0) return entry;
  striped_.erase(found);
  return files_.end();
}

// Whether the entry, which nobody may use any more, has left the
// table: where it was parked. Its file lives on in `dropped`.
bool BufferedFiles::make_way(Files::iterator entry, Dropped* dropped) {
  if (!entry->second.is_parked) return false;
  dropped->push_back(take_parked(entry));
  return true;
}

Result<std::unique_ptr<BufferedFile>> BufferedFiles::make_striped(const StripedMembers& members,
                                                                  const std::vector<Key>& keys,
                                                                  bool truncates) {
  if (Status made = make_shared_parts(); !made) return made;
  std::vector<store::StripedFile::Member> stores;
  for (size_t i = 0; i < members.files.size(); ++i) {
    const std::string& path = members.paths[i];
    auto own = BufferedFile::open_for_both(members.files[i].fd(), path);
    if (!own) return own.status();
    auto stamp = platform::file_stamp(own->fd());
    if (!stamp) return stamp.status();
    store::FileOptions options;
    options.grows = true;
    options.has_fixed_size = stamp->is_block_device;
    options.direct_works = direct_devices_.contains(keys[i].device);
    auto store = store::FileStore::take_over(std::move(*own), path, options);
    if (!store) return store.status();
    if ((*store)->is_direct()) direct_devices_[keys[i].device] = (*store)->alignment_bytes();
    stores.push_back({std::move(*store), path});
  }
  auto file = store::StripedFile::create(std::move(stores), members.chunk_bytes, truncates);
  if (!file) return file.status();
  return BufferedFile::open_on(parts_, {shared_->nodes, shared_->flusher, shared_->runs_beside_managed},
                               std::move(*file), members.paths[0]);
}

Result<std::vector<platform::FileStamp>> BufferedFiles::stamps_of(const StripedMembers& members) {
  std::vector<platform::FileStamp> stamps;
  for (size_t i = 0; i < members.files.size(); ++i) {
    const std::string& path = members.paths[i];
    auto stamp = platform::file_stamp(members.files[i].fd());
    if (!stamp) return stamp.status();
    if (!stamp->is_regular && !stamp->is_block_device)
      return Status::sentence(EINVAL, path + " is neither a regular file nor a block device");
    for (const platform::FileStamp& other : stamps)
      if (other.device == stamp->device && other.inode == stamp->inode)
        return Status::sentence(EINVAL, path + " is two members of one striped file");
    stamps.push_back(*stamp);
  }
  return stamps;
}

// The entry of this very file, if it is in the table; those that have
// its members in another way make way, or it is EBUSY.
Result<BufferedFiles::Files::iterator> BufferedFiles::find_striped(const StripedMembers& members,
                                                                   const std::vector<Key>& keys,
                                                                   Dropped* dropped) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string& path = members.paths[i];
    if (trials_.contains(keys[i])) return Status::sentence(EBUSY, path + " is open by itself");
    if (kernels_.contains(keys[i])) return Status::sentence(EBUSY, path + " is left to the kernel");
    auto entry = striped_of(keys[i]);
    if (entry == files_.end()) entry = files_.find(keys[i]);
    if (entry == files_.end()) continue;
    if (entry->second.members == keys && entry->second.chunk_bytes == members.chunk_bytes) return entry;
    const bool is_striped = !entry->second.members.empty();
    if (!make_way(entry, dropped))
      return Status::sentence(EBUSY, path + (is_striped ? " is open as a member of another striped file, or "
                                                          "of one with another order or chunk"
                                                        : " is open by itself"));
  }
  return files_.end();
}

Result<std::shared_ptr<BufferedFile>> BufferedFiles::open_striped(const StripedMembers& members,
                                                                  bool truncates) {
  auto stamps = stamps_of(members);
  if (!stamps) return stamps.status();
  std::vector<Key> keys;
  for (const platform::FileStamp& stamp : *stamps) keys.push_back({stamp.device, stamp.inode});
  Dropped dropped;  // outlives the lock
  std::lock_guard lock(mutex_);
  auto found = find_striped(members, keys, &dropped);
  if (!found) return found.status();
  Files::iterator entry = *found;
  if (entry != files_.end() && entry->second.is_parked) {
    std::vector<int> fds;
    for (const platform::File& file : members.files) fds.push_back(file.fd());
    const auto stamp = store::StripedFile::stamp_of(*stamps);
    const bool is_same = stamp && entry->second.stamp == *stamp && entry->second.file->unpark(fds);
    if (is_same) {
      unpark(entry->second);
    } else {
      (void)make_way(entry, &dropped);
      entry = files_.end();
    }
  }
  if (entry == files_.end()) {
    auto made = make_striped(members, keys, truncates);
    if (!made) return made.status();
    std::erase_if(striped_, [&](const auto& one) { return !files_.contains(one.second); });
    entry = files_.emplace(keys[0], Entry{}).first;
    for (const Key& key : keys) striped_[key] = keys[0];
    entry->second.file = std::move(*made);
    entry->second.file->know_as(entry->first);
    entry->second.members = std::move(keys);
    entry->second.chunk_bytes = members.chunk_bytes;
  }
  ++entry->second.opens;
  return entry->second.file;
}

}  // namespace spw::files
