#include "store/balanced_store.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "platform/time.h"
#include "store/engine/transfer_queue.h"
#include "store/striped/direct_parts.h"

namespace spw::store {

namespace {

bool is_no_room(int error) { return error == ENOSPC || error == EDQUOT; }
bool is_timed(Op op) { return op == Op::kRead || op == Op::kWrite; }

}  // namespace

// Deals the segments of a transfer out, in the order of its bytes. What adjoins on its member goes with what comes
// before.
class BalancedStore::Dealer {
 public:
  Dealer(Op op, size_t members, Parts& parts) : op_(op), parts_(parts), open_(members, nullptr) {}

  // The transfer's next bytes lie at `offset_bytes` of `member`; without one, a read is all zeros there.
  void add(std::optional<size_t> member, uint64_t offset_bytes, uint64_t bytes, const RawIo& io) {
    while (bytes > 0) {
      const iovec& segment = io.segments[segment_];
      auto* const data = static_cast<std::byte*>(segment.iov_base) + in_segment_;
      const uint64_t length = std::min<uint64_t>(segment.iov_len - in_segment_, bytes);
      if (member)
        add_piece(*member, offset_bytes, data, length);
      else
        std::memset(data, 0, length);
      offset_bytes += length;
      bytes -= length;
      in_segment_ += length;
      if (in_segment_ < segment.iov_len) continue;
      ++segment_;
      in_segment_ = 0;
    }
  }

 private:
  void add_piece(size_t member, uint64_t offset_bytes, std::byte* data, uint64_t length) {
    Request* open = open_[member];
    if (open == nullptr || open->segment_count == kSegmentsMax ||
        open->offset_bytes + open->bytes() != offset_bytes) {
      parts_.push_back(new_part(op_, member, offset_bytes));
      open_[member] = open = &parts_.back()->request;
    }
    open->segments[open->segment_count++] = {data, length};
  }

  const Op op_;
  Parts& parts_;
  std::vector<Request*> open_;  // by member
  uint32_t segment_ = 0;
  uint64_t in_segment_ = 0;
};

BalancedStore::~BalancedStore() = default;

Result<std::unique_ptr<BalancedStore>> BalancedStore::create(std::vector<std::unique_ptr<Store>> members,
                                                             uint64_t chunk_bytes, FaultPlan* faults) {
  auto refused = [](const std::string& why) { return Status::sentence(EINVAL, "a striped store " + why); };
  if (members.size() < 2 || members.size() > kStripedMembersMax)
    return refused("has 2 to " + std::to_string(kStripedMembersMax) + " members, not " +
                   std::to_string(members.size()));
  uint64_t alignment = kMmuPageBytes;
  for (const auto& member : members) alignment = std::max(alignment, member->alignment_bytes());
  if (chunk_bytes % alignment != 0 || chunk_bytes == 0 || chunk_bytes > kGiB)
    return refused("needs a chunk that is a multiple of " + format_size(alignment) + " up to " +
                   format_size(kGiB) + ", not " + format_size(chunk_bytes));
  for (const auto& member : members)
    if (member->size_bytes() < chunk_bytes)
      return refused("needs members of at least one chunk, " + format_size(chunk_bytes) + "; " +
                     member->describe() + " has " + format_size(member->size_bytes()));
  std::unique_ptr<BalancedStore> store(new BalancedStore(members.size()));
  store->target_.alignment_bytes = alignment;
  store->target_.counts_requests = false;
  store->target_.faults = faults;
  if (Status status = store->set_up(std::move(members), chunk_bytes); !status) return status;
  return store;
}

Status BalancedStore::set_up(std::vector<std::unique_ptr<Store>> members, uint64_t chunk_bytes) {
  chunk_bytes_ = chunk_bytes;
  uint64_t chunks = 0;
  for (auto& store : members) {
    auto member = std::make_unique<Member>();
    const uint64_t slots = std::min(store->size_bytes() / chunk_bytes, ChunkWord::kSlotsMax);
    if (Status status = member->slots.allocate(slots); !status) return status;
    chunks += slots;
    auto started = StripeMember::start(std::move(store));
    if (!started) return started.status();
    member->part = std::move(*started);
    members_.push_back(std::move(member));
  }
  chunks = std::min(chunks, kBalancedBytesMax / chunk_bytes);
  target_.size_bytes = chunks * chunk_bytes;
  return table_.allocate(chunks);
}

std::string BalancedStore::describe() const {
  uint64_t all = 0;
  for (const auto& member : members_) all += member->given.load_relaxed();
  std::string text = "striped over " + std::to_string(members_.size()) + " in chunks of " +
                     format_size(chunk_bytes_) + ", balanced:";
  for (const auto& member : members_) {
    text += " " + member->part->store().describe();
    if (all > 0) text += " " + std::to_string((100 * member->given.load_relaxed() + all / 2) / all) + " %";
    if (member != members_.back()) text += ",";
  }
  return text;
}

std::string BalancedStore::describe_at(uint64_t offset_bytes) const {
  const ChunkWord word = offset_bytes < size_bytes() ? table_.load(offset_bytes / chunk_bytes_) : ChunkWord();
  const std::string of = " of " + std::to_string(members_.size()) + " of a striped store, ";
  size_t index = word.is_assigned() ? word.member() : 0;
  // Of a request that concerned several members, the one that failed is meant.
  if (!word.is_assigned() || !members_[index]->part->has_failed()) {
    auto failed =
        std::ranges::find_if(members_, [](const auto& member) { return member->part->has_failed(); });
    if (failed != members_.end()) index = static_cast<size_t>(failed - members_.begin());
  }
  const uint64_t in_member = offset_of(word, offset_bytes % chunk_bytes_);
  return "member " + std::to_string(index + 1) + of + members_[index]->part->store().describe_at(in_member) +
         ",";
}

// Calls int visit(Piece) until one says an error.
template <class Visit>
int BalancedStore::for_each_piece(uint64_t offset_bytes, uint64_t bytes, Visit visit) const {
  const uint64_t end = offset_bytes + bytes;
  while (offset_bytes < end) {
    const uint64_t from = offset_bytes % chunk_bytes_;
    const uint64_t length = std::min(chunk_bytes_ - from, end - offset_bytes);
    if (const int error = visit(Piece{offset_bytes / chunk_bytes_, from, length}); error != 0) return error;
    offset_bytes += length;
  }
  return 0;
}

// ---- Chunks get a member ----

bool BalancedStore::empty_slot(Member& member, uint64_t slot) {
  Request request;
  request.op = Op::kDiscard;
  request.offset_bytes = slot * chunk_bytes_;
  request.discard_bytes = chunk_bytes_;
  return member.part->store().transfer(request).is_ok();
}

// On the member that is to get it, or the next one that has room. A slot that cannot be emptied is never used again.
std::optional<ChunkWord> BalancedStore::assign_in(Room room, const Piece& piece, uint64_t users, int* error) {
  const uint64_t now_ns = platform::monotonic_ns();
  uint32_t eligible = 0;
  for (size_t i = 0; i < members_.size(); ++i)
    if (room == Room::kPiece ? !shares_.has_no_room(i, now_ns) : !shares_.is_full(i, now_ns))
      eligible |= uint32_t{1} << i;
  while (const auto index = shares_.choose(eligible)) {
    Member& member = *members_[*index];
    const auto taken = member.slots.take();
    if (!taken) {
      eligible &= ~(uint32_t{1} << *index);
      continue;
    }
    if (taken->is_unclean && !empty_slot(member, taken->slot)) {
      *error = EIO;
      eligible &= ~(uint32_t{1} << *index);
      continue;
    }
    const bool whole = room == Room::kWholeChunk;
    const uint64_t from = taken->slot * chunk_bytes_ + (whole ? 0 : piece.from);
    const Status reserved = member.part->store().reserve(from, whole ? chunk_bytes_ : piece.bytes);
    if (reserved) {
      const ChunkWord word = ChunkWord::of(*index, taken->slot, whole, users);
      table_.assign(piece.chunk, word);
      member.given.fetch_add_relaxed(1);
      return word;
    }
    *error = reserved.error();
    member.slots.give_back(taken->slot, false);
    if (is_no_room(reserved.error())) shares_.note_full(*index, now_ns, !whole);
    eligible &= ~(uint32_t{1} << *index);
  }
  return std::nullopt;
}

Result<ChunkWord> BalancedStore::assign(const Piece& piece, uint64_t users) {
  int error = ENOSPC;
  auto word = assign_in(Room::kWholeChunk, piece, users, &error);
  // On a disk that is nearly full, a part of a chunk may still find room.
  if (!word) word = assign_in(Room::kPiece, piece, users, &error);
  if (!word) return Status(error, "no member of a striped store has room");
  return *word;
}

Result<ChunkWord> BalancedStore::pin_to_write(const Piece& piece) {
  if (const auto word = table_.pin(piece.chunk)) return *word;
  std::lock_guard lock(mutex_);
  if (const auto word = table_.pin(piece.chunk)) return *word;  // somebody else has been here
  return assign(piece, 1);
}

Status BalancedStore::reserve(uint64_t offset_bytes, uint64_t bytes) {
  const uint64_t end = std::min(offset_bytes + bytes, size_bytes());
  if (offset_bytes >= end) return {};
  Status status;
  for_each_piece(offset_bytes, end - offset_bytes, [&](const Piece& piece) {
    const ChunkWord seen = table_.load(piece.chunk);
    if (seen.is_assigned() && seen.is_reserved()) return 0;
    auto word = pin_to_write(piece);
    if (!word) {
      status = word.status();
      return status.error();
    }
    if (!word->is_reserved())
      status = members_[word->member()]->part->store().reserve(offset_of(*word, piece.from), piece.bytes);
    table_.unpin(piece.chunk, false);
    return status.error();
  });
  return status;
}

// ---- Requests ----

int BalancedStore::deal(PartedStep& step, Parts& parts) {
  const RawIo& io = step.io;
  step.bytes = static_cast<int64_t>(io.bytes);
  if (io.op == Op::kSync) {
    for (size_t member = 0; member < members_.size(); ++member) parts.push_back(new_part(io.op, member, 0));
    return 0;
  }
  // Behind the store's end there is nothing; a request may stick out of it.
  const uint64_t end = std::min(io.offset_bytes + io.bytes, size_bytes());
  if (io.op == Op::kDiscard) return deal_discard(step, parts, end);
  if (io.op == Op::kRead) step.bytes = static_cast<int64_t>(end - io.offset_bytes);
  Dealer dealer(io.op, members_.size(), parts);
  return for_each_piece(io.offset_bytes, end - io.offset_bytes, [&](const Piece& piece) {
    std::optional<ChunkWord> word;
    if (io.op == Op::kRead) {
      word = table_.pin(piece.chunk);
    } else {
      auto to_write = pin_to_write(piece);
      if (!to_write) return to_write.status().error();
      word = *to_write;
    }
    if (word) step.held.push_back(piece.chunk);
    dealer.add(word ? std::optional<size_t>(word->member()) : std::nullopt,
               word ? offset_of(*word, piece.from) : 0, piece.bytes, io);
    return 0;
  });
}

int BalancedStore::deal_discard(PartedStep& step, Parts& parts, uint64_t end) {
  // Ranges to be discarded may be much longer than what was ever written there.
  end = std::min(end, table_.end() * chunk_bytes_);
  if (step.io.offset_bytes >= end) return 0;
  std::vector<Request*> open(members_.size(), nullptr);
  return for_each_piece(step.io.offset_bytes, end - step.io.offset_bytes, [&](const Piece& piece) {
    std::optional<ChunkWord> word = piece.bytes == chunk_bytes_ ? table_.take(piece.chunk) : std::nullopt;
    if (word) {
      step.freed.push_back(word->bits());
    } else {
      word = table_.pin(piece.chunk);
      if (!word) return 0;
      step.held.push_back(piece.chunk);
      table_.unreserve(piece.chunk);
    }
    const uint64_t offset = offset_of(*word, piece.from);
    Request*& last = open[word->member()];
    if (last == nullptr || last->offset_bytes + last->discard_bytes != offset) {
      parts.push_back(new_part(Op::kDiscard, word->member(), offset));
      last = &parts.back()->request;
    }
    last->discard_bytes += piece.bytes;
    return 0;
  });
}

void BalancedStore::begin_part(StripePart& part) {
  if (is_timed(part.request.op)) shares_.begun(part.member);
  part.begun_ns = platform::monotonic_ns();
}

void BalancedStore::submit(std::unique_ptr<StripePart> part) {
  Member& member = *members_[part->member];
  begin_part(*part);
  member.part->submit(std::move(part));
}

int BalancedStore::transfer_part(StripePart& part) {
  begin_part(part);
  return end_part(part, members_[part.member]->part->store().transfer(part.request).error());
}

int BalancedStore::end_part(StripePart& part, int error) {
  const uint64_t now_ns = platform::monotonic_ns();
  if (is_timed(part.request.op))
    shares_.ended(part.member, part.request.op, part.request.bytes(), now_ns - part.begun_ns, error == 0);
  if (error != 0) members_[part.member]->part->note_failure();
  if (part.request.op == Op::kWrite && is_no_room(error)) shares_.note_full(part.member, now_ns, true);
  return error;
}

// Whether the chunk, to which nothing was written so far, has left a member that is full.
bool BalancedStore::give_up_full(uint64_t chunk) {
  const ChunkWord seen = table_.load(chunk);
  if (!shares_.is_full(seen.member(), platform::monotonic_ns())) return false;
  const auto word = table_.take_if_last(chunk);
  if (!word) return false;
  std::lock_guard lock(mutex_);
  members_[word->member()]->slots.give_back(word->slot(), true);
  return true;
}

int BalancedStore::end_step(PartedStep& step, int error) {
  const bool is_full = step.io.op == Op::kWrite && is_no_room(error);
  bool has_left = false;
  for (const uint64_t chunk : step.held) {
    if (is_full && give_up_full(chunk))
      has_left = true;
    else
      table_.unpin(chunk, step.io.op == Op::kWrite && error == 0);
  }
  step.held.clear();
  if (!step.freed.empty()) {
    std::lock_guard lock(mutex_);
    for (const uint64_t bits : step.freed)
      members_[ChunkWord(bits).member()]->slots.give_back(ChunkWord(bits).slot(), error != 0);
    step.freed.clear();
  }
  return has_left && step.deals < kDealsMax ? kDealAgain : error;
}

Result<std::unique_ptr<IoQueue>> BalancedStore::open_queue(size_t depth) {
  PartedStore& parted = *this;
  std::vector<Store*> stores;
  for (auto& member : members_) {
    if (Status status = member->part->wake_up(); !status) return status;
    stores.push_back(&member->part->store());
  }
  // Rings or descriptors may be used up.
  auto direct = DirectParts::create(parted, stores, depth);
  std::unique_ptr<IoEngine> engine = direct ? std::move(*direct) : nullptr;
  if (!engine) engine = std::make_unique<PartedEngine>(depth, parted);
  return std::unique_ptr<IoQueue>(std::make_unique<TransferQueue>(std::move(engine), target_, depth));
}

Status BalancedStore::transfer(Request& request) {
  Progress progress;
  int error =
      transfer_now(progress, request, target_, [this](const RawIo& io) { return run_parted(*this, io); });
  return error == 0 ? Status::ok() : transfer_failed(error, request, describe_at(request.offset_bytes));
}

void BalancedStore::in_child() {
  new (&mutex_) std::mutex;
  table_.in_child();
  shares_.in_child();
  for (auto& member : members_) {
    member->slots.in_child();
    member->part->in_child();
  }
}

}  // namespace spw::store
