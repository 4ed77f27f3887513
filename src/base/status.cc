#include "base/status.h"

#include <cstring>

namespace spw {

std::string Status::message() const {
  if (is_ok()) return "ok";
  if (state_->is_sentence) return state_->context;
  char buffer[128];
  return std::string(context()) + ": " + ::strerror_r(error(), buffer, sizeof buffer);
}

}  // namespace spw
