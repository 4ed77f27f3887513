#include "store/rbd/rbd_image.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/units.h"
#include "platform/device_use.h"
#include "store/rbd/spill_image.h"

namespace spw::store {

namespace {

// In the image's metadata: who had its lock last, and where that process ran (platform::claim_scope()).
constexpr const char* kOwnerKey = "spillway.owner";
constexpr size_t kTextBytesMax = 256;
// Somebody may take a new image for one that a dead process has left, until it is locked.
constexpr int kTriesToMake = 3;

}  // namespace

Result<std::unique_ptr<RbdImage>> RbdImage::open(const Librbd& lib, const RbdAddress& address) {
  std::unique_ptr<RbdImage> made(new RbdImage(lib, address));
  if (Status status = RbdPool::here([&] { return made->open_here(); }); !status) return status;
  return made;
}

Result<std::unique_ptr<RbdImage>> RbdImage::make_to_spill(const Librbd& lib, const RbdAddress& address,
                                                          const Announced& announced) {
  std::unique_ptr<RbdImage> made(new RbdImage(lib, address));
  if (Status status = RbdPool::here([&] { return made->make_here(announced); }); !status) return status;
  return made;
}

RbdImage::~RbdImage() {
  if (::getpid() != process_) {
    (void)pool_.release();  // its threads are another process's
    return;
  }
  (void)RbdPool::here([this] {
    close_here();
    return Status::ok();
  });
}

void RbdImage::close_here() {
  if (image_ != nullptr) lib_.rbd.close(image_);
  if (is_made_) (void)lib_.rbd.remove(pool_->get(), name_.c_str());
  pool_.reset();
}

std::string RbdImage::text() const { return is_made_ ? address_.text + "/" + name_ : address_.text; }

Status RbdImage::connect() {
  auto pool = RbdPool::connect(lib_, address_);
  if (!pool) return pool.status();
  pool_ = std::move(*pool);
  return Status::ok();
}

Status RbdImage::open_here() {
  if (Status status = connect(); !status) return status;
  name_ = address_.image;
  if (Status status = open_image(); !status) return status;
  if (size_bytes_ == 0) return pool_->refused(EINVAL, "the image is empty");
  return address_.read_only ? Status::ok() : lock();
}

Status RbdImage::open_image() {
  const auto open = address_.read_only ? lib_.rbd.open_read_only : lib_.rbd.open;
  if (const int error = -open(pool_->get(), name_.c_str(), &image_, nullptr); error != 0) {
    image_ = nullptr;
    if (error == ENOENT)
      return pool_->refused(error, "the pool has no such image; make one: rbd create " + address_.pool + "/" +
                                       name_ + " --size SIZE");
    return pool_->refused(error, std::string("the image cannot be opened: ") + std::strerror(error) +
                                     (error == EPERM ? " (to be read only, say mode=read)" : ""));
  }
  return read_facts();
}

Status RbdImage::read_facts() {
  rbd_image_info_t info;
  if (const int error = -lib_.rbd.stat(image_, &info, sizeof info); error != 0)
    return pool_->refused(error, std::string("the image does not tell its size: ") + std::strerror(error));
  size_bytes_ = info.size;
  object_bytes_ = info.obj_size;
  return Status::ok();
}

// The claim comes first: whoever has it knows that no process of this scope has the image.
Status RbdImage::make_here(const Announced& announced) {
  if (Status status = connect(); !status) return status;
  name_ = SpillImageName{spill_image_scope(), pool_->client()}.text();
  auto claim = pool_->claim(name_);
  if (!claim) return claim.status();
  claim_ = std::move(*claim);
  if (!announced(name_)) (void)remove_dead_images(*pool_);
  Status status;
  for (int tries = 0; tries < kTriesToMake; ++tries) {
    status = make_anew();
    if (status || (status.error() != ENOENT && status.error() != EBUSY)) break;
    if (image_ != nullptr) lib_.rbd.close(image_);
    image_ = nullptr;
  }
  return status;
}

// Empty until it is locked and says what it is, so that one which says nothing holds nothing.
Status RbdImage::make_anew() {
  const int made = -create_empty_image(*pool_, name_);
  if (made != 0 && made != EEXIST)
    return pool_->refused(made, std::string("no image can be made: ") + std::strerror(made));
  is_made_ = true;
  if (Status status = open_image(); !status) return status;
  if (Status status = acquire_lock(); !status) return status;
  if (const int error = -mark_as_spill_image(lib_, image_); error != 0)
    return pool_->refused(error, std::string("a new image cannot be marked: ") + std::strerror(error));
  const uint64_t size = address_.size_bytes != 0 ? address_.size_bytes : spill_image_bytes(*pool_);
  if (const int error = -lib_.rbd.resize(image_, size); error != 0)
    return pool_->refused(error,
                          "an image of " + format_size(size) + " cannot be made: " + std::strerror(error));
  return read_facts();
}

// Who has the lock, as Ceph names clients; "" if nobody has.
std::string RbdImage::owner() const { return lock_owner(lib_, image_); }

// With the claim on the image, no other process in this scope uses it.
bool RbdImage::was_of_this_scope(const std::string& owner) const {
  std::array<char, kTextBytesMax> text{};
  size_t bytes = text.size() - 1;
  return lib_.rbd.metadata_get(image_, kOwnerKey, text.data(), &bytes) == 0 &&
         owner + " " + platform::claim_scope() == text.data();
}

Status RbdImage::lock() {
  uint64_t features = 0;
  if (const int error = -lib_.rbd.get_features(image_, &features); error != 0)
    return pool_->refused(error,
                          std::string("the image does not tell its features: ") + std::strerror(error));
  if ((features & RBD_FEATURE_EXCLUSIVE_LOCK) == 0)
    return pool_->refused(EINVAL, "the image has no lock; give it one: rbd feature enable " + address_.pool +
                                      "/" + name_ + " exclusive-lock");
  auto claim = pool_->claim(name_);
  if (!claim)
    return pool_->refused(
        EBUSY, std::string(claim.status().context()) +
                   ", and one client at a time can write to it: end that use, or read it with mode=read");
  claim_ = std::move(*claim);
  return acquire_lock();
}

Status RbdImage::acquire_lock() {
  if (const std::string before = owner(); !before.empty() && was_of_this_scope(before))
    (void)lib_.rbd.lock_break(image_, RBD_LOCK_MODE_EXCLUSIVE, before.c_str());
  const int error = -lib_.rbd.lock_acquire(image_, RBD_LOCK_MODE_EXCLUSIVE);
  if (error == EROFS || error == EBUSY)
    return pool_->refused(
        EBUSY, "the client at " + owner() +
                   " has its lock, and one at a time can write to it: end that use, or read it with "
                   "mode=read");
  if (error != 0)
    return pool_->refused(error, std::string("its lock cannot be had: ") + std::strerror(error));
  // Without it the next client waits until the cluster has noticed that this one is gone.
  (void)lib_.rbd.metadata_set(image_, kOwnerKey, (owner() + " " + platform::claim_scope()).c_str());
  return Status::ok();
}

}  // namespace spw::store
