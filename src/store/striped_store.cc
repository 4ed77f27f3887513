#include "store/striped_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/engine/mailbox.h"
#include "store/engine/transfer_queue.h"
#include "store/striped/stripe_member.h"

namespace spw::store {

namespace {

// The outcome of a part that its member was asked for. A store that grows may have become shorter since its step was
// dealt out: what lies behind the end is not written, and reads as zeros.
int outcome_of(const StripePart& part, const Store& member, int error) {
  const Request& request = part.request;
  if (error != EINVAL || request.op == Op::kSync || request.offset_bytes < member.size_bytes()) return error;
  if (request.op == Op::kRead)
    for (uint32_t i = 0; i < request.segment_count; ++i)
      std::memset(request.segments[i].iov_base, 0, request.segments[i].iov_len);
  return 0;
}

// A step whose parts are under way. Whoever finishes the last part puts its result into the mailbox.
struct StripedStep {
  StripedStore* store = nullptr;
  Mailbox* mailbox = nullptr;
  uint32_t slot = 0;
  int64_t bytes = 0;
  Atomic<size_t> parts_left{0};
  Atomic<int> error{0};  // of one of the parts that failed
};

void part_over(StripePart& part, int error) {
  auto& step = *static_cast<StripedStep*>(part.owner);
  error = outcome_of(part, step.store->member(part.member).store(), error);
  if (error != 0) step.error.store_relaxed(error);
  // Release: the part's error and data; acquire: all the other parts'.
  if (step.parts_left.fetch_sub_acq_rel(1) > 1) return;
  int failed = step.error.load_relaxed();
  step.mailbox->put({step.slot, failed != 0 ? -failed : step.bytes, failed != 0});
}

// What the step has moved when all parts are done. What of a write
// lies behind the end counts: there is nothing to be moved.
int64_t bytes_moved(const RawIo& io, const std::vector<std::unique_ptr<StripePart>>& parts) {
  if (io.op != Op::kRead) return static_cast<int64_t>(io.bytes);
  uint64_t bytes = 0;
  for (const auto& part : parts) bytes += part->request.bytes();
  return static_cast<int64_t>(bytes);
}

void start_step(StripedStore& store, StripedStep& step, const RawIo& io,
                std::vector<std::unique_ptr<StripePart>> parts, Mailbox& mailbox) {
  if (store.is_stopped()) return mailbox.put({io.slot, -EBADF, true});
  step.store = &store;
  step.mailbox = &mailbox;
  step.slot = io.slot;
  step.bytes = bytes_moved(io, parts);
  if (parts.empty()) return mailbox.put({io.slot, step.bytes});
  step.error.store_relaxed(0);
  step.parts_left.store_relaxed(parts.size());  // released by the mutex of submit()
  for (auto& part : parts) {
    part->over = &part_over;
    part->owner = &step;
    store.member(part->member).submit(std::move(part));
  }
}

class StripedEngine final : public IoEngine {
 public:
  StripedEngine(size_t depth, StripedStore& store) : store_(store), mailbox_(depth), steps_(depth) {}
  void issue(std::span<const RawIo> ios) override {
    for (const RawIo& io : ios) start_step(store_, steps_[io.slot], io, store_.split(io), mailbox_);
  }
  size_t harvest(std::span<RawResult> out) override { return mailbox_.take(out); }
  void wait(uint64_t timeout_ns) override { mailbox_.wait(timeout_ns); }
  void wake() override { mailbox_.wake(); }

 private:
  StripedStore& store_;
  Mailbox mailbox_;
  std::vector<StripedStep> steps_;  // by slot
};

std::unique_ptr<StripePart> new_part(Op op, uint64_t member, uint64_t offset_bytes) {
  auto part = std::make_unique<StripePart>();
  part->member = member;
  part->request.op = op;
  part->request.offset_bytes = offset_bytes;
  return part;
}

// Deals the segments of a transfer's first `bytes` out to the members. Pieces are multiples of the alignment, for which
// there is room in the segments: the last one may stick out of the store's end, and so out of its member's.
class Dealer {
 public:
  Dealer(const Stripes& stripes, Op op, uint64_t alignment_bytes)
      : stripes_(stripes), op_(op), alignment_bytes_(alignment_bytes), open_(stripes.members) {}

  void deal(const RawIo& io, uint64_t bytes) {
    uint64_t at = io.offset_bytes;
    for (uint32_t i = 0; i < io.segment_count && bytes > 0; ++i) {
      auto* data = static_cast<std::byte*>(io.segments[i].iov_base);
      uint64_t left = std::min<uint64_t>(io.segments[i].iov_len, bytes);
      bytes -= left;
      while (left > 0) {
        uint64_t length = std::min(left, stripes_.rest_of_chunk(at));
        add(at, data, round_up(length, alignment_bytes_));
        at += length;
        data += length;
        left -= length;
      }
    }
  }
  std::vector<std::unique_ptr<StripePart>> take() {
    for (auto& part : open_)
      if (part) done_.push_back(std::move(part));
    return std::move(done_);
  }

 private:
  // A member's bytes follow one another there, so they go to its open part until that has all the segments it can.
  void add(uint64_t at, std::byte* data, uint64_t length) {
    uint64_t member = stripes_.member_of(at);
    auto& part = open_[member];
    if (part && part->request.segment_count == kSegmentsMax) done_.push_back(std::exchange(part, nullptr));
    if (!part) part = new_part(op_, member, stripes_.offset_in_member(member, at));
    part->request.segments[part->request.segment_count++] = {data, length};
  }

  const Stripes& stripes_;
  const Op op_;
  const uint64_t alignment_bytes_;
  std::vector<std::unique_ptr<StripePart>> open_;  // by member
  std::vector<std::unique_ptr<StripePart>> done_;
};

}  // namespace

StripedStore::StripedStore() = default;
StripedStore::~StripedStore() = default;

Result<std::unique_ptr<StripedStore>> StripedStore::create(std::vector<std::unique_ptr<Store>> members,
                                                           uint64_t chunk_bytes, FaultPlan* faults,
                                                           Growth* growth) {
  auto refused = [](const std::string& why) { return Status::sentence(EINVAL, "a striped store " + why); };
  if (members.size() < 2 || members.size() > kStripedMembersMax)
    return refused("has 2 to " + std::to_string(kStripedMembersMax) + " members, not " +
                   std::to_string(members.size()));
  uint64_t alignment = kMmuPageBytes, smallest = UINT64_MAX;
  for (const auto& member : members) {
    alignment = std::max(alignment, member->alignment_bytes());
    smallest = std::min(smallest, member->size_bytes());
  }
  if (chunk_bytes % alignment != 0 || chunk_bytes == 0 || chunk_bytes > kGiB)
    return refused("needs a chunk that is a multiple of " + format_size(alignment) + " up to " +
                   format_size(kGiB) + ", not " + format_size(chunk_bytes));
  if (growth == nullptr && smallest < chunk_bytes)
    return refused("needs members of at least one chunk, " + format_size(chunk_bytes) + "; one has " +
                   format_size(smallest));
  std::unique_ptr<StripedStore> store(new StripedStore);
  store->stripes_ = {chunk_bytes, members.size()};
  store->target_.size_bytes = smallest / chunk_bytes * chunk_bytes * members.size();
  store->target_.alignment_bytes = alignment;
  store->target_.counts_requests = false;
  store->target_.faults = faults;
  store->target_.growth = growth;
  for (auto& member : members) {
    auto started = StripeMember::start(std::move(member));
    if (!started) return started.status();
    store->members_.push_back(std::move(*started));
  }
  return store;
}

std::string StripedStore::describe() const {
  std::string text = "striped over " + std::to_string(members_.size()) + " in chunks of " +
                     format_size(stripes_.chunk_bytes) + ":";
  for (const auto& member : members_) text += " " + member->store().describe();
  return text;
}

std::string StripedStore::describe_at(uint64_t offset_bytes) const {
  // Of a request that concerned several members, the one that failed is meant.
  uint64_t index = stripes_.member_of(offset_bytes);
  if (!members_[index]->has_failed()) {
    auto failed = std::ranges::find_if(members_, [](const auto& member) { return member->has_failed(); });
    if (failed != members_.end()) index = static_cast<uint64_t>(failed - members_.begin());
  }
  return "member " + std::to_string(index + 1) + " of " + std::to_string(members_.size()) +
         " of a striped store, " +
         members_[index]->store().describe_at(stripes_.offset_in_member(index, offset_bytes)) + ",";
}

std::vector<std::unique_ptr<StripePart>> StripedStore::split(const RawIo& io) const {
  std::vector<std::unique_ptr<StripePart>> parts;
  if (io.op == Op::kSync) {
    for (uint64_t member = 0; member < stripes_.members; ++member)
      parts.push_back(new_part(Op::kSync, member, 0));
    return parts;
  }
  // Behind the store's end there is nothing; a request may stick out of it, and one that grows be shorter by now.
  const uint64_t size = size_bytes();
  const uint64_t bytes = io.offset_bytes < size ? std::min(io.bytes, size - io.offset_bytes) : 0;
  if (io.op != Op::kDiscard) {
    Dealer dealer(stripes_, io.op, target_.alignment_bytes);
    dealer.deal(io, bytes);
    return dealer.take();
  }
  const uint64_t end = io.offset_bytes + round_up(bytes, target_.alignment_bytes);
  for (uint64_t member = 0; member < stripes_.members; ++member) {
    uint64_t from = stripes_.offset_in_member(member, io.offset_bytes);
    uint64_t upto = stripes_.offset_in_member(member, end);
    if (from == upto) continue;
    parts.push_back(new_part(Op::kDiscard, member, from));
    parts.back()->request.discard_bytes = upto - from;
  }
  return parts;
}

Result<std::unique_ptr<IoQueue>> StripedStore::open_queue(size_t depth) {
  auto engine = std::make_unique<StripedEngine>(depth, *this);
  return std::unique_ptr<IoQueue>(std::make_unique<TransferQueue>(std::move(engine), target_, depth));
}

// Does a step in the calling thread, or, when it concerns several members, waits for their threads.
RawResult StripedStore::run(const RawIo& io) {
  auto parts = split(io);
  if (parts.size() == 1 && !is_stopped()) {
    StripeMember& only = *members_[parts[0]->member];
    const Status status = only.store().transfer(parts[0]->request);
    const int error = outcome_of(*parts[0], only.store(), status.error());
    if (error == 0) return {io.slot, bytes_moved(io, parts)};
    only.note_failure();
    return {io.slot, -error, true};
  }
  Mailbox mailbox(1);
  StripedStep step;
  start_step(*this, step, io, std::move(parts), mailbox);
  RawResult result;
  while (mailbox.take({&result, 1}) == 0) mailbox.wait(platform::kNoTimeout);
  return result;
}

Status StripedStore::transfer(Request& request) {
  Progress progress;
  int error = transfer_now(progress, request, target_, [this](const RawIo& io) { return run(io); });
  return error == 0 ? Status::ok() : transfer_failed(error, request, describe_at(request.offset_bytes));
}

void StripedStore::rest() {
  for (auto& member : members_) member->rest();
}

Status StripedStore::go_on() {
  for (auto& member : members_)
    if (Status status = member->go_on(); !status) return status;
  stopped_.store_release(false);
  return {};
}

Status StripedStore::reserve(uint64_t offset_bytes, uint64_t bytes) {
  const uint64_t end = std::min(offset_bytes + bytes, size_bytes());
  for (uint64_t index = 0; index < stripes_.members; ++index) {
    uint64_t from = stripes_.offset_in_member(index, offset_bytes);
    uint64_t upto = stripes_.offset_in_member(index, end);
    if (from == upto) continue;
    if (Status status = members_[index]->store().reserve(from, upto - from); !status) return status;
  }
  return Status::ok();
}

}  // namespace spw::store
