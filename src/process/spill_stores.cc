#include "process/spill_stores.h"

#include <cstdlib>
#include <string>

#include "base/units.h"
#include "platform/place_list.h"
#include "process/compressed_share.h"
#include "process/fatal.h"
#include "process/image_removal.h"
#include "process/memory_plan.h"
#include "process/store_check.h"
#include "store/checked_store.h"
#include "store/encrypted_store.h"
#include "store/open_store.h"

namespace spw::process {

namespace {

// A test hook, documented in docs/OPTIONS.md beside the options: faults of the store (store/fault_plan.h).
constexpr const char* kFaultsVariable = "SPILLWAY_TEST_FAULTS";

store::IoEngineKind engine_kind(IoChoice choice) {
  switch (choice) {
    case IoChoice::kIoUring:
      return store::IoEngineKind::kUring;
    case IoChoice::kLibaio:
      return store::IoEngineKind::kAio;
    case IoChoice::kThreads:
      return store::IoEngineKind::kThreads;
    case IoChoice::kAuto:
      break;
  }
  return store::IoEngineKind::kAuto;
}

bool is_one_directory(const std::string& store) {
  return !is_store_name(store) && platform::split_places(store).size() == 1;
}

}  // namespace

Result<std::unique_ptr<store::Store>> SpillStores::open() {
  store::OpenOptions for_store;
  for_store.engine = engine_kind(options_.io);
  for_store.spill = true;
  for_store.faults = faults_.get();
  for_store.have_removed_at_end = &have_removed_at_end;
  const bool named = !is_one_directory(options_.store);
  auto spill = store::open_store(named ? options_.store : "spill:" + options_.store, for_store);
  if (!spill && named)
    return Status::sentence(EINVAL, spill.status().message() + "; --store can name another one");
  if (spill && options_.encrypt == Switch::kOn)
    spill = store::EncryptedStore::around(std::move(*spill), encrypted_copies_bytes(options_));
  else if (spill && options_.checksums == Switch::kOn)
    spill = store::CheckedStore::around(std::move(*spill));
  if (!spill) return spill;
  if (Status status = make_compressed_memory(); !status) return status;
  if (compressed_) return store::CompressedStore::around(std::move(*spill), *compressed_);
  make_probe();
  return probed_ ? store::CompressionProbe::around(std::move(*spill), *probed_) : std::move(*spill);
}

// For advice on --compress auto, which is for the mapped engine.
void SpillStores::make_probe() {
  if (probed_ || options_.curve != Curve::kOn || engine_ != EngineKind::kMapped) return;
  if (auto codec = store::PageCodec::load(store::Compression::kLz4))
    probed_ = std::make_unique<store::ProbedPages>(std::move(*codec));
}

// Who does not ask for one of the libraries does without.
Status SpillStores::make_compressed_memory() {
  const bool changes = compressed_share_changes(options_, engine_);
  const uint64_t bytes = changes ? options_.memory_bytes : compressed_bytes(options_, engine_);
  if (compressed_ || bytes == 0) return {};
  auto codec = store::PageCodec::load(options_.compress == Compress::kZstd ? store::Compression::kZstd
                                                                           : store::Compression::kLz4);
  if (!codec) return options_.compress == Compress::kAuto ? Status() : codec.status();
  compressed_ = std::make_unique<store::CompressedMemory>(std::move(*codec), bytes);
  if (changes) compressed_->budget.bytes_max.store_relaxed(CompressedShare::first_budget_bytes(bytes));
  return {};
}

Result<std::unique_ptr<store::Store>> SpillStores::open_first() {
  const StoreFacts place = check_store(options_.store);
  if (!place.refusal.empty()) return Status::sentence(EINVAL, refusal_line(place));
  const char* told = ::secure_getenv(kStoreToldVariable);
  if (!place.drawback.empty() && (told == nullptr || told != options_.store)) warn(drawback_line(place));
  if (const char* spec = ::secure_getenv(kFaultsVariable)) {
    Result<std::unique_ptr<store::FaultPlan>> plan = store::FaultPlan::parse(spec);
    if (!plan) return plan.status();
    faults_ = std::move(*plan);
  }
  auto spill = open();
  if (!spill) return spill;
  auto refused = [&](const std::string& why) {
    return Status::sentence(EINVAL, "the store " + (*spill)->describe() + ": " + why);
  };
  if ((*spill)->alignment_bytes() > options_.block_bytes)
    return refused("it takes only blocks of at least " + format_size((*spill)->alignment_bytes()) +
                   "; set --block");
  if ((*spill)->size_bytes() < kStoreFreeBytesMin)
    return refused("it has " + format_size((*spill)->size_bytes()) + ", and at least " +
                   format_size(kStoreFreeBytesMin) + " are needed; name another one with --store");
  return spill;
}

// A store's own threads are its parent's; the process's threads for all stores (store::engine_workers()) come again.
bool SpillStores::children_can_use_them() const {
  if (engine_kind(options_.io) == store::IoEngineKind::kThreads) return false;
  return is_one_directory(options_.store) || store::is_another_each_time(options_.store);
}

}  // namespace spw::process
