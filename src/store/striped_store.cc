#include "store/striped_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

// What the step has moved when all parts are done. What of a write
// lies behind the end counts: there is nothing to be moved.
int64_t bytes_moved(const RawIo& io, const Parts& parts) {
  if (io.op != Op::kRead) return static_cast<int64_t>(io.bytes);
  uint64_t bytes = 0;
  for (const auto& part : parts) bytes += part->request.bytes();
  return static_cast<int64_t>(bytes);
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
  Parts take() {
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
  Parts open_;  // by member
  Parts done_;
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

Parts StripedStore::split(const RawIo& io) const {
  Parts parts;
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

int StripedStore::deal(PartedStep& step, Parts& parts) {
  if (is_stopped()) return EBADF;
  parts = split(step.io);
  step.bytes = bytes_moved(step.io, parts);
  return 0;
}

void StripedStore::submit(std::unique_ptr<StripePart> part) {
  StripeMember& member = *members_[part->member];
  member.submit(std::move(part));
}

int StripedStore::transfer_part(StripePart& part) {
  StripeMember& member = *members_[part.member];
  const int error = end_part(part, member.store().transfer(part.request).error());
  if (error != 0) member.note_failure();
  return error;
}

int StripedStore::end_part(StripePart& part, int error) {
  return outcome_of(part, members_[part.member]->store(), error);
}

Result<std::unique_ptr<IoQueue>> StripedStore::open_queue(size_t depth) {
  PartedStore& parted = *this;
  auto engine = std::make_unique<PartedEngine>(depth, parted);
  return std::unique_ptr<IoQueue>(std::make_unique<TransferQueue>(std::move(engine), target_, depth));
}

Status StripedStore::transfer(Request& request) {
  Progress progress;
  int error =
      transfer_now(progress, request, target_, [this](const RawIo& io) { return run_parted(*this, io); });
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
