// Read-ahead of clients' streams (partition/stream_detector.h): what is asked for, group by group, and what need not be
// kept in mind any more.
#include <algorithm>

#include "cache/shared_cache.h"

namespace spw::cache {

namespace {
// Windows of fewer blocks are read ahead without a marker: the miss behind them comes soon enough.
constexpr uint32_t kMarkedWindowMin = 8;
}  // namespace

// The part of the plan that the client may ask for by itself, where that is said. The rest of a window that goes on
// upwards is left to be asked for; of others nothing is, which costs a miss there.
ReadPlan SharedCacheParts::within_reach(Client& client, ReadPlan plan) const {
  if (plan.stride == 1 && uint64_t{plan.count} << context_.options.block_shift >= kLongStreamBytes)
    client.stream_end = plan.first + plan.count;
  if (!client.reach.is_given()) return plan;
  const uint64_t first = client.reach.first.value, end = client.reach.end.value, at = plan.first.value;
  const auto step = static_cast<uint64_t>(plan.stride > 0 ? plan.stride : -plan.stride);
  const uint64_t room =
      at < first || at >= end ? 0 : (plan.stride > 0 ? end - 1 - at : at - first) / step + 1;
  if (plan.stride == 1 && plan.count > room) client.beyond = {plan.first + room, plan.count - room};
  plan.count = static_cast<uint32_t>(std::min<uint64_t>(plan.count, room));
  return plan;
}

// Hands the plan to the partitions of its blocks. What cannot be asked for now (no operation or staging is left, enough
// is read ahead, or the client waits for nobody) is left to the stream to ask for again.
void SharedCacheParts::read_ahead(Client& client, ReadPlan plan, Access access) {
  if (plan.skipped > 0 && client.uses == Uses::kSeen) end_ahead(plan);
  plan = within_reach(client, plan);
  if (plan.count == 0) return;
  const bool is_marked = client.uses == Uses::kUnseen && plan.count >= kMarkedWindowMin;
  const auto to_middle = static_cast<uint64_t>(plan.stride * int64_t{plan.count / 2});
  client.request.marker = is_marked ? BlockId(plan.first.value + to_middle) : kNoBlock;
  const uint32_t done = read_ahead_whole(client, plan, access);
  client.request.marker = kNoBlock;
  if (done < plan.count) client.streams.fell_short(plan, done);
}

// Group by group, each in ascending order. How many blocks of the
// plan could be asked for; of a descending one, all or none.
uint32_t SharedCacheParts::read_ahead_whole(Client& client, ReadPlan plan, Access access) {
  const bool descends = plan.stride < 0;
  const uint32_t wanted = plan.count;
  if (descends) {
    plan.first = BlockId(plan.first.value + static_cast<uint64_t>(plan.stride) * (plan.count - 1));
    plan.stride = -plan.stride;
  }
  auto stride = static_cast<uint64_t>(plan.stride);
  while (plan.count > 0) {
    uint64_t group_end = (group_of(plan.first) + 1) << kGroupShift;
    uint64_t in_group = (group_end - plan.first.value + stride - 1) / stride;
    uint64_t piece = std::min<uint64_t>(in_group, plan.count);
    Request& request = client.request;
    request.wish = Wish::kPrefetch;
    request.access = access;
    request.block = plan.first;
    request.stride = plan.stride;
    request.count = piece;
    request.uses_seen = client.uses == Uses::kSeen;
    if (!ask(client, partition_of(plan.first))) break;
    plan.count -= static_cast<uint32_t>(request.cursor);
    if (request.cursor < piece) break;
    plan.first = BlockId(plan.first.value + piece * stride);
  }
  if (descends) return plan.count > 0 ? 0 : wanted;
  return wanted - plan.count;
}

// What a stream has skipped it will not use, and there may be no more than so much that is read ahead and not used: a
// stream with gaps would soon have nothing read ahead for it. What is still being read is left out.
void SharedCacheParts::end_ahead(const ReadPlan& plan) {
  for (uint32_t i = 0; i < plan.skipped; ++i) {
    const BlockId block(plan.skipped_first.value + i * static_cast<uint64_t>(plan.stride));
    const FrameId frame = directory_.find(block);
    if (frame == kNoFrame) continue;
    AtomicPinWord& pin_word = directory_.word(frame);
    PinWord word = pin_word.load_relaxed();
    while (word.holds(block) && word.state() == FrameState::kResident && word.ahead())
      if (pin_word.cas_acquire(word, word.without(PinWord::kAhead))) {
        partition_of(block).organisation().ahead_used();
        break;
      }
  }
}

}  // namespace spw::cache
