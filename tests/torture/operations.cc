#include "operations.h"

#include <cstring>

namespace torture {

namespace {

const char* left_out = "";

const Operation* const kTables[] = {
    access_operations, mapping_operations, remap_operations, advice_operations, call_operations,
    libc_operations,   heap_operations,    file_operations,  task_operations,   special_operations};

unsigned total_weight() {
  unsigned total = 0;
  for (const Operation* table : kTables) {
    for (const Operation* at = table; at->name != nullptr; ++at) total += at->weight;
  }
  return total;
}

const Operation& operation_of(uint64_t ticket) {
  for (const Operation* table : kTables) {
    for (const Operation* at = table; at->name != nullptr; ++at) {
      if (ticket < at->weight) return *at;
      ticket -= at->weight;
    }
  }
  __builtin_trap();
}

}  // namespace

Inner inner;

bool is_kept(uint64_t number, const char* who, uint64_t of_it) {
  if (number != inner.number) return true;
  if (std::strcmp(who, inner.who) != 0) return false;
  for (uint64_t at = 0; at < inner.count; ++at) {
    if (inner.kept[at] == of_it) return true;
  }
  return false;
}

bool allowed(const char* name) {
  const size_t length = std::strlen(name);
  for (const char* at = left_out; (at = std::strstr(at, name)) != nullptr; at += length) {
    const bool begins = at == left_out || at[-1] == ',';
    if (begins && (at[length] == ',' || at[length] == 0)) return false;
  }
  return true;
}

void set_left_out(const char* names) { left_out = names; }

void run_one(Log& log, const Operation& operation, uint64_t number, uint64_t seed, unsigned groups,
             bool alone) {
  Context context{&log, Random(mixed(seed, number)), number, groups, alone};
  log.begin(number, operation.name);
  if ((operation.alone && !alone) || !allowed(operation.name)) {
    log.word("left_out");
    log.calls();
  } else {
    operation.run(context);
  }
  log.end();
}

void run_operation(Log& log, uint64_t number, uint64_t seed, unsigned groups, bool alone) {
  static const unsigned weights = total_weight();
  Random chosen(mixed(~seed, number));
  run_one(log, operation_of(chosen.below(weights)), number, seed, groups, alone);
}

void log_range(Context& context, const Range& range) {
  context.log->in("slot", range.slot->number);
  context.log->in("page", range.page);
  context.log->in("pages", range.pages);
}

}  // namespace torture
