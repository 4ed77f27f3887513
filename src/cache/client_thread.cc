#include "cache/client_thread.h"

#include <utility>

namespace spw::cache {

Result<platform::Thread> start_client_thread(SharedCache& cache, std::function<void(Client&)> body,
                                             Uses uses) {
  auto client = cache.open_client(uses);
  if (!client) return client.status();
  auto thread = platform::Thread::start([&cache, client = *client, body = std::move(body)] {
    body(*client);
    cache.close_client(client);
  });
  if (!thread) cache.close_client(*client);
  return thread;
}

}  // namespace spw::cache
