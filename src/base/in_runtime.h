// While one lives, what its thread allocates is the runtime's own: interposed allocation functions hand out native memory.
//
// Whoever enters the runtime from the program's code, and every thread of the runtime, holds one: memory that the runtime
// works with must never be memory that the runtime has to bring in.
#pragma once

namespace spw {

namespace detail {
extern constinit thread_local unsigned in_runtime_depth __attribute__((tls_model("initial-exec")));
}  // namespace detail

class InRuntime {
 public:
  InRuntime() { ++detail::in_runtime_depth; }
  ~InRuntime() { --detail::in_runtime_depth; }
  InRuntime(const InRuntime&) = delete;
  InRuntime& operator=(const InRuntime&) = delete;

  static bool here() { return detail::in_runtime_depth != 0; }
};

}  // namespace spw
