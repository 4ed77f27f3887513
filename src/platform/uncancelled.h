// While one lives, its thread is not cancelled: what waits inside the runtime on behalf of the program leaves nothing
// half done. A cancellation that comes meanwhile is acted upon at the program's next point for it.
#pragma once

#include <pthread.h>

namespace spw::platform {

class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace spw::platform
