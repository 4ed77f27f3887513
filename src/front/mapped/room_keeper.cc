#include "front/mapped/room_keeper.h"

#include <chrono>

#include "cache/client_thread.h"
#include "platform/time.h"

namespace spw::front {

Status RoomKeeper::start() {
  const unsigned count = options_.evictors > 0 ? options_.evictors : 1;
  for (unsigned i = 0; i < count; ++i) {
    auto thread =
        cache::start_client_thread(cache_, [this, i](cache::Client& client) { keep(client, i == 0); });
    if (!thread) return thread.status();
    threads_.push_back(std::move(*thread));
  }
  return {};
}

void RoomKeeper::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  for (platform::Thread& thread : threads_) thread.join();
}

void RoomKeeper::keep(cache::Client& client, bool looks_at_hints) {
  const bool ahead = options_.evictors > 0;
  const unsigned low_percent = ahead ? options_.low_percent : 0;
  const unsigned high_percent = ahead ? options_.high_percent : 0;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    cache_.make_room(client, low_percent, high_percent);
    if (looks_at_hints) hint_switch_.look(platform::monotonic_ns());
    lock.lock();
    wake_.wait_for(lock, std::chrono::nanoseconds(kLookNs), [this] { return stopping_; });
  }
}

}  // namespace spw::front
