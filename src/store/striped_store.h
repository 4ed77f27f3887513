// Several stores as one: "striped:[chunk=SIZE,]URI,URI,...". Chunks of equal size lie on the members in turn
// (striped/stripes.h), so that their devices, or servers, work at the same time: a request that touches several is
// split, and its parts are under way together.
//
// Each member has a queue and a thread that serves it (striped/stripe_member.h), for
// all queues of this store; a transfer() that concerns one member goes to it directly.
// A request fails with the error of a member that failed; describe_at() names that one.
// For what persists, and for files: what is spilled goes to a BalancedStore (balanced_store.h) under the same name.
// Nothing is written down about the order: what is to be opened again
// needs the same members in the same order, and chunk.
//
// Size: that of the smallest member times their number, in whole chunks; or one that grows (striped_file.h), which each
// member's own follows: what of a step lies behind the end is not dealt out. Alignment: the largest member's. Requests
// are counted where they reach the members.
// Threads, lifetime: as every store. Limits: 2 to kStripedMembersMax members; chunk_bytes in [kMmuPageBytes, kGiB].
#pragma once

#include <memory>
#include <vector>

#include "store/engine/progress.h"
#include "store/store.h"
#include "store/striped/parted.h"
#include "store/striped/striped_name.h"
#include "store/striped/stripes.h"

namespace spw::store {

inline constexpr uint64_t kStripeChunkBytesDefault = 256 * kKiB;

class StripedStore final : public Store, private PartedStore {
 public:
  // `faults`: may be nullptr; outlives the store. `growth`: of a store
  // whose members grow; outlives it, too. Errors: EINVAL with a sentence.
  static Result<std::unique_ptr<StripedStore>> create(std::vector<std::unique_ptr<Store>> members,
                                                      uint64_t chunk_bytes = kStripeChunkBytesDefault,
                                                      FaultPlan* faults = nullptr, Growth* growth = nullptr);
  ~StripedStore() override;

  std::string describe() const override;
  std::string describe_at(uint64_t offset_bytes) const override;
  uint64_t size_bytes() const override { return target_.size(); }
  uint64_t alignment_bytes() const override { return target_.alignment_bytes; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  Status transfer(Request& request) override;
  Status reserve(uint64_t offset_bytes, uint64_t bytes) override;

  const Stripes& stripes() const { return stripes_; }
  // The members as GrowingStore's: stop() before they rest, and what they are without meanwhile.
  void stop() { stopped_.store_release(true); }
  void rest();
  Status go_on();

  bool is_stopped() const { return stopped_.load_acquire(); }

 private:
  StripedStore();
  // The step's parts, one or more for each member it concerns.
  Parts split(const RawIo& io) const;
  int deal(PartedStep& step, Parts& parts) override;
  void submit(std::unique_ptr<StripePart> part) override;
  int transfer_part(StripePart& part) override;
  int end_part(StripePart& part, int error) override;
  int end_step(PartedStep&, int error) override { return error; }

  std::vector<std::unique_ptr<StripeMember>> members_;
  Stripes stripes_;
  Target target_;
  Atomic<bool> stopped_{false};
};

}  // namespace spw::store
