// Loads and stores, of few bytes and of many.
#include <algorithm>
#include <cstring>

#include "guarded.h"
#include "operations.h"

namespace torture {

namespace {

using Vector16 = long long __attribute__((vector_size(16)));
template <typename T>
struct __attribute__((packed, may_alias)) Unaligned {
  T value;
};

constexpr uint32_t kSizes[] = {1, 2, 4, 8, 8, 8, 16, 32, 64};
constexpr uint32_t kPagesMax = 256;

template <typename T>
uint64_t load_one(const char* at) {
  return reinterpret_cast<const volatile Unaligned<T>*>(at)->value;
}

template <typename T>
void store_one(char* at, uint64_t value) {
  reinterpret_cast<volatile Unaligned<T>*>(at)->value = static_cast<T>(value);
}

uint64_t load_bytes(const char* at, uint32_t size) {
  switch (size) {
    case 1:
      return load_one<uint8_t>(at);
    case 2:
      return load_one<uint16_t>(at);
    case 4:
      return load_one<uint32_t>(at);
    case 8:
      return load_one<uint64_t>(at);
    default:
      break;
  }
  uint64_t sum = 0;
  for (uint32_t offset = 0; offset < size; offset += 16) {
    const Vector16 value = reinterpret_cast<const volatile Unaligned<Vector16>*>(at + offset)->value;
    sum = mixed(mixed(sum, static_cast<uint64_t>(value[0])), static_cast<uint64_t>(value[1]));
  }
  return sum;
}

void store_bytes(char* at, uint32_t size, uint64_t value) {
  switch (size) {
    case 1:
      return store_one<uint8_t>(at, value);
    case 2:
      return store_one<uint16_t>(at, value);
    case 4:
      return store_one<uint32_t>(at, value);
    case 8:
      return store_one<uint64_t>(at, value);
    default:
      break;
  }
  for (uint32_t offset = 0; offset < size; offset += 16) {
    const Vector16 vector = {static_cast<long long>(value + offset), static_cast<long long>(~value)};
    reinterpret_cast<volatile Unaligned<Vector16>*>(at + offset)->value = vector;
  }
}

struct Place {
  Slot* slot;
  char* at;
  uint32_t size;
};

// One in four lies across the end of a page.
Place choose_place(Context& context) {
  Random& random = context.random;
  Slot* slot = choose_slot(random, kOfAll, context.groups);
  if (slot == nullptr) return {nullptr, nullptr, 0};
  const Range range = choose_range(random, *slot, 2);
  const uint32_t size = random.of(kSizes);
  uint64_t offset = random.percent(50) ? random.below(kPage / size) * size : random.below(kPage - size + 1);
  if (size > 1 && range.page + 1 < slot->pages && random.percent(25))
    offset = kPage - 1 - random.below(size - 1);
  context.log->in("slot", slot->number);
  context.log->in("page", range.page);
  context.log->in("offset", static_cast<int64_t>(offset));
  context.log->in("size", size);
  return {slot, range.begin() + offset, size};
}

void load(Context& context) {
  const Place place = choose_place(context);
  context.log->calls();
  if (place.slot == nullptr) return;
  volatile uint64_t value = 0;
  if (guarded([&] { value = load_bytes(place.at, place.size); })) {
    context.log->hex("value", value);
  } else {
    log_caught(*context.log, *place.slot);
  }
}

void store(Context& context) {
  const Place place = choose_place(context);
  context.log->calls();
  if (place.slot == nullptr) return;
  const uint64_t value = context.random.next();
  if (!guarded([&] { store_bytes(place.at, place.size, value); })) log_caught(*context.log, *place.slot);
}

void exchange(Context& context) {
  Place place = choose_place(context);
  context.log->calls();
  if (place.slot == nullptr) return;
  auto* word = reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(place.at) & ~uintptr_t{7});
  const uint64_t more = context.random.next();
  const bool compares = context.random.percent(40);
  volatile uint64_t value = 0;
  const bool ended = guarded([&] {
    uint64_t expected = more;
    if (compares) {
      __atomic_compare_exchange_n(word, &expected, more + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      value = expected;
    } else {
      value = __atomic_fetch_add(word, more, __ATOMIC_SEQ_CST);
    }
  });
  if (ended) {
    context.log->hex("value", value);
  } else {
    log_caught(*context.log, *place.slot);
  }
}

Range range_of_any(Context& context, uint32_t pages_max) {
  Slot* slot = choose_slot(context.random, kOfAll, context.groups);
  if (slot == nullptr) return {nullptr, 0, 0};
  const Range range = choose_range(context.random, *slot, pages_max);
  log_range(context, range);
  return range;
}

void load_range(Context& context) {
  const bool whole = context.random.percent(30);
  const Range range = range_of_any(context, whole ? 32 : kPagesMax);
  context.log->calls();
  if (range.slot != nullptr) load_pages(context, range, whole);
}

void store_range(Context& context) {
  const bool whole = context.random.percent(30);
  const Range range = range_of_any(context, whole ? 32 : kPagesMax);
  context.log->calls();
  if (range.slot != nullptr) store_pages(context, range, whole);
}

// The string instructions, which stop within a range and say where.
void copy_by_instruction(Context& context) {
  const Range range = range_of_any(context, 4);
  context.log->calls();
  if (range.slot == nullptr) return;
  char* bytes = scratches[range.slot->group].bytes;
  const bool stores = context.random.percent(50);
  const uint64_t value = context.random.next();
  const bool ended = guarded([&] {
    char* to = stores ? range.begin() : bytes;
    const char* from = stores ? bytes : range.begin();
    size_t count = range.bytes();
    if (stores) std::memset(bytes, static_cast<int>(value), count);
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count)::"memory");
  });
  if (!ended) log_caught(*context.log, *range.slot);
  if (ended && !stores) {
    uint64_t sum = 0;
    for (size_t at = 0; at < range.bytes(); at += 8) sum = mixed(sum, load_one<uint64_t>(bytes + at));
    context.log->hex("sum", sum);
  }
}

}  // namespace

void load_pages(Context& context, const Range& range, bool whole) {
  const uint32_t stride = whole ? 8 : 1024;
  const uint32_t first = static_cast<uint32_t>(context.random.below(stride / 8)) * 8;
  uint64_t sum = 0;
  const uint32_t end = range.page + range.pages;
  for (uint32_t page = range.page; page < end; ++page) {
    const char* at = range.slot->at(page);
    volatile uint64_t of_page = 0;
    const bool ended = guarded([&] {
      uint64_t loaded = 0;
      for (uint32_t offset = first; offset < kPage; offset += stride)
        loaded = mixed(loaded, load_one<uint64_t>(at + offset));
      of_page = loaded;
    });
    if (ended) {
      sum = mixed(sum, of_page);
    } else {
      log_caught(*context.log, *range.slot);
      page += run_from(*range.slot, page, end - page) - 1;
    }
  }
  context.log->hex("sum", sum);
}

void store_pages(Context& context, const Range& range, bool whole) {
  const uint32_t stride = whole ? 8 : 1024;
  const uint32_t first = static_cast<uint32_t>(context.random.below(stride / 8)) * 8;
  const uint64_t value = context.random.next();
  const uint32_t end = range.page + range.pages;
  for (uint32_t page = range.page; page < end; ++page) {
    char* at = range.slot->at(page);
    const bool ended = guarded([&] {
      for (uint32_t offset = first; offset < kPage; offset += stride)
        store_one<uint64_t>(at + offset, value + page * kPage + offset);
    });
    if (!ended) {
      log_caught(*context.log, *range.slot);
      page += run_from(*range.slot, page, end - page) - 1;
    }
  }
}

void rewrite_pages(Context& context, const Range& range) {
  const uint64_t value = context.random.next();
  for (uint32_t page = range.page; page < range.page + range.pages; ++page) {
    char* at = range.slot->at(page);
    guarded([&] {
      for (uint32_t offset = 0; offset < kPage; offset += 8)
        store_one<uint64_t>(at + offset, value + page * kPage + offset);
    });
  }
}

bool accessible(const Range& range, bool stores) {
  volatile bool all = true;
  for (uint32_t page = range.page; page < range.page + range.pages; ++page) {
    volatile char* at = range.slot->at(page);
    all = guarded([&] {
            const char value = *at;
            if (stores) *at = value;
          }) &&
          all;
  }
  return all;
}

void probe_range(Context& context, const Range& range) {
  if (context.random.percent(50)) {
    load_pages(context, range, false);
  } else {
    store_pages(context, range, false);
  }
}

const Operation access_operations[] = {
    {"load", 300, load, false},
    {"store", 300, store, false},
    {"exchange", 40, exchange, false},
    {"load_range", 60, load_range, false},
    {"store_range", 90, store_range, false},
    {"copy_by_instruction", 20, copy_by_instruction, false},
    {nullptr, 0, nullptr, false},
};

}  // namespace torture
