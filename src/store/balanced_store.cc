#include "store/balanced_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "platform/time.h"
#include "store/engine/transfer_queue.h"
#include "store/striped/direct_parts.h"

namespace spw::store {

namespace {

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
                                                             uint64_t chunk_bytes, FaultPlan* faults,
                                                             const std::vector<uint32_t>& tiers) {
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
  std::unique_ptr<BalancedStore> store(new BalancedStore(members.size(), chunk_bytes));
  store->target_.alignment_bytes = alignment;
  store->target_.counts_requests = false;
  store->target_.faults = faults;
  if (Status status = store->set_up(std::move(members), tiers); !status) return status;
  return store;
}

Status BalancedStore::set_up(std::vector<std::unique_ptr<Store>> members,
                             const std::vector<uint32_t>& tiers) {
  uint64_t chunks = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const uint32_t tier = tiers.empty() ? 0 : tiers[i];
    if (Status status = places_.add(std::move(members[i]), tier); !status) return status;
    chunks += places_[i].slots.count();
  }
  chunks = std::min(chunks, kBalancedBytesMax / chunk_bytes_);
  target_.size_bytes = chunks * chunk_bytes_;
  if (Status status = table_.allocate(chunks); !status) return status;
  return places_.tiers() > 1 ? mover_.prepare(chunks) : Status::ok();
}

std::string BalancedStore::describe() const {
  uint64_t all = 0;
  for (size_t i = 0; i < places_.count(); ++i) all += places_[i].given.load_relaxed();
  std::string text = "striped over " + std::to_string(places_.count()) + " in chunks of " +
                     format_size(chunk_bytes_) + (places_.tiers() > 1 ? ", in order:" : ", balanced:");
  for (size_t i = 0; i < places_.count(); ++i) {
    const PlaceMember& member = places_[i];
    if (i > 0) text += member.tier == places_[i - 1].tier ? "," : ", then";
    text += " " + member.part->store().describe();
    if (all > 0) text += " " + std::to_string((100 * member.given.load_relaxed() + all / 2) / all) + " %";
  }
  if (mover_.moved_up() > 0) text += "; " + std::to_string(mover_.moved_up()) + " chunks moved up";
  return text;
}

std::string BalancedStore::describe_at(uint64_t offset_bytes) const {
  const ChunkWord word = offset_bytes < size_bytes() ? table_.load(offset_bytes / chunk_bytes_) : ChunkWord();
  const std::string of = " of " + std::to_string(places_.count()) + " of a striped store, ";
  size_t index = word.is_assigned() ? word.member() : 0;
  // Of a request that concerned several members, the one that failed is meant.
  if (!word.is_assigned() || !places_[index].part->has_failed())
    for (size_t i = 0; i < places_.count(); ++i)
      if (places_[i].part->has_failed()) {
        index = i;
        break;
      }
  const uint64_t in_member = offset_of(word, offset_bytes % chunk_bytes_);
  return "member " + std::to_string(index + 1) + of + places_[index].part->store().describe_at(in_member) +
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

Result<ChunkWord> BalancedStore::assign(const Piece& piece, uint64_t users) {
  int error = ENOSPC;
  std::optional<Places::Place> place;
  bool is_whole = false;
  // On a disk that is nearly full, a part of a chunk may still find room. Who fails is asked where no other has any.
  for (const bool even_failing : {false, true})
    for (const auto room : {Places::Room::kWholeChunk, Places::Room::kPiece}) {
      if (place) break;
      place = places_.take(
          {.room = room, .from = piece.from, .bytes = piece.bytes, .even_failing = even_failing}, &error);
      is_whole = room == Places::Room::kWholeChunk;
    }
  if (!place) return Status(error, "no member of a striped store has room");
  const ChunkWord word = ChunkWord::of(place->member, place->slot, is_whole, users);
  table_.assign(piece.chunk, word);
  places_[place->member].given.fetch_add_relaxed(1);
  return word;
}

Result<ChunkWord> BalancedStore::pin_to_write(const Piece& piece) {
  if (const auto word = table_.pin(piece.chunk, ChunkTable::To::kWrite)) return *word;
  std::lock_guard lock(places_.mutex());
  if (const auto word = table_.pin(piece.chunk, ChunkTable::To::kWrite))
    return *word;  // by somebody meanwhile
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
      status = places_.store_of(word->member()).reserve(offset_of(*word, piece.from), piece.bytes);
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
    for (size_t member = 0; member < places_.count(); ++member) parts.push_back(new_part(io.op, member, 0));
    return 0;
  }
  // Behind the store's end there is nothing; a request may stick out of it.
  const uint64_t end = std::min(io.offset_bytes + io.bytes, size_bytes());
  if (io.op == Op::kDiscard) return deal_discard(step, parts, end);
  if (io.op == Op::kRead) step.bytes = static_cast<int64_t>(end - io.offset_bytes);
  const uint64_t now_ns = mover_.is_noting() ? platform::monotonic_ns() : 0;
  Dealer dealer(io.op, places_.count(), parts);
  return for_each_piece(io.offset_bytes, end - io.offset_bytes, [&](const Piece& piece) {
    std::optional<ChunkWord> word;
    if (io.op == Op::kRead) {
      word = table_.pin(piece.chunk, ChunkTable::To::kRead);
    } else {
      auto to_write = pin_to_write(piece);
      if (!to_write) return to_write.status().error();
      word = *to_write;
    }
    if (word) step.held.push_back(piece.chunk);
    if (word && mover_.is_noting()) mover_.note_use(piece.chunk, *word, now_ns);
    dealer.add(word ? std::optional<size_t>(word->member()) : std::nullopt,
               word ? offset_of(*word, piece.from) : 0, piece.bytes, io);
    return 0;
  });
}

int BalancedStore::deal_discard(PartedStep& step, Parts& parts, uint64_t end) {
  // Ranges to be discarded may be much longer than what was ever written there.
  end = std::min(end, table_.end() * chunk_bytes_);
  if (step.io.offset_bytes >= end) return 0;
  std::vector<Request*> open(places_.count(), nullptr);
  return for_each_piece(step.io.offset_bytes, end - step.io.offset_bytes, [&](const Piece& piece) {
    std::optional<ChunkWord> word = piece.bytes == chunk_bytes_ ? table_.take(piece.chunk) : std::nullopt;
    if (word) {
      step.freed.push_back(word->bits());
    } else {
      word = table_.pin(piece.chunk, ChunkTable::To::kWrite);
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
  if (is_timed(part.request.op)) places_.shares().begun(part.member);
  part.begun_ns = platform::monotonic_ns();
}

void BalancedStore::submit(std::unique_ptr<StripePart> part) {
  StripeMember& member = *places_[part->member].part;
  begin_part(*part);
  member.submit(std::move(part));
}

int BalancedStore::transfer_part(StripePart& part) {
  begin_part(part);
  return end_part(part, places_.store_of(part.member).transfer(part.request).error());
}

int BalancedStore::end_part(StripePart& part, int error) {
  const uint64_t now_ns = platform::monotonic_ns();
  Shares& shares = places_.shares();
  if (is_timed(part.request.op))
    shares.ended(part.member, part.request.op, part.request.bytes(), now_ns - part.begun_ns, error == 0);
  if (error == 0) return 0;
  places_[part.member].part->note_failure();
  if (part.request.op == Op::kWrite) shares.note_failed_write(part.member, error, now_ns);
  return error;
}

// After a write that failed, if that was for the chunk's member. Whether the chunk, to which nothing was written so
// far, has left that one. A chunk that holds something is moved, if it can be.
bool BalancedStore::write_elsewhere(uint64_t chunk) {
  const size_t member = table_.load(chunk).member();
  const bool is_full = places_.shares().is_full(member, platform::monotonic_ns());
  const bool has_room_beside = places_.has_room_beside(member);
  if (!is_full && !(has_room_beside && places_.is_refusing(member))) return false;
  const auto word = table_.take_if_last(chunk);
  if (word) {
    std::lock_guard lock(places_.mutex());
    places_.give_back({word->member(), word->slot()}, true);
  } else if (has_room_beside) {
    mover_.leave(chunk);
  }
  return word.has_value();
}

int BalancedStore::end_step(PartedStep& step, int error) {
  const bool is_failed_write = step.io.op == Op::kWrite && (is_no_room(error) || is_failure(error));
  bool has_left = false;
  for (const uint64_t chunk : step.held) {
    if (is_failed_write && write_elsewhere(chunk))
      has_left = true;
    else
      table_.unpin(chunk, step.io.op == Op::kWrite && error == 0);
  }
  step.held.clear();
  if (!step.freed.empty()) {
    std::lock_guard lock(places_.mutex());
    for (const uint64_t bits : step.freed)
      places_.give_back({ChunkWord(bits).member(), ChunkWord(bits).slot()}, error != 0);
    step.freed.clear();
  }
  return has_left && step.deals < kDealsMax ? kDealAgain : error;
}

Result<std::unique_ptr<IoQueue>> BalancedStore::open_queue(size_t depth) {
  PartedStore& parted = *this;
  std::vector<Store*> stores;
  for (size_t i = 0; i < places_.count(); ++i) {
    if (Status status = places_[i].part->wake_up(); !status) return status;
    stores.push_back(&places_.store_of(i));
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

void BalancedStore::lock_for_fork() {
  mover_.lock_for_fork();
  for (size_t i = 0; i < places_.count(); ++i) places_.store_of(i).lock_for_fork();
}

void BalancedStore::unlock_after_fork() {
  for (size_t i = 0; i < places_.count(); ++i) places_.store_of(i).unlock_after_fork();
}

void BalancedStore::in_child() {
  mover_.in_child();
  table_.in_child();
  places_.in_child();
}

}  // namespace spw::store
