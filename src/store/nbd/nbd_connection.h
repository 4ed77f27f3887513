// One connection of an NBD store and the thread that drives it: takes steps from any number of queues, sends them as
// NBD commands without waiting for one before the next, and puts results into the queues' mailboxes.
//
// A step is one command where its bytes lie in one piece or are few (then gathered in a buffer), else one for each
// segment; none moves more than the server takes. A step's result counts when all its commands are over.
//
// When the connection breaks, or nothing is heard for the timeout while commands are under way, unfinished steps are
// sent again over a new connection if that cannot hide a loss (NbdLink), at most kNbdConnectAttemptsMax attempts within
// the timeout; else the store is lost and every step fails at once.
//
// Threads: submit() any; everything else is the connection's own thread. Lifetime: destroyed with nothing submitted and
// unfinished; the destructor joins the thread, which says goodbye to the server for kNbdGoodbyeNs at most.
// Limits: kNbdStepsMax steps are sent at a time, the others wait;
// their buffers take kNbdStepsMax * kNbdGatherBytesMax at most.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "platform/thread.h"
#include "platform/wake_fd.h"
#include "store/engine/mailbox.h"
#include "store/nbd/nbd_link.h"

namespace spw::store {

inline constexpr size_t kNbdStepsMax = 16;
inline constexpr unsigned kNbdConnectAttemptsMax = 8;
inline constexpr uint64_t kNbdGoodbyeNs = 500'000'000;
// Steps of up to so many bytes in several segments are gathered into one command.
inline constexpr uint64_t kNbdGatherBytesMax = 256 * kKiB;

class NbdConnection {
 public:
  static Result<std::unique_ptr<NbdConnection>> start(NbdLink& link, NbdHandle handle);
  ~NbdConnection();

  // The steps' results go to `mailbox`.
  void submit(std::span<const RawIo> ios, Mailbox& mailbox);

 private:
  struct Step {
    RawIo io;
    Mailbox* mailbox = nullptr;
    NbdConnection* connection = nullptr;
    unsigned commands_left = 0;  // sent and not answered
    int error = 0;               // the first of its commands'
    uint64_t flush_upto = 0;     // what a flush reaches
    std::unique_ptr<std::byte[]> gathered;
  };

  NbdConnection(NbdLink& link, NbdHandle handle) : link_(link), handle_(std::move(handle)) {}
  void work();
  bool take_inbox();
  void start_steps();
  void start_step(Step& step);
  int send(Step& step);
  int send_pieces(Step& step, std::byte* at, uint64_t bytes, uint64_t offset_bytes);
  int send_one(Step& step, std::byte* at, uint64_t bytes, uint64_t offset_bytes);
  uint64_t bytes_inside(const RawIo& io) const;
  static int answered(void* step, int* error);
  void finish_answered();
  void finish(Step& step, int64_t result);
  void fail_all(int error);
  void listen();
  void broken(int error, const std::string& how);
  void connect_again();
  void say_goodbye();

  NbdLink& link_;
  NbdHandle handle_;                           // not open: broken
  std::deque<std::unique_ptr<Step>> waiting_;  // not sent
  std::vector<std::unique_ptr<Step>> sent_;
  size_t answers_ = 0;          // since the last look
  uint64_t last_heard_ns_ = 0;  // the last answer, or since when there is one to hear
  std::string how_broken_;
  int broken_error_ = 0;

  platform::WakeFd wake_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Step>> inbox_;  // under mutex_
  bool ending_ = false;                       // under mutex_
  platform::Thread thread_;                   // last: it uses all of the above
};

}  // namespace spw::store
