#include "store/rbd/spill_image.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/atomic.h"
#include "platform/device_use.h"
#include "platform/thread.h"
#include "platform/time.h"

namespace spw::store {

namespace {

// In the metadata of an image that was made to spill to: by whom, for people.
constexpr const char* kSpillKey = "spillway.spill";
constexpr size_t kTextBytesMax = 512;
constexpr size_t kWatchersMax = 64;
// At a time.
constexpr size_t kRemoversMax = 8;
// The watch of who was shut out ends when the OSD has heard of it, some milliseconds later.
constexpr int kTriesToRemove = 20;
constexpr uint64_t kPauseNs = 50'000'000;

// An image that is open to be looked at: not watched, so that it is in nobody's way, however this process ends.
class Looked {
 public:
  Looked(const RbdPool& pool, const std::string& name) : pool_(pool), lib_(pool.lib()) {
    error_ = -lib_.rbd.open_read_only(pool.get(), name.c_str(), &image_, nullptr);
  }
  ~Looked() {
    if (error_ == 0) lib_.rbd.close(image_);
  }
  Looked(const Looked&) = delete;
  Looked& operator=(const Looked&) = delete;

  int error() const { return error_; }

  // Whose it is; nothing: not ours.
  std::optional<std::string> maker() const {
    std::array<char, kTextBytesMax> text{};
    size_t bytes = text.size() - 1;
    if (lib_.rbd.metadata_get(image_, kSpillKey, text.data(), &bytes) == 0) return std::string(text.data());
    rbd_image_info_t info;
    if (lib_.rbd.stat(image_, &info, sizeof info) == 0 && info.size == 0)
      return "a process that had just made it";
    return std::nullopt;
  }

  bool is_locked() const {
    int is_exclusive = 0;
    std::array<std::array<char, kTextBytesMax>, 4> texts{};  // tag, clients, cookies, addresses
    std::array<size_t, 4> bytes{kTextBytesMax, kTextBytesMax, kTextBytesMax, kTextBytesMax};
    return lib_.rbd.list_lockers(image_, &is_exclusive, texts[0].data(), &bytes[0], texts[1].data(),
                                 &bytes[1], texts[2].data(), &bytes[2], texts[3].data(), &bytes[3]) > 0;
  }
  // Of the client of that number; "": it does not watch the image. `others`: clients but for that and this one do.
  std::string watcher_address(uint64_t client, bool* others) const {
    std::array<rbd_image_watcher_t, kWatchersMax> watchers{};
    size_t count = watchers.size();
    *others = true;
    if (lib_.rbd.watchers_list(image_, watchers.data(), &count) != 0) return "";
    std::string address;
    *others = false;
    for (size_t i = 0; i < count; ++i) {
      const auto id = static_cast<uint64_t>(watchers[i].id);
      if (id == client) address = watchers[i].addr;
      *others |= id != client && id != pool_.client();
    }
    lib_.rbd.watchers_list_cleanup(watchers.data(), count);
    return address;
  }

 private:
  const RbdPool& pool_;
  const Librbd& lib_;
  rbd_image_t image_ = nullptr;
  int error_ = 0;
};

SpillImageFound kept(const std::string& name, std::string why) {
  return {SpillImageFound::Outcome::kInUse, name, std::move(why)};
}

SpillImageFound failed(const std::string& name, int error) {
  return {SpillImageFound::Outcome::kFailed, name, std::strerror(error)};
}

// It takes an image that can be written to, which is watched.
void break_lock(const RbdPool& pool, const std::string& name) {
  const Librbd& lib = pool.lib();
  rbd_image_t image = nullptr;
  if (lib.rbd.open(pool.get(), name.c_str(), &image, nullptr) != 0) return;
  if (const std::string owner = lock_owner(lib, image); !owner.empty())
    (void)lib.rbd.lock_break(image, RBD_LOCK_MODE_EXCLUSIVE, owner.c_str());
  lib.rbd.close(image);
}

SpillImageFound removed(const RbdPool& pool, const std::string& name, const std::string& maker) {
  int error = EBUSY;
  for (int tries = 0; error == EBUSY && tries < kTriesToRemove; ++tries) {
    if (tries > 0) platform::sleep_ns(kPauseNs);
    error = -pool.lib().rbd.remove(pool.get(), name.c_str());
  }
  // Another one may have been quicker.
  if (error != 0 && error != ENOENT) return failed(name, error);
  return {SpillImageFound::Outcome::kRemoved, name, maker};
}

// Of the pool's images those that have such a name.
Result<std::vector<std::string>> spill_images(const RbdPool& pool) {
  const Librbd& lib = pool.lib();
  std::vector<rbd_image_spec_t> images(1024);
  size_t count = images.size();
  int result = lib.rbd.list2(pool.get(), images.data(), &count);
  while (result == -ERANGE && count <= kSpillImagesMax) {
    images.resize(count * 2);
    count = images.size();
    result = lib.rbd.list2(pool.get(), images.data(), &count);
  }
  if (result < 0)
    return pool.refused(-result, std::string("its images cannot be listed: ") + std::strerror(-result));
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i)
    if (SpillImageName::parse(images[i].name)) names.emplace_back(images[i].name);
  lib.rbd.image_spec_list_cleanup(images.data(), count);
  return names;
}

}  // namespace

uint64_t spill_image_scope() { return std::hash<std::string>()(platform::claim_scope()); }

uint64_t spill_image_bytes(const RbdPool& pool) {
  const uint64_t free = pool.free_bytes();
  return free == 0 ? kSpillImageBytesDefault : std::min(free, kSpillImageBytesMax);
}

int create_empty_image(const RbdPool& pool, const std::string& name) {
  const Librbd& lib = pool.lib();
  rbd_image_options_t options = nullptr;
  lib.rbd.image_options_create(&options);
  int result = lib.rbd.image_options_set_uint64(options, RBD_IMAGE_OPTION_FEATURES,
                                                RBD_FEATURE_EXCLUSIVE_LOCK | RBD_FEATURE_OBJECT_MAP);
  if (result == 0) result = lib.rbd.create4(pool.get(), name.c_str(), 0, options);
  lib.rbd.image_options_destroy(options);
  return result;
}

int mark_as_spill_image(const Librbd& lib, rbd_image_t image) {
  std::array<char, kTextBytesMax / 2> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const std::string text =
      "process " + std::to_string(::getpid()) + " (" + program_invocation_short_name + ") on " + host.data();
  return lib.rbd.metadata_set(image, kSpillKey, text.substr(0, kTextBytesMax - 1).c_str());
}

std::string lock_owner(const Librbd& lib, rbd_image_t image) {
  rbd_lock_mode_t mode{};
  std::array<char*, 8> owners{};
  size_t count = owners.size();
  if (lib.rbd.lock_get_owners(image, &mode, owners.data(), &count) != 0 || count == 0) return "";
  std::string first = owners[0];
  lib.rbd.lock_get_owners_cleanup(owners.data(), count);
  return first;
}

SpillImageFound remove_if_dead(const RbdPool& pool, const std::string& name, Claimed claimed) {
  const auto parts = SpillImageName::parse(name);
  if (!parts) return {SpillImageFound::Outcome::kForeign, name, ""};
  const bool is_of_this_scope = parts->scope == spill_image_scope();
  platform::File claim;
  if (is_of_this_scope) {
    auto own = pool.claim(name);
    if (own) claim = std::move(*own);
    if (!own && claimed == Claimed::kStays) return kept(name, std::string(own.status().context()));
  }
  std::string whose;
  {
    Looked image(pool, name);
    // Somebody was ended in the middle of making or removing it, or is about to.
    if (image.error() == ENOENT)
      return is_of_this_scope ? removed(pool, name, "") : kept(name, "it is being made or removed");
    if (image.error() != 0) return failed(name, image.error());
    const auto of = image.maker();
    if (!of) return {SpillImageFound::Outcome::kForeign, name, ""};
    whose = *of;
    bool others = false;
    std::string address = image.watcher_address(parts->client, &others);
    if (others) return kept(name, "a client of the cluster has it open");
    if (!address.empty() && !is_of_this_scope)
      return kept(name, "the client of " + whose + " is connected to the cluster");
    // That shuts its owner out, who may have something under way though it is not connected any more.
    if (image.is_locked()) {
      break_lock(pool, name);
    } else if (!address.empty()) {
      if (const int error = pool.shut_out(address.data()); error != 0) return failed(name, error);
    }
  }
  return removed(pool, name, whose);
}

Result<std::vector<SpillImageFound>> remove_dead_images(const RbdPool& pool) {
  auto names = spill_images(pool);
  if (!names) return names.status();
  std::vector<SpillImageFound> found(names->size());
  Atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t at = 0; (at = next.fetch_add_relaxed(1)) < found.size();)
      found[at] = remove_if_dead(pool, (*names)[at], Claimed::kStays);
  };
  // One waits for the cluster most of the time.
  std::vector<platform::Thread> others;
  while (others.size() + 1 < std::min(found.size(), kRemoversMax)) {
    auto other = platform::Thread::start(work);
    if (!other) break;
    others.push_back(std::move(*other));
  }
  work();
  for (platform::Thread& other : others) other.join();
  return found;
}

}  // namespace spw::store
