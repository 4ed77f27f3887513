#include "cache/page_cleaner.h"

#include <chrono>

#include "cache/client_thread.h"
#include "platform/time.h"

namespace spw::cache {

Status PageCleaner::start() {
  const unsigned count = options_.evictors > 0 ? options_.evictors : 1;
  for (unsigned i = 0; i < count; ++i) {
    auto thread = start_client_thread(cache_, [this, i](Client& client) { keep(client, i == 0); });
    if (!thread) return thread.status();
    threads_.push_back(std::move(*thread));
  }
  return {};
}

void PageCleaner::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  for (platform::Thread& thread : threads_) thread.join();
}

void PageCleaner::keep(Client& client, bool is_first) {
  const bool ahead = options_.evictors > 0;
  const unsigned low_percent = ahead ? options_.low_percent : 0;
  const unsigned high_percent = ahead ? options_.high_percent : 0;
  uint64_t told_ns = 0;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const bool found_some = cache_.make_room(client, low_percent, high_percent);
    if (const uint64_t now_ns = platform::monotonic_ns();
        is_first && looked_ && now_ns - told_ns >= kLookNs) {
      told_ns = now_ns;
      looked_();
    }
    lock.lock();
    wake_.wait_for(lock, std::chrono::nanoseconds(found_some ? kSoonNs : kLookNs),
                   [this] { return stopping_; });
  }
}

}  // namespace spw::cache
