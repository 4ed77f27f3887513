#include "base/in_runtime.h"

namespace spw::detail {

constinit thread_local unsigned in_runtime_depth = 0;

}  // namespace spw::detail
