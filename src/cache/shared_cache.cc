#include "cache/shared_cache.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "cache/delegation/combining.h"
#include "cache/delegation/dedicated.h"
#include "platform/futex.h"
#include "platform/numa.h"
#include "platform/spin.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::cache {

using telemetry::count;
using telemetry::Counter;
using telemetry::TraceEvent;

SharedCacheParts::SharedCacheParts(const Options& options, Directory directory,
                                   std::unique_ptr<FrameSource> frames, BlockSource& blocks,
                                   IoErrorHandler on_error, void* error_context)
    : directory_(std::move(directory)),
      frames_(std::move(frames)),
      blocks_(blocks),
      on_error_(on_error),
      error_context_(error_context),
      fill_sums_(options.frame_count, uint64_t{1} << options.block_shift),
      context_{options, directory_,      *frames_,   blocks,
               errors_, written_stores_, fill_sums_, frames_->placement()} {
  context_.owner_fills = options.delegation == Delegation::kDedicated;
  if (options.tunes_fills)
    fault_around_ = std::make_unique<FaultAround>(options.block_shift, options.frame_count,
                                                  frames_per_partition() / kAheadShare);
}

// Best effort: memory of another node is slower, and right. Blocks at
// their own addresses come from where they are first touched.
void SharedCacheParts::place_on_nodes() {
  const Options& options = context_.options;
  if (options.nodes < 2 || context_.has_blocks_in_place()) return;
  const std::vector<unsigned> nodes = platform::nodes_with_processors();
  if (options.nodes != nodes.size()) return;
  for (uint32_t p = 0; p < directory_.map().count(); ++p) {
    const PartitionId partition(p);
    const uint64_t first_byte = uint64_t{directory_.shares().first(partition).value} << options.block_shift;
    const uint64_t bytes = uint64_t{directory_.shares().of(partition)} << options.block_shift;
    (void)platform::prefer_node(context_.placement.pool + first_byte, bytes, nodes[p % nodes.size()]).is_ok();
  }
}

Status SharedCacheParts::open_partitions(std::vector<std::unique_ptr<Policy>> policies) {
  place_on_nodes();
  for (uint32_t p = 0; p < policies.size(); ++p)
    partitions_.push_back(std::make_unique<Partition>(PartitionId(p), context_, std::move(policies[p])));
  wants_touches_ = partitions_.front()->organisation().wants_touches();
  context_.clients_take = partitions_.front()->organisation().clients_take();
  if (context_.options.delegation == Delegation::kCombining) {
    delegate_ = std::make_unique<Combining>(partitions_.size());
    return Status::ok();
  }
  auto dedicated = std::make_unique<Dedicated>(partitions_, context_.options.servers);
  Status status = dedicated->start();
  delegate_ = std::move(dedicated);
  return status;
}

SharedCacheParts::~SharedCacheParts() {
  for (const auto& client : clients_) SPW_CHECK(!client->open);
  delegate_.reset();
  for (const auto& partition : partitions_) partition->drain();
}

Result<Client*> SharedCacheParts::open_client(Uses uses) {
  std::lock_guard lock(clients_mutex_);
  auto idle = std::find_if(clients_.begin(), clients_.end(), [](const auto& c) { return !c->open; });
  if (idle == clients_.end()) {
    const Options& options = context_.options;
    uint64_t window =
        std::min<uint64_t>({options.readahead_blocks_max, options.readahead_bytes_max >> options.block_shift,
                            frames_per_partition() / kAheadShare});
    clients_.push_back(std::make_unique<Client>(static_cast<uint32_t>(window), context_.options.block_shift));
    idle = std::prev(clients_.end());
    if (context_.has_blocks_in_place())
      (*idle)->staging = frames_->take_staging(FrameSource::Staging::kBlock);
    if (wants_touches_) {
      (*idle)->touches = std::make_unique<TouchRing[]>(partitions_.size());
      for (size_t p = 0; p < partitions_.size(); ++p)
        partitions_[p]->organisation().touches().add((*idle)->touches[p]);
    }
  }
  (*idle)->open = true;
  (*idle)->uses = uses;
  return idle->get();
}

void SharedCacheParts::close_client(Client* client) {
  std::lock_guard lock(clients_mutex_);
  SPW_CHECK(client->open);
  client->open = false;
}

void SharedCacheParts::mark_dirty(Client&, FrameId frame) {
  PinWord before = directory_.word(frame).mark_dirty();
  SPW_DCHECK(before.refs() > 0);
  if (!before.dirty()) note_dirtied({frame, before.block()});
}

void SharedCacheParts::unpin(Client& client, FrameId frame) {
  if (wants_touches_) [[unlikely]]
    return unpin_and_tell(client, frame);
  [[maybe_unused]] PinWord before = directory_.word(frame).unpin();
  SPW_DCHECK(before.refs() > 0);
}

// For policies that keep an order.
void SharedCacheParts::unpin_and_tell(Client& client, FrameId frame) {
  PinWord before = directory_.word(frame).unpin();
  SPW_DCHECK(before.refs() > 0);
  if (before.refs() != 1) return;
  const PartitionId partition = directory_.shares().partition_of(frame);
  const uint32_t local = frame.value - directory_.shares().first(partition).value;
  if (client.touches[partition.value].push(local))
    partitions_[partition.value]->organisation().touches().ring_bell();
}

// ---- Pins ----

Status SharedCacheParts::pin(Client& client, BlockId block, Access access, Pin* out) {
  PinWord before;
  out->was_clean = out->was_miss = out->was_filled = false;
  if (context_.options.use_observer) [[unlikely]]
    context_.options.use_observer->used(block);
  if (context_.options.clients_pin &&
      directory_.try_pin(block, access != Access::kRead, &out->frame, &before)) [[likely]] {
    out->data = context_.data({out->frame, block});
    count(Counter::shared_hits);
    if (access != Access::kRead) note_pinned(before, block, access, out);
    return Status::ok();
  }
  return pin_slowly(client, block, access, out);
}

bool SharedCacheParts::place(FrameId frame) {
  AtomicPinWord& pin_word = directory_.word(frame);
  PinWord word = pin_word.load_relaxed();
  const Resident resident{frame, word.block()};
  if (context_.placement.is_placed(resident)) return true;
  // Whoever comes meanwhile waits as for a block that is being filled.
  do {
    SPW_DCHECK(word.state() == FrameState::kResident && word.refs() > 0);
    if (word.refs() != 1 || word.writing()) return false;
  } while (!pin_word.cas_acquire(word, word.in_state(FrameState::kFilling)));
  frames_->place(resident, word.dirty());
  count(Counter::placed_blocks);
  if (pin_word.end_filling(FrameState::kResident, 0)) platform::futex_wake_all(pin_word.futex_half());
  return true;
}

bool SharedCacheParts::is_resident(BlockId block) const {
  const FrameId frame = directory_.find(block);
  if (frame == kNoFrame) return false;
  const PinWord word = directory_.word(frame).load_relaxed();
  return word.holds(block) && word.state() == FrameState::kResident;
}

bool SharedCacheParts::pin_present(Client& client, BlockId block, Access access, Pin* out) {
  out->was_clean = out->was_miss = out->was_filled = false;
  Miss miss(client, block, access, partition_of(block), out);
  if (join_present(miss) != Step::kPinned) return false;
  out->data = context_.data({out->frame, block});
  return true;
}

void SharedCacheParts::note_pinned(PinWord before, BlockId block, Access access, Pin* out) {
  if (access == Access::kRead || before.dirty()) return;
  out->was_clean = true;
  note_dirtied({out->frame, block});
}

// The caller holds the block and has just made it dirty.
void SharedCacheParts::note_dirtied(Resident resident) {
  count(Counter::bytes_dirtied, context_.block_bytes());
  if (context_.placement.is_placed(resident)) frames_->allow_stores({&resident, 1});
}

Status SharedCacheParts::pin_slowly(Client& client, BlockId block, Access access, Pin* out) {
  Miss miss(client, block, access, partition_of(block), out);
  const bool looks = context_.options.clients_pin;
  bool wants_unit = looks && access != Access::kOverwrite;
  for (;;) {
    Step step = looks ? join_present(miss) : Step::kAgain;
    if (miss.asked_ns == 0 && step == Step::kAgain) {
      miss.partition.organisation().prefetch_block(block);
      miss.asked_ns = platform::monotonic_ns();
    }
    if (step == Step::kAgain && std::exchange(wants_unit, false)) step = fault_around(miss);
    if (step == Step::kAgain && context_.clients_take) step = take_in_set(miss);
    if (step == Step::kAgain) step = ask_owner(miss);
    if (step == Step::kAgain) continue;
    if (miss.is_waiting) fault_around_->end_wait();
    if (miss.deadline_ns != 0) telemetry::note_event(TraceEvent::kWaited, block.value);
    if (step == Step::kError) return miss.status;
    out->data = context_.data(miss.resident());
    if (out->was_miss || miss.has_waited) note_missed(miss);
    return Status::ok();
  }
}

// The time is asked for once.
void SharedCacheParts::note_missed(const Miss& miss) {
  const uint64_t took_ns = telemetry::note_missed(miss.block.value, miss.asked_ns);
  if (miss.was_read) count(Counter::fill_wait_ns, took_ns);
}

const Backing& SharedCacheParts::hint(Miss& miss) {
  if (!miss.hint) miss.hint = blocks_.locate_for_fill(miss.block);
  return *miss.hint;
}

// Of a block that has been given a frame.
Backing SharedCacheParts::backing_of(const Request& answered) const {
  return answered.backing ? *answered.backing : blocks_.locate_for_fill(answered.block);
}

// kAgain: not without the owner, who also serves never-written blocks
// in groups where that is worth it, and those who wait.
SharedCacheParts::Step SharedCacheParts::take_in_set(Miss& miss) {
  if (context_.placement.has_address(miss.block) && !hint(miss).has_contents) return Step::kAgain;
  const Organisation::Taken taken = miss.partition.organisation().take_alone(miss.block);
  if (taken.how != Organisation::Take::kTaken) return Step::kAgain;
  miss.out->frame = taken.frame;
  const Step step = fill(miss, blocks_.locate_for_fill(miss.block));
  if (miss.partition.organisation().wants_owner()) {
    miss.client.request.wish = Wish::kReap;
    delegate_->execute(miss.partition, miss.client.request);
  }
  return step;
}

// False: the client waits for nobody, and would have to.
bool SharedCacheParts::ask(Client& client, Partition& partition) {
  if (!client.may_wait) return delegate_->try_execute(partition, client.request);
  delegate_->execute(partition, client.request);
  return true;
}

SharedCacheParts::Step SharedCacheParts::ask_owner(Miss& miss) {
  Request& request = miss.client.request;
  request.wish = Wish::kPin;
  request.block = miss.block;
  request.access = miss.access;
  // Where owners fill, a client waits for its block right here.
  const uint64_t begin_ns = context_.owner_fills ? platform::monotonic_ns() : 0;
  delegate_->execute(miss.partition, request);
  if (context_.owner_fills && request.answer == Answer::kFilled)
    count(Counter::fill_wait_ns, platform::monotonic_ns() - begin_ns);
  miss.out->frame = request.frame;
  if (note_answered(miss)) return Step::kPinned;
  switch (request.answer) {
    case Answer::kFill:
      return fill(miss, backing_of(request));
    case Answer::kFilled: {
      note_miss(miss, true);
      const Step step = await_filled(miss);
      if (step == Step::kError) tell(miss.client, miss.status);
      return step;
    }
    case Answer::kJoined:
      count(Counter::shared_waits);
      return await_filled(miss);
    case Answer::kFailed:
      miss.status = errors_.get(miss.out->frame);
      break;
    default:
      miss.status = wait_for_frame(miss.client, miss.partition, &miss.deadline_ns, &miss.write_error);
  }
  return miss.status ? Step::kAgain : Step::kError;
}

// Whether the owner has pinned the block, whose contents are there.
bool SharedCacheParts::note_answered(Miss& miss) {
  const Request& request = miss.client.request;
  if (request.answer == Answer::kReady) {
    miss.out->was_miss = miss.out->was_filled = true;
    telemetry::count_miss(miss.block.value);
    zeros_ahead(miss.client, miss.block);
    return true;
  }
  if (request.answer != Answer::kPinned) return false;
  count(Counter::shared_hits);
  if (request.was_clean) {
    miss.out->was_clean = true;
    note_dirtied(miss.resident());
  }
  if (request.was_ahead) note_ahead_used(miss);
  return true;
}

// The block has a frame, and is filled for this client. Behind one that was never written there is seldom anything to
// be read: to ask for it costs more than a miss where there is.
void SharedCacheParts::note_miss(Miss& miss, bool is_read) {
  miss.out->was_miss = miss.out->was_filled = true;
  telemetry::count_miss(miss.block.value);
  if (!is_read || miss.access == Access::kOverwrite || std::exchange(miss.is_other_half, false)) return;
  read_ahead(miss.client, miss.client.streams.on_miss(miss.block), miss.access_ahead());
}

// The first use of a block that read-ahead brought. A stream that overwrites needs no more of them.
void SharedCacheParts::note_ahead_used(const Miss& miss) {
  count(Counter::readahead_hits);
  if (miss.access != Access::kOverwrite)
    read_ahead(miss.client, miss.client.streams.on_ahead_use(miss.block), miss.access_ahead());
}

// What the owner would do, done here. kAgain: the block is not there, or the owner has to see to it.
SharedCacheParts::Step SharedCacheParts::join_present(Miss& miss) {
  return take_present(miss, [&](AtomicPinWord& pin_word, PinWord& word) -> std::optional<Step> {
    if (word.state() != FrameState::kFilling) return Step::kAgain;
    if (!pin_word.cas_acquire(word, word.joined())) return std::nullopt;
    count(Counter::shared_waits);
    if (miss.asked_ns == 0) miss.asked_ns = platform::monotonic_ns();
    return await_filled(miss);
  });
}

// In out->frame, whose word was *word. False: it is not resident there, by what *word is now.
bool SharedCacheParts::pin_resident(Miss& miss, PinWord* word) {
  AtomicPinWord& pin_word = directory_.word(miss.out->frame);
  while (word->holds(miss.block) && word->state() == FrameState::kResident) {
    if (!pin_word.cas_acquire(*word, word->pinned(miss.is_for_write()))) continue;
    note_pinned(*word, miss.block, miss.access, miss.out);
    count(Counter::shared_hits);
    if (word->ahead()) {
      miss.partition.organisation().ahead_used();
      note_ahead_used(miss);
    }
    return true;
  }
  return false;
}

// This client has a reference to a frame that someone else fills.
SharedCacheParts::Step SharedCacheParts::await_filled(Miss& miss) {
  const FrameId frame = miss.out->frame;
  AtomicPinWord& pin_word = directory_.word(frame);
  miss.has_waited = true;
  wait_while_filling(miss.client, frame, miss.partition);
  PinWord word = pin_word.load_acquire();
  if (word.state() == FrameState::kFailed) {
    miss.status = errors_.get(frame);
    leave_failed(miss.client, frame, miss.partition);
    return miss.status ? Step::kAgain : Step::kError;
  }
  const uint64_t flags = PinWord::kReferenced | (miss.is_for_write() ? PinWord::kDirty : 0);
  while (!pin_word.cas_acquire(word, word.with(flags).without(PinWord::kAhead))) {
  }
  note_pinned(word, miss.block, miss.access, miss.out);
  if (word.ahead()) {
    miss.partition.organisation().ahead_used();
    note_ahead_used(miss);
  }
  return Step::kPinned;
}

void SharedCacheParts::leave_failed(Client& client, FrameId frame, Partition& partition) {
  if (directory_.word(frame).unpin().refs() != 1) return;
  client.request.wish = Wish::kDropFailed;
  client.request.frame = frame;
  (void)ask(client, partition);  // else whoever pins, or discards, the block next has it dropped
}

// ---- Fills ----

// Into the frame that this client has for the block.
SharedCacheParts::Step SharedCacheParts::fill(Miss& miss, const Backing& backing) {
  context_.tell_of_fill(miss.block, miss.access != Access::kOverwrite && backing.has_contents);
  note_miss(miss, backing.has_contents);
  miss.status = transfer_in(miss, backing);
  return end_fill(miss.client, miss.resident(), miss.dirty_flags(), backing.store, miss.status);
}

Status SharedCacheParts::transfer_in(Miss& miss, const Backing& backing) {
  const Resident resident = miss.resident();
  if (backing.store == nullptr)
    return Status::sentence(EFAULT, "block " + std::to_string(miss.block.value) + " belongs to no region");
  if (miss.access == Access::kOverwrite) {
    frames_->install({&resident, 1}, Contents::kArbitrary, nullptr, true);
    count(Counter::overwrites);
    return Status::ok();
  }
  if (!backing.has_contents) {
    frames_->install({&resident, 1}, Contents::kZeros, nullptr, miss.is_for_write());
    count(Counter::zero_fills);
    return Status::ok();
  }
  const bool is_staged =
      !miss.client.takes_loose && frames_->staging_use(miss.block, 1) == FrameSource::StagingUse::kNeeded;
  std::byte* const staging = is_staged ? miss.client.staging : nullptr;
  store::Request request;
  request.op = store::Op::kRead;
  request.offset_bytes = backing.offset_bytes;
  request.segment_count = 1;
  request.segments[0] = {frames_->fill_address(resident, staging, 0), context_.block_bytes()};
  const Status moved = backing.store->transfer(request);
  miss.was_read = true;
  if (!moved) {
    telemetry::note_event(TraceEvent::kFailed, miss.block.value, static_cast<uint64_t>(moved.error()));
    return fill_error(miss.block, *backing.store, backing.offset_bytes, moved.error());
  }
  miss.is_summed = miss.expects_store && !miss.is_for_write() && staging && context_.comes_summed(miss.block);
  if (miss.is_summed) fill_sums_.note(resident.frame, staging);
  frames_->install({&resident, 1}, Contents::kFilled, staging, miss.is_for_write() || miss.is_summed);
  count(Counter::fills);
  return Status::ok();
}

// The contents are in place, or `status` says why not.
SharedCacheParts::Step SharedCacheParts::end_fill(Client& client, Resident resident, uint64_t dirty_flags,
                                                  const store::Store* store, const Status& status) {
  const auto [frame, block] = resident;
  if (!status) errors_.put(frame, status);
  const uint64_t flags = PinWord::kReferenced | (status ? dirty_flags : 0);
  AtomicPinWord& pin_word = directory_.word(frame);
  if (pin_word.end_filling(status ? FrameState::kResident : FrameState::kFailed, flags))
    platform::futex_wake_all(pin_word.futex_half());
  if (!status) {
    leave_failed(client, frame, partition_of(block));
    // At its own address a block may be freed between a fault on it
    // and this: the access is refused then, by whoever serves it.
    if (store != nullptr || !context_.placement.has_address(block)) tell(client, status);
    return Step::kError;
  }
  if (dirty_flags != 0) count(Counter::bytes_dirtied, context_.block_bytes());
  return Step::kPinned;
}

// ---- Telling ----

uint32_t SharedCacheParts::occupied_frames() const {
  uint32_t sum = 0;
  for (const auto& partition : partitions_) sum += partition->organisation().used_frames();
  return sum;
}

uint32_t SharedCacheParts::free_frames() const {
  uint32_t sum = 0;
  for (const auto& partition : partitions_) sum += partition->organisation().free_frames();
  return sum;
}

uint32_t SharedCacheParts::peak_frames() const {
  uint32_t sum = 0;
  for (const auto& partition : partitions_) sum += partition->organisation().peak_frames();
  return sum;
}

uint64_t SharedCacheParts::metadata_bytes() const {
  uint64_t client_bytes = sizeof(Client) + (wants_touches_ ? partitions_.size() * sizeof(TouchRing) : 0);
  uint64_t sum = sizeof(*this) + directory_.metadata_bytes() + clients_.size() * client_bytes +
                 fills_bytes_.load_relaxed();
  if (fault_around_) sum += fault_around_->metadata_bytes();
  for (const auto& partition : partitions_) sum += partition->metadata_bytes();
  return sum;
}

// By the owners: transfers may be under way, and dedicated owners see to them by themselves.
void SharedCacheParts::check_invariants() {
  auto client = open_client(Uses::kSeen);
  SPW_CHECK(client.is_ok());
  directory_.check_invariants();
  for (const auto& partition : partitions_) {
    (*client)->request.wish = Wish::kCheck;
    delegate_->execute(*partition, (*client)->request);
  }
  close_client(*client);
}

}  // namespace spw::cache
