// What everything here asks about memory that may be managed: the names of access/ as this folder uses them, and
// whether the kernel can be given it.
//
// Threads: any.
#pragma once

#include "access/context.h"
#include "access/copy.h"
#include "libc/system_calls/dispatch.h"

namespace spw::libc {

using access::allocation_context;
using access::any_elsewhere;
using access::compare_bytes;
using access::context;
using access::Context;
using access::copy_bytes;
using access::fill_bytes;
using access::is_elsewhere;
using access::kernel_reaches;
using access::load_value;
using access::move_bytes;
using access::store_value;
using spw::is_managed;

// Managed, and a system call that is given it would fail.
inline bool kernel_cannot_reach(const void* p) {
  if (!is_managed(p) || kernel_reaches()) return false;
  dispatch_if_wanted();
  return true;
}
template <class... More>
bool kernel_cannot_reach_any(More*... pointers) {
  return (kernel_cannot_reach(pointers) || ...);
}

}  // namespace spw::libc
