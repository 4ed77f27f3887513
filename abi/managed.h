// Whether an address lies in managed space: abi.h's rule, for the runtime's own code.
#pragma once

#include <cstdint>

#include "abi/abi.h"

namespace spw {

constexpr bool is_managed(uintptr_t address) { return address >> SPW_MANAGED_SHIFT == SPW_MANAGED_TAG; }
inline bool is_managed(const void* p) { return is_managed(reinterpret_cast<uintptr_t>(p)); }

}  // namespace spw
