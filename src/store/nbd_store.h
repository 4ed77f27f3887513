// A store on an NBD server (Network Block Device): memory or disks of another machine, reached over TCP, or of another
// process, reached over a Unix socket. "nbd://HOST[:PORT][/EXPORT]", "nbd+unix:///EXPORT?socket=PATH"
// (nbd/nbd_address.h has the rest).
//
// Requests of all queues go over a few connections, each with a thread, as many as the server
// allows at once (multi-conn) and the name asks for. Reads, writes, zeroing (a discard: the server
// gives the space back where it can, and it reads as zeros) and flushes are sent without waiting
// for one another. A server without zeroing gets written zeros, one without flushes is synced by
// nothing. Writes to a read-only export fail with EROFS. Any number of clients may read one export.
//
// A server that dies or does not answer within the timeout: reads and unanswered writes are sent again over a new
// connection as long as no write can have been lost; else the store fails from then on with ENOTCONN or ETIMEDOUT,
// never with old data, and describe() says why. The server's own errors (EIO, ENOSPC ...) are those of the request.
//
// Threads, lifetime: as every store. Size: the export's, rounded down
// to the server's least block; its last block may stick out.
// Alignment: the server's least block, 4 KiB at least. Limits: nbd_connection.h, nbd_address.h. No TLS.
#pragma once

#include <memory>
#include <vector>

#include "base/atomic.h"
#include "platform/file.h"
#include "store/engine/progress.h"
#include "store/nbd/nbd_address.h"
#include "store/store.h"

namespace spw::store {

class Mailbox;
class NbdConnection;
class NbdLink;

class NbdStore final : public Store {
 public:
  // `faults`: may be nullptr; outlives the store. Errors: ENOPKG without libnbd; a sentence with the address.
  static Result<std::unique_ptr<NbdStore>> open(const NbdAddress& address, FaultPlan* faults = nullptr);

  // The same, to spill to: no other process of this machine does so, and it is ours to overwrite (claim/claim.h). What
  // clients on other machines do the protocol does not tell. EBUSY, EINVAL, EROFS with a sentence.
  static Result<std::unique_ptr<NbdStore>> open_to_spill(const NbdAddress& address,
                                                         FaultPlan* faults = nullptr);

  ~NbdStore() override;

  std::string describe() const override;
  uint64_t size_bytes() const override { return target_.size_bytes; }
  uint64_t alignment_bytes() const override { return target_.alignment_bytes; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  Status transfer(Request& request) override;
  // The server's space is its own affair.
  Status reserve(uint64_t, uint64_t) override { return Status::ok(); }

  size_t connections() const { return connections_.size(); }
  bool is_read_only() const;
  // For the store's engine: the steps' results go to `mailbox`.
  void submit(std::span<const RawIo> ios, Mailbox& mailbox);

 private:
  NbdStore();

  platform::File claim_;  // of its name on this machine
  std::unique_ptr<NbdLink> link_;
  std::vector<std::unique_ptr<NbdConnection>> connections_;
  Atomic<size_t> next_{0};  // connection
  Target target_;
};

}  // namespace spw::store
