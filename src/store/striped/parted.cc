#include "store/striped/parted.h"

namespace spw::store {

namespace {

void start(PartedStep& step);

void put_result(PartedStep& step, int error) {
  step.mailbox->put({step.io.slot, error != 0 ? -error : step.bytes, error != 0});
}

void end(PartedStep& step, int error) {
  const int outcome = step.store->end_step(step, error);
  if (outcome != kDealAgain) return put_result(step, outcome);
  start(step);
}

void part_over(StripePart& part, int error) {
  auto& step = *static_cast<PartedStep*>(part.owner);
  error = step.store->end_part(part, error);
  if (error != 0) step.error.store_relaxed(error);
  // Release: the part's error and data; acquire: all the other parts'.
  if (step.parts_left.fetch_sub_acq_rel(1) > 1) return;
  end(step, step.error.load_relaxed());
}

// The step may be over, and gone, once its last part is submitted.
void submit(PartedStep& step, Parts& parts) {
  PartedStore& store = *step.store;
  step.error.store_relaxed(0);
  step.parts_left.store_relaxed(parts.size());  // released by the mutex of StripeMember::submit()
  for (auto& part : parts) {
    part->over = &part_over;
    part->owner = &step;
    store.submit(std::move(part));
  }
}

void start(PartedStep& step) {
  Parts parts;
  ++step.deals;
  const int error = step.store->deal(step, parts);
  if (error != 0 || parts.empty()) return end(step, error);
  submit(step, parts);
}

}  // namespace

PartedEngine::PartedEngine(size_t depth, PartedStore& store)
    : store_(store), mailbox_(depth), steps_(depth) {}

void PartedEngine::issue(std::span<const RawIo> ios) {
  for (const RawIo& io : ios) {
    PartedStep& step = steps_[io.slot];
    step.store = &store_;
    step.mailbox = &mailbox_;
    step.io = io;
    step.deals = 0;
    start(step);
  }
}

RawResult run_parted(PartedStore& store, const RawIo& io) {
  PartedStep step;
  step.store = &store;
  step.io = io;
  int error = kDealAgain;
  while (error == kDealAgain) {
    Parts parts;
    ++step.deals;
    error = store.deal(step, parts);
    if (error == 0 && parts.size() > 1) {
      Mailbox mailbox(1);
      step.mailbox = &mailbox;
      submit(step, parts);
      return mailbox.await();
    }
    if (error == 0 && !parts.empty()) error = store.transfer_part(*parts[0]);
    error = store.end_step(step, error);
  }
  return {io.slot, error != 0 ? -error : step.bytes, error != 0};
}

std::unique_ptr<StripePart> new_part(Op op, uint64_t member, uint64_t offset_bytes) {
  auto part = std::make_unique<StripePart>();
  part->member = member;
  part->request.op = op;
  part->request.offset_bytes = offset_bytes;
  return part;
}

}  // namespace spw::store
