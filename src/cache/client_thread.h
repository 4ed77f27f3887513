// A thread of the runtime's own that acts as a client of the cache.
//
// Threads: as platform/thread.h. Lifetime: the thread ends before the cache does; its client is closed when it ends.
#pragma once

#include <functional>

#include "cache/cache.h"
#include "platform/thread.h"

namespace spw::cache {

// Runs `body` in it. Errors are those of open_client() and of
// platform::Thread::start().
Result<platform::Thread> start_client_thread(SharedCache& cache, std::function<void(Client&)> body,
                                             Uses uses = Uses::kUnseen);

}  // namespace spw::cache
