#include "store/encrypted_store.h"

#include <algorithm>
#include <new>
#include <span>
#include <vector>

#include "base/need.h"
#include "platform/random.h"

namespace spw::store {

// A write goes to the device as another request, of the sealed copy; the others as they are.
class EncryptedStore::Queue final : public QueueAround {
 public:
  Queue(EncryptedStore& store, std::unique_ptr<IoQueue> device)
      : QueueAround(std::move(device)), store_(store) {}

  size_t enqueue(std::span<Request* const> requests) override {
    size_t taken = 0;
    const size_t room = depth() - in_flight();
    for (Request* const request : requests.first(std::min(requests.size(), room))) {
      Request* const goes = to_device(*request);
      if (goes == nullptr) break;
      Request* const one[] = {goes};
      if (device().enqueue(one) == 0) {
        if (Sealed* const sealed = sealed_of(goes)) give_back(sealed);
        break;
      }
      ++taken;
    }
    return taken;
  }
  size_t reap(std::span<Completion> out) override {
    const size_t count = device().reap(out);
    for (Completion& done : out.first(count)) {
      if (Sealed* const sealed = sealed_of(done.request)) {
        done.request = sealed->original;
        give_back(sealed);
      } else if (done.error == 0 && done.request->op == Op::kRead) {
        done.error = store_.after_read(*done.request);
      }
    }
    return count;
  }

 private:
  struct Sealed {
    Request request;
    Request* original = nullptr;
    platform::Mapping copy;
  };

  // Every write on the device is one.
  static Sealed* sealed_of(const Request* request) {
    return request->op == Op::kWrite ? static_cast<Sealed*>(request->user) : nullptr;
  }
  // nullptr: no memory. A request that is under way here ends, and then there is some.
  Request* to_device(Request& request) {
    if (request.op == Op::kDiscard) store_.forget(request);
    if (request.op == Op::kRead) store_.prefetch(request);
    if (request.op != Op::kWrite) return &request;
    if (in_flight() > 0 && !store_.has_room(request.bytes())) return nullptr;
    if (idle_.empty()) idle_.push_back(made_.emplace_back(std::make_unique<Sealed>()).get());
    Sealed* const sealed = idle_.back();
    idle_.pop_back();
    if (Status status = store_.seal(request, sealed->request, sealed->copy); !status) {
      if (in_flight() == 0) cannot_go_on(status);  // nobody would ask again
      idle_.push_back(sealed);
      return nullptr;
    }
    sealed->original = &request;
    sealed->request.user = sealed;
    return &sealed->request;
  }
  void give_back(Sealed* sealed) {
    store_.put_back(std::move(sealed->copy));
    idle_.push_back(sealed);
  }

  EncryptedStore& store_;
  std::vector<std::unique_ptr<Sealed>> made_;  // as many as were in flight at a time
  std::vector<Sealed*> idle_;
};

Result<std::unique_ptr<Store>> EncryptedStore::around(std::unique_ptr<Store> device, uint64_t copies_bytes) {
  std::unique_ptr<EncryptedStore> store(new EncryptedStore(std::move(device), copies_bytes));
  auto cipher = PageCipher::create();
  if (!cipher) return cipher.status();
  store->cipher_ = std::move(*cipher);
  if (Status status = store->seals_.allocate(store->size_bytes()); !status) return status;
  return std::unique_ptr<Store>(std::move(store));
}

Result<std::unique_ptr<IoQueue>> EncryptedStore::open_queue(size_t depth) {
  auto queue = device().open_queue(depth);
  if (!queue) return queue;
  return std::unique_ptr<IoQueue>(std::make_unique<Queue>(*this, std::move(*queue)));
}

// One that is much too large stays for who needs it.
platform::Mapping EncryptedStore::take_copy(uint64_t bytes) {
  constexpr uint64_t kTooLarge = 4;
  platform::Mapping taken;
  {
    std::lock_guard lock(copies_mutex_);
    for (platform::Mapping& copy : copies_) {
      if (copy.bytes() < bytes || copy.bytes() > kTooLarge * bytes) continue;
      taken = std::move(copy);
      kept_bytes_ -= taken.bytes();
      break;
    }
  }
  if (taken.bytes() == 0)
    if (auto made = platform::map_anonymous(bytes)) taken = std::move(*made);
  used_bytes_.fetch_add_relaxed(taken.bytes());
  return taken;
}

// It is unmapped where enough is kept.
void EncryptedStore::put_back(platform::Mapping copy) {
  used_bytes_.fetch_sub_relaxed(copy.bytes());
  std::lock_guard lock(copies_mutex_);
  if (copy.bytes() == 0 || kept_bytes_ + used_bytes_.load_relaxed() + copy.bytes() > copies_bytes_max_)
    return;
  auto* const free = std::ranges::find(copies_, uint64_t{0}, &platform::Mapping::bytes);
  if (free == copies_.end()) return;
  kept_bytes_ += copy.bytes();
  *free = std::move(copy);
}

Status EncryptedStore::seal(const Request& request, Request& sealed, platform::Mapping& copy) {
  sealed.op = Op::kWrite;
  sealed.offset_bytes = request.offset_bytes;
  sealed.segment_count = 0;
  if (!is_of_whole_pages(request)) {
    sealed.offset_bytes |= 1;  // so that the device refuses it
    return {};
  }
  const uint64_t bytes = request.bytes();
  copy = take_copy(bytes);
  if (copy.bytes() < bytes) return Status(ENOMEM, "no memory to encrypt into");
  std::byte* to = copy.data();
  for_each_page(request, [&](uint64_t page, const std::byte* from) {
    const uint64_t nonce = next_nonce_.fetch_add_relaxed(1);
    const uint64_t tag = cipher_->seal(nonce, from, to);
    if (page < seals_.pages()) {
      Seal& seal = seals_.at(page);
      seal.nonce.store_relaxed(nonce);
      seal.tag.store_relaxed(tag);
    }
    to += PageCipher::kPageBytes;
    return true;
  });
  sealed.segment_count = 1;
  sealed.segments[0] = {copy.data(), bytes};
  return {};
}

void EncryptedStore::forget(const Request& request) {
  seals_.for_each(request.offset_bytes / PageCipher::kPageBytes,
                  request.discard_bytes / PageCipher::kPageBytes, [](Seal& seal) {
                    if (seal.nonce.load_relaxed() != 0) seal.nonce.store_relaxed(0);
                  });
}

bool EncryptedStore::fits(const Request& request) {
  return for_each_page(request, [&](uint64_t page, std::byte* contents) {
    const Seal* const seal = seals_.find(page);
    const uint64_t nonce = seal == nullptr ? 0 : seal->nonce.load_relaxed();
    return nonce == 0 || cipher_->open(nonce, seal->tag.load_relaxed(), contents);
  });
}

Status EncryptedStore::transfer(Request& request) {
  if (request.op == Op::kDiscard) forget(request);
  if (request.op == Op::kWrite) {
    Request sealed;
    platform::Mapping copy;
    if (Status status = seal(request, sealed, copy); !status) return status;
    const Status status = device().transfer(sealed);
    put_back(std::move(copy));
    return status;
  }
  if (request.op == Op::kRead) prefetch(request);
  return transfer_through(request);
}

void EncryptedStore::in_child() {
  uint32_t upper = 0;
  platform::draw_random(&upper, sizeof upper);
  next_nonce_.store_relaxed((uint64_t{upper} << 32) + 1);
  // Another thread may have been in the middle of them.
  new (&copies_mutex_) std::mutex;
  for (platform::Mapping& copy : copies_) (void)copy.release();
  kept_bytes_ = 0;
  used_bytes_.store_relaxed(0);
  device().in_child();
}

}  // namespace spw::store
