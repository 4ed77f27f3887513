#include "libc/system_calls/native_call.h"

#include <errno.h>
#include <sys/syscall.h>

#include <array>

#include "libc/bytes/strings.h"
#include "libc/managed.h"
#include "libc/map/parts.h"
#include "libc/real.h"
#include "libc/signals/fault_signal.h"
#include "libc/waits/waits.h"

namespace spw::libc {

namespace {

using Kind = ArgumentRule::Kind;

constexpr uint16_t kHeaderBytes = 8;

constexpr ArgumentRule text(uint8_t index) { return {Kind::kText, index}; }
constexpr ArgumentRule in(uint8_t index, uint16_t bytes) {
  return {Kind::kIn, index, ArgumentRule::kNoCount, bytes};
}
constexpr ArgumentRule out(uint8_t index, uint16_t bytes) {
  return {Kind::kInOut, index, ArgumentRule::kNoCount, bytes};
}
constexpr ArgumentRule in_each(uint8_t index, uint16_t bytes, uint8_t count) {
  return {Kind::kIn, index, count, bytes};
}
constexpr ArgumentRule out_each(uint8_t index, uint16_t bytes, uint8_t count) {
  return {Kind::kInOut, index, count, bytes};
}
constexpr ArgumentRule in_after(uint8_t index, uint16_t bytes, uint8_t count) {
  return {Kind::kIn, index, count, bytes, kHeaderBytes};
}
constexpr ArgumentRule out_after(uint8_t index, uint16_t bytes, uint8_t count) {
  return {Kind::kInOut, index, count, bytes, kHeaderBytes};
}
constexpr ArgumentRule room(uint8_t index, uint8_t count) { return {Kind::kInOutRoom, index, count, 1}; }
constexpr ArgumentRule descriptors(uint8_t index, uint8_t count) {
  return {Kind::kDescriptorSet, index, count};
}
constexpr ArgumentRule mask(uint8_t index) { return {Kind::kMask, index}; }
constexpr ArgumentRule mask_and_bytes(uint8_t index) { return {Kind::kMaskAndBytes, index}; }

constexpr CallRule kRules[] = {
#define SPW_SYSTEM_CALL(name, ...) {SYS_##name, {__VA_ARGS__}},
#include "libc/system_calls/native_call_rules.inc"
#undef SPW_SYSTEM_CALL
};

constexpr size_t kNumbers = 512;
constexpr uint8_t kNoRule = 255;
static_assert(std::size(kRules) < kNoRule);
constexpr auto kRuleOf = [] {
  std::array<uint8_t, kNumbers> rule_of{};
  rule_of.fill(kNoRule);
  for (size_t i = 0; i < std::size(kRules); ++i) rule_of[kRules[i].number] = static_cast<uint8_t>(i);
  return rule_of;
}();

// A caller that says too much gets what the kernel would give it for an address that is not there.
constexpr size_t kCopyBytesMax = size_t{1} << 30;

bool is_live(const void* address, size_t bytes) {
  const Context* c = context();
  return c != nullptr && bytes <= kCopyBytesMax &&
         c->regions->is_live(reinterpret_cast<uintptr_t>(address), bytes);
}

size_t bytes_of(const ArgumentRule& rule, const CallArguments& arguments) {
  if (rule.count == ArgumentRule::kNoCount) return rule.bytes;
  const long count = arguments[rule.count];
  if (rule.kind == Kind::kDescriptorSet) {
    constexpr long kWordBits = 64;
    return count <= 0
               ? 0
               : static_cast<size_t>((static_cast<int>(count) + kWordBits - 1) / kWordBits) * sizeof(long);
  }
  if (rule.kind == Kind::kInOutRoom) {
    const auto* room = reinterpret_cast<const int*>(count);
    const int bytes = room == nullptr ? 0 : load_value(room);
    return bytes <= 0 ? 0 : static_cast<size_t>(bytes);
  }
  // Counts are int or unsigned in all of these that would have to be told apart from sizes.
  if (count <= 0) return rule.more_bytes;
  return rule.more_bytes + static_cast<size_t>(count) * rule.bytes;
}

}  // namespace

const CallRule* rule_of(long number) {
  if (number < 0 || static_cast<size_t>(number) >= kNumbers) return nullptr;
  const uint8_t found = kRuleOf[static_cast<size_t>(number)];
  return found == kNoRule ? nullptr : &kRules[found];
}

NativeArguments::NativeArguments(const CallRule& rule, CallArguments& arguments) {
  // What is told by another argument is looked up before that is replaced: rules stand in this order.
  for (const ArgumentRule& each : rule.arguments)
    if (each.kind != Kind::kNone && arguments[each.index] != 0 && error_ == 0) copy(each, arguments);
}

NativeArguments::~NativeArguments() {
  const int saved_errno = errno;
  for (unsigned i = 0; i < count_; ++i) {
    const Copy& each = copies_[i];
    if (each.is_out && error_ == 0) copy_bytes(each.program, each.native, each.bytes);
    if (!is_inline(each.native)) libc_free(each.native);
  }
  errno = saved_errno;
}

bool NativeArguments::is_inline(const void* native) const {
  return reinterpret_cast<uintptr_t>(native) - reinterpret_cast<uintptr_t>(inline_) < kInlineBytes;
}

void NativeArguments::copy(const ArgumentRule& rule, CallArguments& arguments) {
  if (rule.kind == Kind::kMask || rule.kind == Kind::kMaskAndBytes) return copy_mask(rule, arguments);
  auto* program = reinterpret_cast<char*>(arguments[rule.index]);
  if (!kernel_cannot_reach(program)) return;
  const bool is_text = rule.kind == Kind::kText;
  if (reachable_bytes(program, 1, false) == 0) {
    error_ = EFAULT;
    return;
  }
  const size_t bytes = is_text ? string_length(program) + 1 : bytes_of(rule, arguments);
  if (bytes == 0) return;
  void* native = copied(program, bytes, !is_text && rule.kind != Kind::kIn);
  if (native != nullptr) arguments[rule.index] = reinterpret_cast<long>(native);
}

void* NativeArguments::copied(const void* program, size_t bytes, bool is_out) {
  if (bytes > kCopyBytesMax || reachable_bytes(program, bytes, is_out) < bytes) {
    error_ = EFAULT;
    return nullptr;
  }
  const size_t wanted = round_up(bytes, alignof(max_align_t));
  void* native = wanted <= kInlineBytes - used_ ? inline_ + used_ : libc_malloc(bytes);
  if (native == nullptr) {
    error_ = ENOMEM;
    return nullptr;
  }
  if (is_inline(native)) used_ += wanted;
  copies_[count_++] = {const_cast<void*>(program), native, bytes, is_out};
  copy_bytes(native, program, bytes);
  return native;
}

// Whatever is not there the kernel finds out by itself.
void NativeArguments::copy_mask(const ArgumentRule& rule, CallArguments& arguments) {
  const auto reach = [&](const void* p, size_t bytes) { return reachable_bytes(p, bytes, false) == bytes; };
  const void* mask = reinterpret_cast<const void*>(arguments[rule.index]);
  if (rule.kind == Kind::kMaskAndBytes) {
    if (!reach(mask, sizeof mask_and_bytes_)) return;
    copy_bytes(mask_and_bytes_, mask, sizeof mask_and_bytes_);
    arguments[rule.index] = reinterpret_cast<long>(mask_and_bytes_);
    mask = reinterpret_cast<const void*>(mask_and_bytes_[0]);
    if (mask == nullptr) return;
  }
  if (!reach(mask, sizeof mask_)) return;
  copy_bytes(&mask_, mask, sizeof mask_);
  mask_ = without_fault_signals(mask_);
  (rule.kind == Kind::kMaskAndBytes ? mask_and_bytes_[0] : arguments[rule.index]) =
      reinterpret_cast<long>(&mask_);
}

KeptArguments::KeptArguments(const CallArguments& arguments) {
  const Context* c = context();
  if (c == nullptr || !c->in_place) return;
  for (const long argument : arguments) {
    const auto address = static_cast<uintptr_t>(argument);
    if (!kernel_cannot_reach(reinterpret_cast<const void*>(address))) continue;
    keep(address);
    keep(round_down(address, c->regions->block_bytes()) + c->regions->block_bytes());
  }
}

KeptArguments::~KeptArguments() {
  while (count_ > 0) let_go(windows_[--count_]);
}

// Where the kernel may store, it is let: a page that only takes loads fails the call like one that is missing.
void KeptArguments::keep(uintptr_t address) {
  const auto* object = reinterpret_cast<const void*>(address);
  if (!is_managed(object) || !is_live(object, 1)) return;
  access::Window& window = windows_[count_];
  if (keep_in_place(object, &window, cache::Access::kWrite) || keep_in_place(object, &window)) {
    ++count_;
    return;
  }
  // As many are kept as may be. It is there now, and most likely for as long as it takes.
  const int saved_errno = errno;
  context()->access->unpin(context()->access->pin(address, 1, cache::Access::kRead));
  errno = saved_errno;
}

}  // namespace spw::libc
