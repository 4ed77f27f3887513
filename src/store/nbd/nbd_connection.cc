#include "store/nbd/nbd_connection.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "platform/time.h"
#include "telemetry/counters.h"

namespace spw::store {

namespace {

constexpr uint64_t kFirstPauseNs = 50'000'000;
constexpr uint64_t kLongestPauseNs = 2'000'000'000;
// A zeroing carries no payload; its length has 32 bits.
constexpr uint64_t kZeroBytesMax = kGiB;

bool changes_data(Op op) { return op == Op::kWrite || op == Op::kDiscard; }

// Copies between a step's segments and one buffer: what lies in the first `bytes`.
template <class Copy>
void for_each_segment(const RawIo& io, std::byte* buffer, uint64_t bytes, Copy copy) {
  for (uint32_t i = 0; i < io.segment_count && bytes > 0; ++i) {
    uint64_t length = std::min<uint64_t>(io.segments[i].iov_len, bytes);
    copy(static_cast<std::byte*>(io.segments[i].iov_base), buffer, length);
    buffer += length;
    bytes -= length;
  }
}

}  // namespace

Result<std::unique_ptr<NbdConnection>> NbdConnection::start(NbdLink& link, NbdHandle handle) {
  std::unique_ptr<NbdConnection> connection(new NbdConnection(link, std::move(handle)));
  auto wake = platform::WakeFd::create();
  if (!wake) return wake.status();
  connection->wake_ = std::move(*wake);
  auto thread = platform::Thread::start([made = connection.get()] { made->work(); });
  if (!thread) return thread.status();
  connection->thread_ = std::move(*thread);
  return connection;
}

NbdConnection::~NbdConnection() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  if (wake_.fd() >= 0) wake_.wake();
  thread_.join();
}

void NbdConnection::submit(std::span<const RawIo> ios, Mailbox& mailbox) {
  {
    std::lock_guard lock(mutex_);
    for (const RawIo& io : ios) {
      auto step = std::make_unique<Step>();
      step->io = io;
      step->mailbox = &mailbox;
      step->connection = this;
      inbox_.push_back(std::move(step));
    }
  }
  wake_.wake();
}

void NbdConnection::work() {
  while (take_inbox()) {
    if (int error = link_.loss()) fail_all(error);
    if (!handle_.is_open() && !waiting_.empty()) connect_again();
    start_steps();
    listen();
  }
  say_goodbye();
}

// False when the connection is no longer needed.
bool NbdConnection::take_inbox() {
  std::lock_guard lock(mutex_);
  for (auto& step : inbox_) waiting_.push_back(std::move(step));
  inbox_.clear();
  return !ending_;
}

void NbdConnection::start_steps() {
  while (handle_.is_open() && !waiting_.empty() && sent_.size() < kNbdStepsMax) {
    if (sent_.empty()) last_heard_ns_ = platform::monotonic_ns();
    sent_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    start_step(*sent_.back());
  }
}

void NbdConnection::start_step(Step& step) {
  step.error = 0;
  step.commands_left = 0;
  if (int error = send(step); error != 0 && step.error == 0) step.error = error;
  if (step.commands_left == 0) ++answers_;
}

// What of a transfer lies inside the export: behind its end there is nothing to be read or cleared.
uint64_t NbdConnection::bytes_inside(const RawIo& io) const {
  return std::min(io.bytes, link_.facts().size_bytes - io.offset_bytes);
}

// Sends the step's commands; 0, or why not all could be sent.
int NbdConnection::send(Step& step) {
  const RawIo& io = step.io;
  if (changes_data(io.op) && link_.facts().read_only) return EROFS;
  if (io.op == Op::kSync) {
    step.flush_upto = link_.acknowledged();
    return link_.facts().can_flush ? send_one(step, nullptr, 0, 0) : 0;
  }
  if (io.op == Op::kDiscard && !link_.facts().can_zero) return EOPNOTSUPP;
  uint64_t bytes = bytes_inside(io);
  if (io.op == Op::kDiscard) return send_pieces(step, nullptr, bytes, io.offset_bytes);
  if (io.segment_count > 1 && bytes <= kNbdGatherBytesMax) {
    if (!step.gathered) step.gathered = std::make_unique_for_overwrite<std::byte[]>(bytes);
    if (io.op == Op::kWrite)
      for_each_segment(io, step.gathered.get(), bytes, [](std::byte* from, std::byte* to, uint64_t length) {
        std::memcpy(to, from, length);
      });
    return send_pieces(step, step.gathered.get(), bytes, io.offset_bytes);
  }
  uint64_t done = 0;
  for (uint32_t i = 0; i < io.segment_count && done < bytes; ++i) {
    uint64_t length = std::min<uint64_t>(io.segments[i].iov_len, bytes - done);
    if (int error = send_pieces(step, static_cast<std::byte*>(io.segments[i].iov_base), length,
                                io.offset_bytes + done))
      return error;
    done += length;
  }
  return 0;
}

int NbdConnection::send_pieces(Step& step, std::byte* at, uint64_t bytes, uint64_t offset_bytes) {
  const uint64_t most = step.io.op == Op::kDiscard ? kZeroBytesMax : link_.facts().payload_bytes_max;
  for (uint64_t done = 0; done < bytes;) {
    uint64_t length = std::min(bytes - done, most);
    if (int error = send_one(step, at ? at + done : nullptr, length, offset_bytes + done)) return error;
    done += length;
  }
  return 0;
}

int NbdConnection::send_one(Step& step, std::byte* at, uint64_t bytes, uint64_t offset_bytes) {
  const Libnbd& lib = link_.lib();
  nbd_completion_callback when_over{&answered, &step, nullptr};
  ++step.commands_left;  // it may be answered before the call returns
  int64_t cookie = -1;
  switch (step.io.op) {
    case Op::kRead:
      cookie = lib.aio_pread(handle_.get(), at, bytes, offset_bytes, when_over, 0);
      break;
    case Op::kWrite:
      cookie = lib.aio_pwrite(handle_.get(), at, bytes, offset_bytes, when_over, 0);
      break;
    case Op::kDiscard:
      cookie = lib.aio_zero(handle_.get(), bytes, offset_bytes, when_over, 0);
      break;
    case Op::kSync:
      cookie = lib.aio_flush(handle_.get(), when_over, 0);
      break;
  }
  if (cookie >= 0) return 0;
  int error = lib.get_errno();
  --step.commands_left;
  return error == 0 ? EIO : error;
}

// libnbd's callback. Returns 1: the command may be forgotten.
int NbdConnection::answered(void* of_step, int* error) {
  Step& step = *static_cast<Step*>(of_step);
  if (*error != 0 && step.error == 0) step.error = *error;
  SPW_DCHECK(step.commands_left > 0);
  step.connection->last_heard_ns_ = platform::monotonic_ns();
  --step.commands_left;
  return 1;
}

void NbdConnection::finish_answered() {
  auto is_over = [this](std::unique_ptr<Step>& step) {
    if (step->commands_left > 0) return false;
    const RawIo& io = step->io;
    if (step->error != 0) {
      finish(*step, -step->error);
      return true;
    }
    uint64_t bytes = io.op == Op::kRead || io.op == Op::kWrite ? bytes_inside(io) : 0;
    if (io.op == Op::kRead && step->gathered)
      for_each_segment(io, step->gathered.get(), bytes, [](std::byte* to, std::byte* from, uint64_t length) {
        std::memcpy(to, from, length);
      });
    if (changes_data(io.op)) link_.acknowledge();
    if (io.op == Op::kSync && link_.facts().can_flush) link_.note_flushed(step->flush_upto);
    finish(*step, static_cast<int64_t>(bytes));
    return true;
  };
  std::erase_if(sent_, is_over);
}

void NbdConnection::finish(Step& step, int64_t result) { step.mailbox->put({step.io.slot, result}); }

void NbdConnection::fail_all(int error) {
  for (auto& step : waiting_) finish(*step, -error);
  waiting_.clear();
}

// Sends, receives and finishes what it can; sleeps until there is more to do.
void NbdConnection::listen() {
  if (!handle_.is_open()) {
    if (waiting_.empty()) wake_.wait(-1, platform::kNoTimeout);
    return;
  }
  // Steps that were over as they were started have no answer to wait for.
  uint64_t deadline_ns = answers_ > 0 ? 0 : platform::kNoTimeout;
  answers_ = 0;
  if (deadline_ns != 0 && !sent_.empty())
    deadline_ns = platform::deadline_after(last_heard_ns_, link_.timeout_ns());
  int error = handle_.poll(wake_.fd(), deadline_ns);
  wake_.clear();
  if (handle_.is_gone() || error != 0) {
    const char* words = link_.lib().get_error();
    return broken(ENOTCONN,
                  std::string("the connection broke") + (words ? std::string(" (") + words + ")" : ""));
  }
  finish_answered();
  if (sent_.empty() || platform::monotonic_ns() < last_heard_ns_ + link_.timeout_ns()) return;
  broken(ETIMEDOUT,
         "the server has not answered for " + std::to_string(link_.address().timeout_seconds) + " s");
}

// Takes back what the connection had not finished.
void NbdConnection::broken(int error, const std::string& how) {
  handle_ = NbdHandle();  // from here on libnbd touches no buffer and calls nothing back
  broken_error_ = error;
  how_broken_ = how;
  for (size_t i = sent_.size(); i > 0; --i) waiting_.push_front(std::move(sent_[i - 1]));
  sent_.clear();
  if (link_.may_connect_again()) return;
  link_.lose(error,
             how +
                 ", and what was written since the last sync may be lost; see that the server runs, then "
                 "start the program again");
  fail_all(link_.loss());
}

void NbdConnection::connect_again() {
  uint64_t deadline_ns = platform::deadline_after(platform::monotonic_ns(), link_.timeout_ns());
  uint64_t pause_ns = kFirstPauseNs;
  std::string last;
  for (unsigned attempt = 0; attempt < kNbdConnectAttemptsMax && link_.may_connect_again(); ++attempt) {
    telemetry::count(telemetry::Counter::store_retries);
    auto made = NbdHandle::connect(link_.lib(), link_.address(), deadline_ns);
    if (made && made->facts() == link_.facts()) {
      handle_ = std::move(*made);
      return;
    }
    last = made ? "the export is another one now" : std::string(made.status().context());
    uint64_t now_ns = platform::monotonic_ns();
    if (made || now_ns >= deadline_ns) break;
    platform::sleep_ns(std::min(pause_ns, deadline_ns - now_ns));
    pause_ns = std::min(2 * pause_ns, kLongestPauseNs);
  }
  link_.lose(broken_error_, how_broken_ + ", and it cannot be made again: " + last +
                                "; see that the server runs, then start the program again");
  fail_all(link_.loss());
}

void NbdConnection::say_goodbye() {
  if (!handle_.is_open() || link_.lib().aio_disconnect(handle_.get(), 0) != 0) return;
  uint64_t deadline_ns = platform::deadline_after(platform::monotonic_ns(), kNbdGoodbyeNs);
  while (!handle_.is_gone() && platform::monotonic_ns() < deadline_ns)
    if (handle_.poll(-1, deadline_ns) != 0) break;
}

}  // namespace spw::store
