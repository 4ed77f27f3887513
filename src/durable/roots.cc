#include "durable/roots.h"

#include <string.h>

#include <algorithm>
#include <cstring>

namespace spw::durable {

Root* Roots::find(std::string_view name) const {
  Root* const roots = region_.roots();
  Root* const found = std::find_if(roots, roots + kRootsMax, [name](const Root& root) {
    return name == std::string_view(root.name, ::strnlen(root.name, sizeof root.name));
  });
  return found == roots + kRootsMax ? nullptr : found;
}

Root* Roots::find_free() const {
  for (uint32_t i = 0; i < kRootsMax; ++i)
    if (region_.roots()[i].name[0] == '\0' && sections_.is_history(emptied_by_[i]))
      return &region_.roots()[i];
  return nullptr;
}

uint64_t Roots::get(std::string_view name) const {
  std::lock_guard lock(mutex_);
  const Root* root = name.empty() ? nullptr : find(name);
  return root == nullptr ? 0 : root->address;
}

Status Roots::set(Slot& slot, std::string_view name, uint64_t address, uint64_t stamp) {
  if (name.empty() || name.size() > kRootNameMax || name.find('\0') != name.npos)
    return Status::sentence(EINVAL, "a root's name has 1 to " + std::to_string(kRootNameMax) + " bytes");
  std::lock_guard lock(mutex_);
  Root* root = find(name);
  if (root == nullptr && address == 0) return {};
  if (root == nullptr) root = find_free();
  if (root == nullptr)
    return Status::sentence(ENOSPC,
                            "a persistent region has at most " + std::to_string(kRootsMax) + " roots");
  const uint64_t at =
      region_.header().base + static_cast<uint64_t>(reinterpret_cast<std::byte*>(root) - region_.mapped);
  if (Status status = slot.before_own_store(at, sizeof *root, stamp); !status) return status;
  const auto number = static_cast<uint32_t>(root - region_.roots());
  // Also what is named now: an undo would put back whatever is here.
  emptied_by_[number] = {slot.number(), slot.section()};
  *root = {};
  if (address != 0) {
    std::memcpy(root->name, name.data(), name.size());
    root->address = address;
  }
  root->checksum = checksum_of(*root, region_.header(), number);
  return {};
}

}  // namespace spw::durable
