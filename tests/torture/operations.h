// The operations, and what they share.
#pragma once

#include <sys/mman.h>

#include <cstdint>

#include "log.h"
#include "random.h"
#include "slots.h"

namespace torture {

// Who carries out an operation.
struct Context {
  Log* log;
  Random random;
  uint64_t number;
  unsigned groups;  // whose slots and files it may use
  bool alone;       // no other thread of the process does anything meanwhile

  unsigned group() const { return static_cast<unsigned>(__builtin_ctz(groups)); }
};

struct Operation {
  const char* name;
  unsigned weight;
  void (*run)(Context&);
  bool alone;  // only where Context::alone
};

// Ended by one without a name. Each file of operations has its own table.
extern const Operation access_operations[], mapping_operations[], remap_operations[], advice_operations[],
    call_operations[], libc_operations[], heap_operations[], file_operations[], task_operations[],
    special_operations[];

// What --without leaves out.
bool allowed(const char* name);
void set_left_out(const char* names);

// Whether this process was forked by an operation.
bool is_a_child();

// The first operations of a sequence give the slots something to begin with.
inline constexpr uint64_t kPreparing = kFar + kReserved;
void prepare_slot(Context& context);

// Of one operation with threads or a child: only one of them does something (`t1`, `c0`), and only these of its
// operations. For making a sequence smaller.
struct Inner {
  uint64_t number = UINT64_MAX;
  char who[4] = "";
  uint64_t count = 0;
  uint64_t kept[64];
};
extern Inner inner;
bool is_kept(uint64_t number, const char* who, uint64_t of_it);

// The seed's operation of that number.
void run_operation(Log& log, uint64_t number, uint64_t seed, unsigned groups, bool alone);
void run_one(Log& log, const Operation& operation, uint64_t number, uint64_t seed, unsigned groups,
             bool alone);

// Operations on a range, as parts of others: they add to the line that was begun.
void probe_range(Context& context, const Range& range);
void protect_range(Context& context, const Range& range);
void advise_range(Context& context, const Range& range);
void look_at_range(Context& context, const Range& range);  // mincore, msync
// Loads of each page, and stores to each; faults are written down, and so is a checksum of what was loaded.
void load_pages(Context& context, const Range& range, bool whole);
void store_pages(Context& context, const Range& range, bool whole);
// Stores to every word of what can be stored to; nothing is written down.
void rewrite_pages(Context& context, const Range& range);
// Whether each page can be read (and stored to, if `stores`).
bool accessible(const Range& range, bool stores);
// Whether a hole may be made in the slot, which is filled again, and whether rights may be changed.
bool may_leave_hole(const Slot& slot);
bool may_change_rights(const Slot& slot);
// A hole in a near slot is filled before anything else may come into it.
void plug(Context& context, const Range& range);
void log_range(Context& context, const Range& range);

// Files that may be mapped, some for each group. Those of one kind never change.
enum class FileKind : uint8_t { kDisk, kMemfd, kShm, kConstant };
inline constexpr unsigned kFileKinds = 4;
inline constexpr uint32_t kFilePagesMax = 512;
struct File {
  int read_write = -1;
  int read_only = -1;
};
const File& file_of(unsigned group, FileKind kind);
void set_up_files(const char* directory);

// What calls write to and read from: a file, a pipe that does not wait, and memory of the program's own.
struct Scratch {
  int file = -1;
  int pipe[2] = {-1, -1};
  char bytes[1 << 16];
};
extern Scratch scratches[kGroups];
void set_up_scratches();

}  // namespace torture
