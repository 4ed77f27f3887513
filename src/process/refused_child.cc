#include "process/refused_child.h"

#include <pthread.h>
#include <unistd.h>

#include <string_view>

#include "base/atomic.h"
#include "platform/end_request.h"
#include "process/fatal.h"

namespace spw::process {

namespace {

constexpr std::string_view kWhat =
    "a forked child touched managed memory, which only its parent has; the run ends";
constexpr std::string_view kHowToGoOn =
    "to go on: in Python multiprocessing.set_start_method(\"spawn\"), elsewhere exec after fork; or "
    "--on-refused-child=go-on, which ends the child alone";

pthread_mutex_t g_making_request = PTHREAD_MUTEX_INITIALIZER;
// In memory that is shared with all children.
Atomic<platform::EndRequest*> g_request{nullptr};

}  // namespace

void let_children_end_the_run() {
  if (g_request.load_acquire() != nullptr) return;
  pthread_mutex_lock(&g_making_request);
  if (g_request.load_relaxed() == nullptr) {
    auto request = platform::EndRequest::create(kExitFailure);
    if (request) g_request.store_release(*request);
  }
  pthread_mutex_unlock(&g_making_request);
}

void refuse_child(const Status& why) {
  platform::EndRequest* request = g_request.load_acquire();
  if (request == nullptr) fatal(kExitFailure, why.message());
  if (request->ask()) {
    tell(kWhat);
    tell(kHowToGoOn);
    request->confirm();
  }
  // Its parent does not see it end first, and start another or be content.
  request->wait_for_end();
  ::_exit(kExitFailure);
}

}  // namespace spw::process
