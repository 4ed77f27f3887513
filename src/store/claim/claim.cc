#include "store/claim/claim.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/units.h"
#include "platform/memory.h"
#include "store/claim/known_contents.h"
#include "store/transfer.h"

namespace spw::store {

namespace {

constexpr uint64_t kHeaderBytes = 4096;
constexpr uint64_t kTextBytesMax = kHeaderBytes - sizeof(uint64_t);
static_assert(kKnownBytes == kClaimBytes);

// FNV-1a: it has to tell a header from what somebody else has put there, and from half of one.
uint64_t sum_of(std::span<const std::byte> bytes) {
  uint64_t sum = 0xCBF29CE484222325;
  for (const std::byte each : bytes) sum = (sum ^ static_cast<uint64_t>(each)) * 0x100000001B3;
  return sum;
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; });
}

bool is_ours(std::span<const std::byte> begin) {
  uint64_t sum = 0;
  std::memcpy(&sum, begin.data() + kTextBytesMax, sizeof sum);
  return std::memcmp(begin.data(), kClaimMagic.data(), kClaimMagic.size()) == 0 &&
         sum == sum_of(begin.first(kTextBytesMax)) && is_zero(begin.subspan(kHeaderBytes));
}

void put_header(std::span<std::byte> begin) {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  const std::string text = std::string(kClaimMagic) + "Process " + std::to_string(::getpid()) + " (" +
                           program_invocation_short_name + ") on " + host +
                           " put here what did not fit in its memory. Once it has ended, "
                           "nothing of it is of use to anybody.\n";
  std::ranges::fill(begin, std::byte{0});
  std::memcpy(begin.data(), text.data(), std::min<size_t>(text.size(), kTextBytesMax));
  const uint64_t sum = sum_of(begin.first(kTextBytesMax));
  std::memcpy(begin.data() + kTextBytesMax, &sum, sizeof sum);
}

Status refused(const std::string& name, std::string_view what) {
  return Status::sentence(EINVAL, name + ": it holds " + std::string(what) +
                                      ", which what is spilled would overwrite; to have that happen, put " +
                                      (name.find('?') == name.npos ? "?" : "&") +
                                      std::string(kOverwriteParameter) + "=yes behind its name");
}

// What the end of the store holds; its last bytes may be fewer than a block.
Result<std::string_view> known_behind(Store& store, std::span<std::byte> memory) {
  const uint64_t from = round_up(store.size_bytes() - kKnownBytes, store.alignment_bytes());
  if (Status status = transfer(store, Op::kRead, from, memory); !status) return status;
  return known_at_end(memory.first(store.size_bytes() - from), store.size_bytes());
}

Status claim_contents(Store& store, const std::string& name, Overwrite overwrite) {
  if (store.size_bytes() <= 2 * kClaimBytes)
    return Status::sentence(
        EINVAL, name + ": with " + format_size(store.size_bytes()) + " it is too small to spill to");
  auto mapping = platform::map_anonymous(kClaimBytes);
  if (!mapping) return mapping.status();
  const std::span<std::byte> memory(mapping->data(), kClaimBytes);
  if (overwrite == Overwrite::kNo) {
    if (Status status = transfer(store, Op::kRead, 0, memory); !status) return status;
    if (!is_ours(memory)) {
      if (const std::string_view known = known_at_begin(memory); !known.empty()) return refused(name, known);
      if (!is_zero(memory)) return refused(name, "data that is not Spillway's");
      auto known = known_behind(store, memory);
      if (!known) return known.status();
      if (!known->empty()) return refused(name, *known);
    }
  }
  put_header(memory);
  return transfer(store, Op::kWrite, 0, memory);
}

}  // namespace

Result<Overwrite> overwrite_of(const std::string* value, const std::string& whole) {
  if (value == nullptr || *value == "no") return Overwrite::kNo;
  if (*value == "yes") return Overwrite::kYes;
  return Status::sentence(EINVAL, whole + ": overwrite is yes or no, not \"" + *value + "\"");
}

std::string begins_at(const Target& target) {
  return target.begin_bytes == 0 ? "" : ", from " + format_size(target.begin_bytes) + " on";
}

Status claim(Store& store, Target& target, const std::string& name, Overwrite overwrite) {
  FaultPlan* const faults = std::exchange(target.faults, nullptr);
  target.counts_requests = false;
  Status status = claim_contents(store, name, overwrite);
  target.counts_requests = true;
  target.faults = faults;
  if (!status) return status;
  target.begin_bytes = kClaimBytes;
  target.size_bytes -= kClaimBytes;
  return status;
}

}  // namespace spw::store
