#include "store/nbd_store.h"

#include <algorithm>
#include <filesystem>

#include "platform/device_use.h"
#include "platform/time.h"
#include "store/claim/claim.h"
#include "store/engine/transfer_queue.h"
#include "store/nbd/nbd_connection.h"

namespace spw::store {

namespace {

uint64_t deadline_of(const NbdAddress& address) {
  return platform::deadline_after(platform::monotonic_ns(), address.timeout_seconds * 1'000'000'000);
}

}  // namespace

NbdStore::NbdStore() = default;
NbdStore::~NbdStore() = default;

bool NbdStore::is_read_only() const { return link_->facts().read_only; }

Result<std::unique_ptr<NbdStore>> NbdStore::open(const NbdAddress& address, FaultPlan* faults) {
  auto lib = Libnbd::load();
  if (!lib) return lib.status();
  std::unique_ptr<NbdStore> store(new NbdStore);
  auto first = NbdHandle::connect(*lib, address, deadline_of(address));
  if (!first) return first.status();
  const NbdExport facts = first->facts();
  store->link_ = std::make_unique<NbdLink>(*lib, address, facts);
  // The handle outlives `lib`, whose place the link takes.
  first->adopt(store->link_->lib());
  NbdHandle handle = std::move(*first);
  const size_t wanted = facts.multi_conn ? address.connections : 1;
  while (true) {
    auto connection = NbdConnection::start(*store->link_, std::move(handle));
    if (!connection) return connection.status();
    store->connections_.push_back(std::move(*connection));
    if (store->connections_.size() == wanted) break;
    // A server may have a limit of its own; one connection is enough to go on.
    auto more = NbdHandle::connect(store->link_->lib(), address, deadline_of(address));
    if (!more || !(more->facts() == facts)) break;
    handle = std::move(*more);
  }
  store->target_.size_bytes = facts.size_bytes;
  store->target_.alignment_bytes = std::max(kMmuPageBytes, facts.block_bytes_min);
  store->target_.faults = faults;
  return store;
}

Result<std::unique_ptr<NbdStore>> NbdStore::open_to_spill(const NbdAddress& address, FaultPlan* faults) {
  const bool is_local = !address.socket.empty();
  std::error_code error;
  const auto socket = std::filesystem::weakly_canonical(address.socket, error);
  const std::string place = is_local && !error ? socket.string() : address.socket;
  auto name = platform::claim_name((is_local ? place : address.host + ":" + address.port) + "/" +
                                   address.export_name);
  if (!name)
    return Status::sentence(EBUSY, address.text + ": " + std::string(name.status().context()) +
                                       ", and one process at a time can spill there: end that use, or name a "
                                       "directory, which any number of processes can share");
  auto store = open(address, faults);
  if (!store) return store.status();
  if ((*store)->is_read_only())
    return Status::sentence(EROFS,
                            address.text + ": the export is read-only, so nothing can be spilled there");
  (*store)->claim_ = std::move(*name);
  if (Status status = claim(**store, (*store)->target_, address.text, address.overwrite); !status)
    return status;
  return store;
}

std::string NbdStore::describe() const {
  std::string lost = link_->loss_text();
  if (!lost.empty()) return link_->address().text + " (" + lost + ")";
  return link_->address().text + " (" + std::to_string(connections_.size()) +
         (connections_.size() == 1 ? " connection" : " connections") + (is_read_only() ? ", read-only" : "") +
         begins_at(target_) + ")";
}

void NbdStore::submit(std::span<const RawIo> ios, Mailbox& mailbox) {
  // In shares of equal size, neighbours together.
  size_t share = (ios.size() + connections_.size() - 1) / connections_.size();
  for (size_t at = 0; at < ios.size(); at += share)
    connections_[next_.fetch_add_relaxed(1) % connections_.size()]->submit(
        ios.subspan(at, std::min(share, ios.size() - at)), mailbox);
}

Result<std::unique_ptr<IoQueue>> NbdStore::open_queue(size_t depth) {
  auto engine = std::make_unique<MailboxEngine<NbdStore>>(depth, *this);
  return std::unique_ptr<IoQueue>(std::make_unique<TransferQueue>(std::move(engine), target_, depth));
}

Status NbdStore::transfer(Request& request) {
  auto run = [&](const RawIo& io) { return done_by(*this, io); };
  Progress progress;
  int error = transfer_now(progress, request, target_, run);
  return error == 0 ? Status::ok() : transfer_failed(error, request, describe());
}

}  // namespace spw::store
