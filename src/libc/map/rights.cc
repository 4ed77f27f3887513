#include "libc/map/rights.h"

#include <errno.h>

#include <algorithm>

#include "base/atomic.h"
#include "libc/entry.h"
#include "libc/io/descriptors.h"
#include "libc/map/mapped_reads.h"
#include "libc/map/parts.h"
#include "libc/real.h"

namespace spw::libc {

namespace {
Atomic<bool> g_chosen{false};
constexpr int kRights = PROT_READ | PROT_WRITE | PROT_EXEC;
}  // namespace

bool has_chosen_rights() { return g_chosen.load_relaxed(); }

std::vector<RightsPart> rights_of(const Context& c, uintptr_t begin, uintptr_t end) {
  std::vector<RightsPart> parts;
  while (begin < end) {
    RightsPart part{begin, end, kUsualRights};
    if (c.in_place && has_chosen_rights()) part.rights = c.access->program_rights(begin, &part.end);
    parts.push_back(part);
    begin = part.end;
  }
  return parts;
}

int give_rights(const Context& c, uintptr_t begin, uintptr_t end, int rights) {
  if (rights != kUsualRights) g_chosen.store_relaxed(true);
  const auto error = c.access->program_protects(begin, end - begin, rights);
  if (!error) return real().mprotect(pointer(begin), end - begin, rights);
  return *error == 0 ? 0 : static_cast<int>(fail(*error));
}

void give_usual_rights(const Context& c, uintptr_t begin, uintptr_t end) {
  for (const RightsPart& part : rights_of(c, begin, end))
    if (part.rights != kUsualRights) (void)give_rights(c, part.begin, part.end, kUsualRights);
}

UsualRightsFor::UsualRightsFor(const Context& c, uintptr_t begin, uintptr_t end) : c_(c) {
  if (!c.in_place || !has_chosen_rights()) return;
  had_ = rights_of(c, begin, end);
  std::erase_if(had_, [](const RightsPart& part) { return part.rights == kUsualRights; });
  for (const RightsPart& part : had_) (void)give_rights(c, part.begin, part.end, kUsualRights);
}

UsualRightsFor::~UsualRightsFor() {
  for (const RightsPart& part : had_) (void)give_rights(c_, part.begin, part.end, part.rights);
}

// Up to the first hole, as with the kernel: then ENOMEM. What the translated engine manages has the rights it has.
int protect_mapping(void* address, size_t bytes, int protection) {
  if (!is_managed(address)) {
    const auto changed = protect_reads(address, bytes, protection);
    return changed ? *changed : real().mprotect(address, bytes, protection);
  }
  const Pages pages = pages_of(address, bytes);
  if (!pages.is_valid || (protection & ~kRights) != 0) return static_cast<int>(fail(EINVAL));
  InRuntime guard;
  const Context* c = context();
  if (c == nullptr || pages.is_empty()) return 0;
  if (!c->in_place) return (protection & PROT_EXEC) != 0 ? static_cast<int>(fail(EACCES)) : 0;
  uintptr_t end = pages.begin;
  int error = 0;
  const bool is_whole = for_each_part(*c, pages.begin, pages.end, [&](const Part& part) {
    if (part.begin != end) return false;
    if (part.kind == region::Kind::kReadOnlyFile && (protection & PROT_WRITE) != 0) {
      error = EACCES;
      return false;
    }
    end = part.end;
    return true;
  });
  // One call for all of it: what was allocated apart may be given rights together.
  if (end > pages.begin && give_rights(*c, pages.begin, end, protection) != 0) return -1;
  if (error != 0) return static_cast<int>(fail(error));
  return is_whole && end == pages.end ? 0 : static_cast<int>(fail(ENOMEM));
}

int protect_with_key(void* address, size_t bytes, int protection, int key) {
  if (is_managed(address))
    return key == -1 ? protect_mapping(address, bytes, protection) : static_cast<int>(fail(EINVAL));
  release_reads(address, bytes);
  return real().pkey_mprotect(address, bytes, protection, key);
}

}  // namespace spw::libc
