#include "store/balanced/shares.h"

#include <algorithm>
#include <bit>

#include "base/units.h"

namespace spw::store {

namespace {
// The time that requests take on all members changes more slowly than that on one.
constexpr double kTypicalSamples = 256;
}  // namespace

Atomic<double>& Shares::typical(Op op, uint64_t bytes) {
  const uint64_t pages = std::max<uint64_t>(bytes / kMmuPageBytes, 1);
  const unsigned size_class =
      std::min<unsigned>(static_cast<unsigned>(std::bit_width(pages)) - 1, kClasses - 1);
  return typical_ns_[(op == Op::kWrite ? kClasses : 0) + size_class];
}

void Shares::ended(size_t member, Op op, uint64_t bytes, uint64_t ns, bool ok) {
  Member& of = members_[member];
  of.under_way.fetch_sub_relaxed(1);
  if (!ok) return;
  const double took = std::max<double>(static_cast<double>(ns), 1);
  if (op == Op::kRead) {
    const double read_ns = of.read_ns.load_relaxed();
    of.read_ns.store_relaxed(read_ns == 0 ? took : read_ns + (took - read_ns) / kSamples);
  }
  Atomic<double>& typical_ns = typical(op, bytes);
  const double before = typical_ns.load_relaxed();
  const double usual = before == 0 ? took : before + (took - before) / kTypicalSamples;
  typical_ns.store_relaxed(usual);
  const double ratio = std::clamp(took / usual, 1 / kRatioMax, kOutlierMax);
  const uint32_t samples = std::min(of.samples.load_relaxed() + 1, kSamples);
  of.samples.store_relaxed(samples);
  const double slowness = of.slowness.load_relaxed();
  of.slowness.store_relaxed(slowness + (ratio - slowness) / samples);
}

std::optional<size_t> Shares::choose(uint32_t eligible) {
  double least = 0;
  for (size_t i = 0; i < count_; ++i) {
    const double slowness = members_[i].slowness.load_relaxed();
    if ((eligible >> i & 1) != 0 && slowness > 0 && (least == 0 || slowness < least)) least = slowness;
  }
  // Who has not answered yet counts as fast, so that it is asked.
  if (least == 0) least = 1;
  std::array<double, kStripedMembersMax> weights{};
  double sum = 0;
  for (size_t i = 0; i < count_; ++i) {
    if ((eligible >> i & 1) == 0) continue;
    const double slowness = std::clamp(members_[i].slowness.load_relaxed(), least, kRatioMax * least);
    weights[i] = 1 / (slowness * (members_[i].under_way.load_relaxed() + 1));
    sum += weights[i];
  }
  std::optional<size_t> chosen;
  for (size_t i = 0; i < count_; ++i) {
    if ((eligible >> i & 1) == 0) continue;
    members_[i].credit += weights[i] / sum;
    if (!chosen || members_[i].credit > members_[*chosen].credit) chosen = i;
  }
  if (chosen) members_[*chosen].credit -= 1;
  return chosen;
}

void Shares::in_child() {
  for (Member& member : members_) member.under_way.store_relaxed(0);
}

}  // namespace spw::store
