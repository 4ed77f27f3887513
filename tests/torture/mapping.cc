// mmap, munmap, mprotect.
#include <algorithm>
#include <cerrno>

#include "operations.h"

namespace torture {

namespace {

constexpr uint32_t kManagedPagesMin = 16;  // --threshold

struct Asked {
  int protection;
  int flags;
  int descriptor;
  off_t offset;
};

int choose_protection(Random& random) {
  constexpr int kRead = PROT_READ, kWrite = PROT_WRITE, kExecute = PROT_EXEC;
  static constexpr int kRare[] = {kWrite, kRead | kExecute, kRead | kWrite | kExecute, kExecute,
                                  kWrite | kExecute};
  const uint64_t kind = random.below(100);
  if (kind < 60) return kRead | kWrite;
  if (kind < 76) return kRead;
  if (kind < 90) return PROT_NONE;
  return random.of(kRare);
}

// Private files are those that never change: whether a private mapping sees a change is not said.
void choose_file(Context& context, Asked& asked, bool shared) {
  Random& random = context.random;
  static constexpr FileKind kShared[] = {FileKind::kDisk, FileKind::kMemfd, FileKind::kShm};
  unsigned group = context.group();
  const FileKind kind = shared ? random.of(kShared) : FileKind::kConstant;
  const File& file = file_of(group, kind);
  const bool writable = random.percent(80);
  asked.descriptor = writable ? file.read_write : file.read_only;
  asked.offset = static_cast<off_t>(random.below(random.percent(70) ? 64 : kFilePagesMax) * kPage);
  context.log->in("file", static_cast<int>(kind));
  context.log->in("file_page", asked.offset / static_cast<off_t>(kPage));
  context.log->in("writable", writable);
}

Asked choose_mapping(Context& context) {
  Random& random = context.random;
  Asked asked{choose_protection(random), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0};
  const uint64_t kind = random.below(100);
  static const bool shared_anonymous = allowed("shared_anonymous"), private_file = allowed("private_file"),
                    shared_file = allowed("shared_file");
  if (kind < 12 && shared_anonymous) asked.flags = MAP_SHARED | MAP_ANONYMOUS;
  if (kind >= 12 && kind < 22 && private_file) {
    asked.flags = MAP_PRIVATE;
    choose_file(context, asked, false);
  }
  if (kind >= 22 && kind < 38 && shared_file) {
    asked.flags = random.percent(80) ? MAP_SHARED : MAP_SHARED_VALIDATE;
    choose_file(context, asked, true);
  }
  static const bool populate = allowed("populate"), locked = allowed("locked");
  if (random.percent(10)) asked.flags |= MAP_NORESERVE;
  if (random.percent(8) && populate) asked.flags |= MAP_POPULATE;
  if (random.percent(2)) asked.flags |= MAP_NONBLOCK;
  if (random.percent(2)) asked.flags |= MAP_STACK;
  if (random.percent(1)) asked.flags |= MAP_DENYWRITE | MAP_EXECUTABLE;
  if (random.percent(1) && locked && context.alone) asked.flags |= MAP_LOCKED;
  return asked;
}

// Where it is not mapped at an address of the program's choice.
Backing backing_of(const Asked& asked, uint32_t pages) {
  const bool is_shared = (asked.flags & MAP_TYPE) != MAP_PRIVATE;
  if (asked.descriptor >= 0) return Backing::kFile;
  if (is_shared || (asked.flags & (MAP_STACK | MAP_LOCKED)) != 0 || (asked.protection & PROT_EXEC) != 0 ||
      asked.protection == PROT_NONE)
    return Backing::kKernels;
  return pages < kManagedPagesMin || asked.protection != (PROT_READ | PROT_WRITE) || is_a_child()
             ? Backing::kEither
             : Backing::kMemory;
}

// What mappings at addresses of managed memory may do otherwise.
bool allowed_at(const Slot& slot, const Asked& asked) {
  static const bool shared = allowed("share_managed"), file = allowed("replace_managed_file"),
                    rights = allowed("rights_of_managed"), copied = allowed("file_in_managed"),
                    locked = allowed("lock_managed");
  if (!slot.may_be_managed()) return true;
  if ((asked.flags & MAP_TYPE) != MAP_PRIVATE && !shared) return false;
  if (asked.descriptor >= 0 && !copied) return false;
  if (slot.may_be_managed_file() && slot.kind != Kind::kHeap && !file) return false;
  if ((asked.flags & MAP_LOCKED) != 0 && !locked) return false;
  return rights || asked.protection == (PROT_READ | PROT_WRITE);
}

void log_asked(Context& context, const Asked& asked) {
  context.log->in("protection", asked.protection);
  context.log->hex("flags", static_cast<unsigned>(asked.flags));
}

void map_fixed(Context& context) {
  Random& random = context.random;
  Slot* slot = choose_slot(random, kOfMapped, context.groups);
  if (slot == nullptr) return context.log->calls();
  const Range range = choose_range(random, *slot, kSlotPages);
  log_range(context, range);
  Context of_slot{context.log, random, context.number, 1u << slot->group, context.alone};
  Asked asked = choose_mapping(of_slot);
  random = of_slot.random;
  asked.flags |= random.percent(88) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
  log_asked(context, asked);
  context.log->calls();
  if (!allowed_at(*slot, asked)) return context.log->word("left_out");
  note_rights(*slot, asked.protection);
  void* at =
      mmap(range.begin(), range.bytes(), asked.protection, asked.flags, asked.descriptor, asked.offset);
  context.log->result("offset", at == MAP_FAILED ? -1 : static_cast<char*>(at) - range.begin());
  if (at == MAP_FAILED) return;
  mark(range, mixed(context.number) | 1);
  if (random.percent(50)) probe_range(context, {slot, range.page, std::min(range.pages, 16u)});
}

// Only far slots have holes that stay free.
void map_hint(Context& context) {
  Random& random = context.random;
  Slot* slot = choose_slot(random, kOfFar, context.groups);
  if (slot == nullptr) return context.log->calls();
  const Range range = choose_range(random, *slot, 64);
  log_range(context, range);
  context.log->calls();
  if (range.pages >= kManagedPagesMin && !allowed("hint_of_managed")) return context.log->word("left_out");
  void* at = mmap(range.begin(), range.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  context.log->result("elsewhere", at == MAP_FAILED ? -1 : at != range.begin());
  if (at == range.begin()) {
    mark(range, mixed(context.number) | 1);
    return;
  }
  context.log->out("overlaps",
                   overlaps_a_slot(static_cast<char*>(at), range.bytes(), context.groups, nullptr));
  context.log->result("unmapped", munmap(at, range.bytes()));
}

void map_near(Context& context) {
  Random& random = context.random;
  Slot* slot = choose_empty_slot(random, Kind::kDynamic, context.groups);
  if (slot == nullptr) return context.log->calls();
  const uint32_t pages = 1 + static_cast<uint32_t>(random.below(random.percent(50) ? 256 : kSlotPages));
  context.log->in("slot", slot->number);
  context.log->in("pages", pages);
  Context of_slot{context.log, random, context.number, 1u << slot->group, context.alone};
  Asked asked = choose_mapping(of_slot);
  random = of_slot.random;
  log_asked(context, asked);
  context.log->calls();
  static const bool ends_files = allowed("touch_hole_in_managed");
  const off_t file_end = static_cast<off_t>(256 * kPage);  // of those that do not change
  if (asked.descriptor >= 0 && asked.offset + static_cast<off_t>(pages * kPage) > file_end && !ends_files)
    return context.log->word("left_out");
  static const bool shares_files = allowed("share_file_near"), reads_files = allowed("read_only_file_near");
  const bool is_shared = (asked.flags & MAP_TYPE) != MAP_PRIVATE,
             is_read_only = asked.protection != (PROT_READ | PROT_WRITE);
  if (asked.descriptor >= 0 && ((is_shared && !shares_files) || (is_read_only && !reads_files)))
    return context.log->word("left_out");
  void* at = mmap(nullptr, pages * kPage, asked.protection, asked.flags, asked.descriptor, asked.offset);
  context.log->result("misaligned", at == MAP_FAILED ? -1 : reinterpret_cast<uintptr_t>(at) % kPage);
  if (at == MAP_FAILED) return;
  context.log->out("overlaps", overlaps_a_slot(static_cast<char*>(at), pages * kPage, context.groups, slot));
  slot->base = static_cast<char*>(at);
  slot->pages = pages;
  slot->backing = backing_of(asked, pages);
  slot->is_unreadable = false;
  note_rights(*slot, asked.protection);
  mark({slot, 0, pages}, mixed(context.number) | 1);
}

void unmap_near(Context& context) {
  Slot* slot = choose_slot(context.random, kOfDynamic, context.groups);
  if (slot == nullptr) return context.log->calls();
  context.log->in("slot", slot->number);
  context.log->calls();
  context.log->result("munmap", munmap(slot->base, slot->pages * kPage));
  slot->pages = 0;
}

// Whatever spans the hole.
void use_around(Context& context, const Range& hole) {
  Random& random = context.random;
  const uint32_t before = static_cast<uint32_t>(random.below(std::min(hole.page, 4u) + 1));
  const uint32_t behind =
      static_cast<uint32_t>(random.below(std::min(hole.slot->pages - hole.page - hole.pages, 4u) + 1));
  const Range around{hole.slot, hole.page - before, before + hole.pages + behind};
  context.log->out("from", around.page);
  context.log->out("to", around.page + around.pages);
  const uint64_t which = random.below(5);
  static const bool touches = allowed("touch_hole_in_managed");
  if (hole.slot->may_be_managed() && !touches && which != 0 && which != 2)
    return context.log->word("left_out");
  switch (which) {
    case 0:
      return protect_range(context, around);
    case 1:
      return advise_range(context, around);
    case 2:
      return look_at_range(context, around);
    default:
      return probe_range(context, around);
  }
}

void unmap(Context& context) {
  Random& random = context.random;
  Slot* slot = choose_slot(random, kOfMapped, context.groups);
  if (slot == nullptr || (slot->is_near() && !context.alone)) return context.log->calls();
  const Range range = choose_range(random, *slot, kSlotPages);
  log_range(context, range);
  context.log->calls();
  if (!may_leave_hole(*slot)) return context.log->word("left_out");
  // The length is rounded up.
  context.log->result("munmap", munmap(range.begin(), range.bytes() - random.below(kPage)));
  mark(range, 0);
  for (uint64_t uses = random.below(3); uses > 0; --uses) use_around(context, range);
  if (slot->is_near()) plug(context, range);
}

void protect(Context& context) {
  Slot* slot = choose_slot(context.random, kOfMapped, context.groups);
  if (slot == nullptr) return context.log->calls();
  const Range range = choose_range(context.random, *slot, kSlotPages);
  log_range(context, range);
  context.log->calls();
  protect_range(context, range);
}

// Calls that are wrong, and change nothing.
void map_wrong(Context& context) {
  Random& random = context.random;
  Slot* slot = choose_slot(random, kOfMapped, context.groups);
  if (slot == nullptr) return context.log->calls();
  const Range range = choose_range(random, *slot, 64);
  log_range(context, range);
  const uint64_t which = random.below(12);
  context.log->in("which", static_cast<int64_t>(which));
  context.log->calls();
  constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS, kNoFlag = 1 << 24, kNoFile = 1 << 29;
  const int constant = file_of(slot->group, FileKind::kConstant).read_only;
  char* at = range.begin();
  const size_t bytes = range.bytes();
  void* mapped = nullptr;
  int64_t done = 0;
  switch (which) {
    case 0:
      mapped = mmap(at, 0, PROT_READ, kAnonymous | MAP_FIXED, -1, 0);
      break;
    case 1:
      mapped = mmap(at + 8, bytes, PROT_READ, kAnonymous | MAP_FIXED, -1, 0);
      break;
    case 2:
      mapped = mmap(at, bytes, PROT_READ, MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      break;
    case 3:
      mapped = mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, kNoFile, 0);
      break;
    case 4:
      mapped = mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, constant, 100);
      break;
    case 5:
      mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, constant, 0);
      break;
    case 6:
      mapped = mmap(nullptr, size_t{1} << 60, PROT_READ, kAnonymous, -1, 0);
      break;
    case 7:
      if (slot->may_be_managed() && !allowed("share_managed")) return context.log->word("left_out");
      mapped = mmap(at, bytes, PROT_READ, MAP_SHARED_VALIDATE | MAP_FIXED | kNoFlag, constant, 0);
      break;
    case 8:
      done = munmap(at + 8, bytes);
      break;
    case 9:
      done = munmap(at, 0);
      break;
    case 10:
      done = mprotect(at + 8, bytes, PROT_READ);
      break;
    default:
      done = mprotect(at, bytes, PROT_READ | PROT_GROWSDOWN | PROT_GROWSUP);
      break;
  }
  context.log->result("call", mapped == MAP_FAILED || done == -1 ? -1 : 0);
}

}  // namespace

// Some slots stay as they are, others have memory from the start, got in one of several ways.
void prepare_slot(Context& context) {
  Random& random = context.random;
  Slot& slot = slots[context.number];
  const uint32_t pages = random.percent(50) ? kSlotPages : 2048;
  const Range range{&slot, 0, pages};
  log_range(context, range);
  const uint64_t how = random.below(4);
  context.log->in("how", static_cast<int64_t>(how));
  context.log->calls();
  if (how == 0) return;
  if (how == 1 && slot.kind == Kind::kReserved) {
    context.log->result("mprotect", mprotect(range.begin(), range.bytes(), PROT_READ | PROT_WRITE));
  } else {
    const int flags =
        (how == 2 && allowed("shared_anonymous") ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_FIXED;
    void* at = mmap(range.begin(), range.bytes(), PROT_READ | PROT_WRITE, flags, -1, 0);
    context.log->result("offset", at == MAP_FAILED ? -1 : static_cast<char*>(at) - range.begin());
  }
  mark(range, mixed(context.number) | 1);
}

void protect_range(Context& context, const Range& range) {
  const int protection = choose_protection(context.random);
  context.log->out("protection", protection);
  if (!may_change_rights(*range.slot)) return context.log->word("left_out");
  note_rights(*range.slot, protection);
  const int done = mprotect(range.begin(), range.bytes() - context.random.below(kPage), protection);
  context.log->result("mprotect", done);
  // One that fails may have changed what comes before a hole.
  remark(range, context.number);
}

bool may_leave_hole(const Slot& slot) {
  static const bool file = allowed("replace_managed_file");
  return file || !slot.is_near() || !slot.may_be_managed_file();
}

bool may_change_rights(const Slot& slot) {
  static const bool rights = allowed("rights_of_managed");
  return rights || !slot.may_be_managed();
}

void plug(Context& context, const Range& range) {
  const int protection = may_change_rights(*range.slot) ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* at = mmap(range.begin(), range.bytes(), protection,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  context.log->result("plug", at == MAP_FAILED ? -1 : static_cast<char*>(at) - range.begin());
  if (at != MAP_FAILED) mark(range, mixed(context.number, 7) | 1);
}

const Operation mapping_operations[] = {
    {"map_fixed", 60, map_fixed, false},  {"map_hint", 4, map_hint, false}, {"map_near", 24, map_near, false},
    {"unmap_near", 8, unmap_near, false}, {"unmap", 40, unmap, false},      {"protect", 80, protect, false},
    {"map_wrong", 5, map_wrong, false},   {nullptr, 0, nullptr, false},
};

}  // namespace torture
