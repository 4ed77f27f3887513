#include "libc/map/mapped_files.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <new>

#include "libc/managed.h"

namespace spw::libc {

bool MappedFiles::add(const Part& part) {
  std::lock_guard lock(mutex_);
  for (const Part& other : parts_) {
    bool overlap = other.device == part.device && other.inode == part.inode && other.begin < part.end &&
                   part.begin < other.end;
    if (overlap && (other.writable || part.writable)) return false;
  }
  if (!is_managed(reinterpret_cast<void*>(part.address))) has_unmanaged_.store_relaxed(true);
  if (part.writable) writer_.store_release(::getpid());
  parts_.push_back(part);
  return true;
}

void MappedFiles::remove(uintptr_t address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  cut_out(address, bytes);
  if (std::none_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.writable; }))
    writer_.store_release(0);
}

void MappedFiles::cut_out(uintptr_t address, uint64_t bytes) {
  uintptr_t end = address + bytes;
  for (size_t i = 0; i < parts_.size();) {
    Part part = parts_[i];
    uintptr_t part_end = part.address + (part.end - part.begin);
    if (part_end <= address || end <= part.address) {
      ++i;
      continue;
    }
    parts_.erase(parts_.begin() + static_cast<ptrdiff_t>(i));
    if (part.address < address) {
      Part front = part;
      front.end = part.begin + (address - part.address);
      parts_.push_back(front);
    }
    if (end < part_end) {
      Part back = part;
      back.begin = part.begin + (end - part.address);
      back.address = end;
      parts_.push_back(back);
    }
  }
}

std::vector<MappedFiles::Part> MappedFiles::written_in(dev_t device, ino_t inode, uint64_t begin,
                                                       uint64_t end) {
  std::lock_guard lock(mutex_);
  return found_written(device, inode, begin, end);
}

std::vector<MappedFiles::Part> MappedFiles::found_written(dev_t device, ino_t inode, uint64_t begin,
                                                          uint64_t end) const {
  std::vector<Part> found;
  for (Part part : parts_) {
    const bool overlaps = part.begin < end && begin < part.end;
    if (!part.writable || part.device != device || part.inode != inode || !overlaps) continue;
    if (part.begin < begin) {
      part.address += begin - part.begin;
      part.begin = begin;
    }
    part.end = std::min(part.end, end);
    found.push_back(part);
  }
  return found;
}

void MappedFiles::move(uintptr_t from, uint64_t old_bytes, uintptr_t to, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(parts_, [&](const Part& part) {
    return part.address <= from && from < part.address + (part.end - part.begin);
  });
  if (found == parts_.end()) return;
  Part moved = *found;
  moved.begin += from - moved.address;
  moved.end = moved.begin + bytes;
  moved.address = to;
  cut_out(from, old_bytes);
  parts_.push_back(moved);
}

MappedFiles& mapped_files() {
  // Never destroyed, as munmap may run at exit. Nor allocated: the message that there is no memory to find an allocator
  // asks for it, too.
  alignas(MappedFiles) static std::byte room[sizeof(MappedFiles)];
  static auto* files = new (room) MappedFiles;
  return *files;
}

}  // namespace spw::libc
