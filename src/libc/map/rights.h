// Access rights that programs choose for managed memory: mprotect(), and what else changes them.
//
// Invariant: what no mapping and no object has, has the usual rights, so that who is given it later finds them.
// Threads: any. Errors: libc's.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libc/managed.h"

namespace spw::libc {

inline constexpr int kUsualRights = PROT_READ | PROT_WRITE;

struct RightsPart {
  uintptr_t begin = 0, end = 0;
  int rights = kUsualRights;
};

// Whether the program has ever chosen any: nothing below costs anything before.
bool has_chosen_rights();
// The parts of [begin, end) that differ in rights, in order: one where none were chosen.
std::vector<RightsPart> rights_of(const Context& c, uintptr_t begin, uintptr_t end);
// As mprotect() of the range, which is whole pages: 0, or -1 and errno.
int give_rights(const Context& c, uintptr_t begin, uintptr_t end, int rights);
// A range is to be handed out anew.
void give_usual_rights(const Context& c, uintptr_t begin, uintptr_t end);

// While it exists the runtime may read and store to the range. (So may the program's other threads.)
class UsualRightsFor {
 public:
  UsualRightsFor(const Context& c, uintptr_t begin, uintptr_t end);
  ~UsualRightsFor();
  UsualRightsFor(const UsualRightsFor&) = delete;

 private:
  const Context& c_;
  std::vector<RightsPart> had_;
};

int protect_mapping(void* address, size_t bytes, int protection);
// pkey_mprotect(): managed memory has no keys.
int protect_with_key(void* address, size_t bytes, int protection, int key);

}  // namespace spw::libc
