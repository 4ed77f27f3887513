#include "store/compressed_store.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <new>

#include "platform/machine.h"
#include "platform/time.h"

namespace spw::store {

namespace {

constexpr uint64_t kPageBytes = CompressedPages::kPageBytes;

// [first, first + count) of the pages of `request`.
void cut(const Request& request, uint64_t first, uint64_t count, Request& piece) {
  piece.op = request.op;
  piece.offset_bytes = request.offset_bytes + first * kPageBytes;
  piece.segment_count = 0;
  uint64_t skip = first * kPageBytes, left = count * kPageBytes;
  for (const iovec& segment : segments_of(request)) {
    const uint64_t skipped = std::min<uint64_t>(skip, segment.iov_len);
    const uint64_t bytes = std::min<uint64_t>(left, segment.iov_len - skipped);
    skip -= skipped;
    left -= bytes;
    if (bytes > 0)
      piece.segments[piece.segment_count++] = {static_cast<std::byte*>(segment.iov_base) + skipped, bytes};
  }
}

void copy(const Request& request, Request& to) {
  to.op = request.op;
  to.segment_count = request.segment_count;
  to.offset_bytes = request.offset_bytes;
  to.discard_bytes = request.discard_bytes;
  std::ranges::copy(segments_of(request), to.segments);
}

// Calls write(request) for the pages of `leaving` that lie together, with their contents in `buffer`.
template <class Write>
void for_each_write(const CompressedPages::Leaving& leaving, std::byte* buffer, Write write) {
  for (uint32_t left = leaving.pages; left != 0;) {
    const int first = std::countr_zero(left), count = std::countr_one(left >> first);
    left &= ~static_cast<uint32_t>(((uint64_t{1} << count) - 1) << first);
    Request request;
    request.op = Op::kWrite;
    request.offset_bytes = (leaving.first_page + static_cast<uint64_t>(first)) * kPageBytes;
    request.segment_count = 1;
    request.segments[0] = {buffer + static_cast<uint64_t>(first) * kPageBytes,
                           static_cast<uint64_t>(count) * kPageBytes};
    write(request);
  }
}

}  // namespace

// Every request on the device is a piece: of a request (all of it, mostly) or of an eviction.
//
// Writes wait until somebody kicks, or waits, since compressing takes longer than all else: those who kick compress
// beside each other and beside who submits and reaps. What they have in common is under mutex_, which comes before the
// locks of the pages and of the device's queue.
class CompressedStore::Queue final : public QueueAround {
 public:
  Queue(CompressedStore& store, std::unique_ptr<IoQueue> device, size_t depth)
      : QueueAround(std::move(device)), store_(store), depth_(depth) {}
  ~Queue() override {
    while (!is_idle()) {
      kick();
      if (device().in_flight() > 0) device().wait(UINT64_MAX);
      std::lock_guard lock(mutex_);
      take_in();
      (void)start();
    }
  }

  size_t depth() const override { return depth_; }
  size_t in_flight() const override { return taken_.load_acquire(); }

  size_t enqueue(std::span<Request* const> requests) override {
    std::lock_guard lock(mutex_);
    take_in();
    const auto all = requests.first(std::min(requests.size(), depth_ - in_flight()));
    for (Request* const request : all) {
      taken_.fetch_add_acq_rel(1);
      if (request->op == Op::kWrite && !is_refused(*request))
        writes_.push_back(request);
      else
        begin(*request);
    }
    (void)start();
    return all.size();
  }
  void kick() override {
    QueueAround::kick();
    write();
  }
  void wait(uint64_t timeout_ns) override {
    if (ended_here() == 0) kick();
    QueueAround::wait(timeout_ns);
  }
  // Others may be about to end some here.
  std::optional<Sleep> sleep() override {
    if (writes_under_way_.load_acquire() > 0 && ended_here() == 0) return std::nullopt;
    return QueueAround::sleep();
  }
  size_t reap(std::span<Completion> out) override {
    size_t count = 0;
    bool has_started = false;
    {
      std::lock_guard lock(mutex_);
      take_in();
      has_started = start();
      count = reap_here(out);
      taken_.fetch_sub_acq_rel(count);
    }
    if (has_started) QueueAround::kick();  // nobody else would
    return count;
  }

 private:
  // A request that is done in pieces.
  struct Whole {
    Request* request = nullptr;
    size_t left = 0;
    int error = 0;
  };
  struct Eviction {
    Pages::Leaving leaving;
    std::byte* buffer = nullptr;
    size_t left = 0;
    int error = 0;
  };
  struct Piece {
    Request request;
    Whole* whole = nullptr;        // one of
    Eviction* eviction = nullptr;  // these
    uint64_t began_ns = 0;         // of a read, on the device
  };

  // Nothing of requests or of evictions is left to do.
  bool is_idle() {
    std::lock_guard lock(mutex_);
    return in_flight() == ended_here() && waiting_.empty() && device().in_flight() == 0;
  }

  // Those that wait, one by one, each beside others; what comes meanwhile is for who adds it.
  void write() {
    std::vector<Run> runs;
    size_t left = SIZE_MAX;
    while (Request* const request = next_write(left)) {
      runs.clear();
      const int error = store_.do_here(*request, runs);
      bool has_started = false;
      {
        std::lock_guard lock(mutex_);
        go_on(*request, error, runs);
        has_started = start();
        writes_under_way_.fetch_sub_acq_rel(1);
      }
      if (error == 0 && !runs.empty()) has_started = evict() || has_started;
      if (has_started) QueueAround::kick();
    }
  }
  // `left`: how many more at most.
  Request* next_write(size_t& left) {
    std::lock_guard lock(mutex_);
    left = std::min(left, writes_.size());
    if (left == 0) return nullptr;
    --left;
    Request* const request = writes_.front();
    writes_.pop_front();
    writes_under_way_.fetch_add_acq_rel(1);
    return request;
  }

  // From here on under mutex_, but for evict().
  void begin(Request& request) {
    if (is_refused(request)) return end_here(&request, EINVAL);
    runs_.clear();
    go_on(request, store_.do_here(request, runs_), runs_);
  }
  // What was done here of it, and what was left.
  void go_on(Request& request, int error, const std::vector<Run>& runs) {
    if (error != 0 || (runs.empty() && (request.op == Op::kRead || request.op == Op::kWrite)))
      return end_here(&request, error);
    Whole* const whole = wholes_.take();
    *whole = {&request, std::max<size_t>(runs.size(), 1), 0};
    if (runs.empty()) copy(request, piece_of(whole, nullptr).request);
    for (const Run& run : runs) cut(request, run.first, run.count, piece_of(whole, nullptr).request);
  }
  Piece& piece_of(Whole* whole, Eviction* eviction) {
    Piece* const piece = pieces_.take();
    piece->whole = whole;
    piece->eviction = eviction;
    piece->request.user = piece;
    waiting_.push_back(&piece->request);
    return *piece;
  }
  bool evict() {
    bool has_started = false;
    while (store_.pages_->is_short()) {
      std::byte* const buffer = store_.take_buffer();
      if (buffer == nullptr) break;
      const auto leaving = store_.pages_->begin_eviction(buffer);
      if (!leaving) {
        store_.put_back(buffer);
        break;
      }
      std::lock_guard lock(mutex_);
      Eviction* const eviction = evictions_.take();
      *eviction = {*leaving, buffer, 0, 0};
      for_each_write(*leaving, buffer, [&](Request& write) {
        ++eviction->left;
        copy(write, piece_of(nullptr, eviction).request);
      });
      has_started = start() || has_started;
    }
    return has_started;
  }

  // What waits, as far as the device takes it. True: it has taken some, and is to be kicked.
  bool start() {
    bool has_started = false;
    while (!waiting_.empty()) {
      Request* const one[] = {waiting_.front()};
      if (one[0]->op == Op::kRead)
        static_cast<Piece*>(one[0]->user)->began_ns = store_.memory_.begin_device_read();
      if (device().enqueue(one) == 0) {
        if (one[0]->op == Op::kRead) store_.memory_.give_up_device_read();
        break;
      }
      has_started = true;
      waiting_.pop_front();
    }
    return has_started;
  }
  void take_in() {
    Completion some[32];
    while (const size_t count = device().reap(some))
      for (const Completion& done : std::span(some).first(count)) ended(done);
  }
  void ended(const Completion& done) {
    auto* const piece = static_cast<Piece*>(done.request->user);
    if (piece->request.op == Op::kRead)
      store_.memory_.end_device_read(piece->began_ns, piece->request.bytes());
    if (Eviction* const eviction = piece->eviction) {
      if (done.error != 0) eviction->error = done.error;
      if (--eviction->left == 0) {
        store_.pages_->end_eviction(eviction->leaving, eviction->error == 0);
        store_.put_back(eviction->buffer);
        evictions_.give_back(eviction);
      }
    } else {
      Whole* const whole = piece->whole;
      if (done.error != 0)
        whole->error = done.error;
      else if (piece->request.op == Op::kRead)
        store_.keep_what_was_read(piece->request);
      if (--whole->left == 0) {
        end_here(whole->request, whole->error);
        wholes_.give_back(whole);
      }
    }
    pieces_.give_back(piece);
  }

  // As many as were in use at a time.
  template <class One>
  class Many {
   public:
    One* take() {
      if (idle_.empty()) idle_.push_back(made_.emplace_back(std::make_unique<One>()).get());
      One* const one = idle_.back();
      idle_.pop_back();
      return one;
    }
    void give_back(One* one) { idle_.push_back(one); }

   private:
    std::vector<std::unique_ptr<One>> made_;
    std::vector<One*> idle_;
  };

  CompressedStore& store_;
  const size_t depth_;
  Atomic<size_t> taken_{0};
  Atomic<size_t> writes_under_way_{0};  // taken off writes_, and not yet begun
  platform::SmallLock mutex_;
  std::deque<Request*> writes_;   // which wait for a kick
  std::deque<Request*> waiting_;  // for room on the device
  std::vector<Run> runs_;
  Many<Piece> pieces_;
  Many<Whole> wholes_;
  Many<Eviction> evictions_;
};

Result<std::unique_ptr<Store>> CompressedStore::around(std::unique_ptr<Store> device,
                                                       CompressedMemory& memory) {
  std::unique_ptr<CompressedStore> store(new CompressedStore(std::move(device), memory));
  auto pages = Pages::create(store->size_bytes(), *memory.codec, memory.budget);
  if (!pages) return pages.status();
  store->pages_ = std::move(*pages);
  auto buffers = platform::map_anonymous(kBuffers * Pages::kGroupBytes);
  if (!buffers) return buffers.status();
  store->buffers_memory_ = std::move(*buffers);
  for (size_t i = 0; i < kBuffers; ++i)
    store->buffers_.push_back(store->buffers_memory_.data() + i * Pages::kGroupBytes);
  std::lock_guard lock(memory.mutex_);
  memory.stores_.push_back(store.get());
  return std::unique_ptr<Store>(std::move(store));
}

CompressedStore::~CompressedStore() {
  std::lock_guard lock(memory_.mutex_);
  std::erase(memory_.stores_, this);
}

CompressedMemory::DeviceReads CompressedMemory::take_device_reads() {
  const uint64_t ns = read_ns_.load_relaxed(), pages = read_pages_.load_relaxed();
  read_ns_.fetch_sub_relaxed(ns);
  read_pages_.fetch_sub_relaxed(pages);
  return {static_cast<double>(ns), static_cast<double>(pages)};
}

uint64_t CompressedMemory::begin_device_read() {
  reads_under_way_.fetch_add_relaxed(1);
  return platform::monotonic_ns();
}

void CompressedMemory::give_up_device_read() { reads_under_way_.fetch_sub_relaxed(1); }

void CompressedMemory::end_device_read(uint64_t began_ns, uint64_t bytes) {
  const uint64_t together = std::max<uint64_t>(reads_under_way_.fetch_sub_relaxed(1), 1);
  const uint64_t cpus = platform::cpu_count();
  read_ns_.fetch_add_relaxed((platform::monotonic_ns() - began_ns) * std::min(cpus, together) / together);
  read_pages_.fetch_add_relaxed(bytes / kPageBytes);
}

// A store is not closed while it evicts: that waits for mutex_.
void CompressedMemory::evict_to_budget() {
  bool is_going_on = true;
  for (size_t round = 0; is_going_on && round < kEvictionsMax; ++round) {
    is_going_on = false;
    std::lock_guard lock(mutex_);
    for (CompressedStore* const store : stores_) is_going_on = store->evict_one() || is_going_on;
  }
}

// The thread that had mutex_ may be its parent's; stores are opened and closed by who keeps forks away.
void CompressedMemory::in_child() {
  new (&mutex_) platform::SmallLock;
  reads_under_way_.store_relaxed(0);
  codec->in_child();
}

bool CompressedStore::evict_one() {
  if (memory_.budget.bytes.load_relaxed() <= memory_.budget.bytes_max.load_relaxed()) return false;
  std::byte* const buffer = take_buffer();
  if (buffer == nullptr) return false;
  const uint64_t held = memory_.budget.bytes.load_relaxed();
  const auto leaving = pages_->begin_eviction(buffer);
  if (leaving) {
    Status status;
    for_each_write(*leaving, buffer, [&](Request& write) {
      if (status) status = device().transfer(write);
    });
    pages_->end_eviction(*leaving, static_cast<bool>(status));
    put_back(buffer);
    return static_cast<bool>(status);
  }
  put_back(buffer);
  return memory_.budget.bytes.load_relaxed() < held;
}

std::string CompressedStore::describe() const {
  return StoreAround::describe() + " behind memory compressed by " + memory_.codec->name();
}

std::string CompressedStore::describe_at(uint64_t offset_bytes) const {
  return StoreAround::describe_at(offset_bytes) + " behind memory compressed by " + memory_.codec->name();
}

Result<std::unique_ptr<IoQueue>> CompressedStore::open_queue(size_t depth) {
  auto queue = device().open_queue(depth);
  if (!queue) return queue;
  return std::unique_ptr<IoQueue>(std::make_unique<Queue>(*this, std::move(*queue), depth));
}

// In a stack of its own, so that the thread sanitizer can be told of contents that change meanwhile.
[[gnu::noinline]] int CompressedStore::do_here(const Request& request, std::vector<Run>& runs) {
  const uint64_t first = request.offset_bytes / kPageBytes;
  if (request.op == Op::kDiscard) pages_->discard(first, request.discard_bytes / kPageBytes);
  if (request.op != Op::kRead && request.op != Op::kWrite) return 0;
  int error = 0;
  for_each_page(request, [&](uint64_t page, std::byte* contents) {
    bool is_done = false;
    if (request.op == Op::kWrite) {
      is_done = pages_->keep(page, contents);
    } else {
      const Pages::Found found = pages_->read(page, contents);
      if (found == Pages::Found::kDamaged) error = kNotAsWritten;
      is_done = found != Pages::Found::kOnDevice;
    }
    if (is_done) return true;
    if (!runs.empty() && runs.back().first + runs.back().count == page - first)
      ++runs.back().count;
    else
      runs.push_back({page - first, 1});
    return true;
  });
  return error;
}

void CompressedStore::keep_what_was_read(const Request& request) {
  for_each_page(request, [&](uint64_t page, const std::byte* contents) {
    pages_->keep_what_was_read(page, contents);
    return true;
  });
}

Status CompressedStore::transfer(Request& request) {
  if (is_refused(request)) return refused();
  std::vector<Run> runs;
  if (do_here(request, runs) != 0)
    return Status::sentence(kNotAsWritten, "what " + describe() + " has in memory cannot be opened");
  if (request.op != Op::kRead && request.op != Op::kWrite) return device().transfer(request);
  for (const Run& run : runs) {
    Request piece;
    cut(request, run.first, run.count, piece);
    const bool is_read = request.op == Op::kRead;
    const uint64_t began_ns = is_read ? memory_.begin_device_read() : 0;
    Status status = device().transfer(piece);
    if (is_read) memory_.end_device_read(began_ns, piece.bytes());
    if (!status) return status;
    if (is_read) keep_what_was_read(piece);
  }
  return {};
}

std::byte* CompressedStore::take_buffer() {
  std::lock_guard lock(buffers_mutex_);
  if (buffers_.empty()) return nullptr;
  std::byte* const taken = buffers_.back();
  buffers_.pop_back();
  return taken;
}

void CompressedStore::put_back(std::byte* buffer) {
  std::lock_guard lock(buffers_mutex_);
  buffers_.push_back(buffer);
}

void CompressedStore::lock_for_fork() {
  buffers_mutex_.lock();
  pages_->lock_for_fork();
  device().lock_for_fork();
}

void CompressedStore::unlock_after_fork() {
  device().unlock_after_fork();
  pages_->unlock_after_fork();
  buffers_mutex_.unlock();
}

// After lock_for_fork() of its parent's.
void CompressedStore::in_child() {
  device().in_child();
  memory_.in_child();
  pages_->in_child();
  buffers_mutex_.unlock();
}

}  // namespace spw::store
