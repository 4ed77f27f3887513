// Batches of requests: many blocks on their way for one thread. On a machine of several
// memory nodes, those of other nodes are asked for by message (nodes/node_exchange.h);
// the rest, and everything on other machines, is asked for ahead and then copied.
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "abi/managed.h"
#include "access/copy.h"
#include "api/call.h"
#include "base/atomic.h"
#include "process/fatal.h"

using namespace spw;
using namespace spw::api;

// Submitted requests go from `pending` to `under_way`, when their blocks have been asked for, or are done at once. A
// `done` that submits only adds to `pending`: whoever runs the batch comes to it, so nothing recurses.
// Invariant: busy() <= in_flight_max between calls. Threads: one at a time.
struct spw_batch {
  explicit spw_batch(unsigned in_flight_limit) : in_flight_max(in_flight_limit) {}
  // Requests that somebody works on.
  size_t busy() const { return under_way.size() + bundle.size() + received + (port ? port->in_flight() : 0); }
  const unsigned in_flight_max;
  std::deque<spw_request*> pending;
  std::deque<spw_request*> under_way;  // the oldest first
  size_t done = 0;
  bool is_running = false;
  const pid_t process = ::getpid();
  nodes::NodeExchange* nodes = nullptr;
  nodes::NodeExchange::Port* port = nullptr;
  std::vector<nodes::BlockRequest> bundle;  // for other nodes, not submitted yet
  size_t received = 0;                      // answered, their functions not called yet
};

namespace {

constexpr unsigned kBatchInFlightMax = 65536;
// Requests for other nodes that are submitted together.
constexpr size_t kBundleMax = 64;
// How many of the oldest that are under way are looked at when one of them is done.
constexpr size_t kLooksMax = 64;

// What is wrong with a request; nullptr: nothing.
const char* fault_of(process::Runtime& runtime, const spw_request& request) {
  if (request.bytes == 0 || request.bytes > SPW_REQUEST_BYTES_MAX)
    return "its size is not from 1 to SPW_REQUEST_BYTES_MAX";
  if (!request.buffer || !request.done) return "it has no buffer, or no function to call";
  if (request.access > SPW_OVERWRITE) return "no such kind of access";
  if (!is_managed(request.address) ||
      !runtime.regions().is_live(reinterpret_cast<uintptr_t>(request.address), request.bytes))
    return "a part of its range is not managed memory";
  if (request.access != SPW_READ && is_read_only(runtime, request.address, request.bytes))
    return "it would write to memory that is mapped read-only";
  return nullptr;
}

bool is_there(const process::Runtime& runtime, const Span& span) {
  for (uint64_t i = 0; i < span.count; ++i)
    if (!runtime.cache().is_resident(span.first + i)) return false;
  return true;
}

// Block by block, each pinned meanwhile: no fault where it is there. Whole blocks to be overwritten are not read first.
void copy(const spw_request& request) {
  Call call;
  if (!call->engine().is_watching()) {
    request.access == SPW_READ ? access::copy_bytes(request.buffer, request.address, request.bytes)
                               : access::copy_bytes(request.address, request.buffer, request.bytes);
    return;
  }
  const cache::Access access = access_of(request.access);
  auto* const buffer = static_cast<std::byte*>(request.buffer);
  const auto begin = reinterpret_cast<uintptr_t>(request.address);
  for (size_t at = 0; at < request.bytes;) {
    const access::Window window = call->engine().pin(begin + at, request.bytes - at, access);
    if (request.access == SPW_READ)
      access::copy_bytes(buffer + at, window.data, window.bytes);
    else
      access::copy_bytes(window.data, buffer + at, window.bytes);
    call->engine().unpin(window);
    at += window.bytes;
  }
}

// Waits for the blocks if it has to. The function runs as a part of the program, not of the runtime.
void finish(spw_batch& batch, spw_request* request) {
  copy(*request);
  ++batch.done;
  request->done(request);
}

void finish_oldest(spw_batch& batch) {
  spw_request* const oldest = batch.under_way.front();
  batch.under_way.pop_front();
  finish(batch, oldest);
}

// Whether its blocks are there, or need not be: else they are asked for.
bool ask_for(const spw_request& request) {
  Call call;
  if (!call->engine().is_watching()) return true;
  const Span span = blocks_around(*call, request.address, request.bytes);
  const bool is_whole =
      span.begin == reinterpret_cast<uintptr_t>(request.address) && span.bytes == request.bytes;
  if ((request.access == SPW_OVERWRITE && is_whole) || is_there(*call, span)) return true;
  call->regions().prefetch(span.begin, span.bytes);
  return false;
}

// ---- Other nodes ----

// The port of this thread, if there are several nodes. Simulated ones are given to threads in turn.
void open_port(spw_batch& batch) {
  Call call;
  batch.nodes = call->nodes();
  if (!batch.nodes) return;
  static Atomic<unsigned> turn;
  unsigned node = turn.fetch_add_relaxed(1) % batch.nodes->nodes();
  if (!batch.nodes->is_simulated()) node = batch.nodes->node_here();
  auto opened = batch.nodes->open_port(node);
  if (opened) batch.port = *opened;
}

// Within one block of another node, with a buffer that its threads can reach.
bool is_for_another_node(const spw_batch& batch, const spw_request& request) {
  if (!batch.port || is_managed(request.buffer)) return false;
  Call call;
  if (!call->engine().is_watching()) return false;
  const Span span = blocks_around(*call, request.address, request.bytes);
  return span.count == 1 && batch.nodes->node_of(span.first) != batch.port->node();
}

// Calls the functions of what has come back.
void take_replies(spw_batch& batch, bool wait) {
  nodes::BlockReply replies[nodes::NodeExchange::kRequestsAMessage];
  size_t got;
  {
    InRuntime guard;
    got = batch.port->receive(replies, wait);
  }
  batch.received = got;
  for (size_t i = 0; i < got; ++i) {
    auto* const request = static_cast<spw_request*>(replies[i].user);
    if (replies[i].error != 0)  // others have ended the program already
      process::fatal(process::kExitUsage,
                     "a request of a batch is for memory that was unmapped before it was done");
    --batch.received;
    ++batch.done;
    request->done(request);
  }
}

void send_bundle(spw_batch& batch) {
  while (!batch.bundle.empty()) {
    {
      InRuntime guard;
      const size_t taken = batch.port->submit(batch.bundle);
      batch.bundle.erase(batch.bundle.begin(), batch.bundle.begin() + static_cast<ptrdiff_t>(taken));
    }
    if (!batch.bundle.empty()) take_replies(batch, true);
  }
}

void add_to_bundle(spw_batch& batch, spw_request* request) {
  {
    Call call;
    const Span span = blocks_around(*call, request->address, request->bytes);
    const auto offset = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(request->address) - span.begin);
    const bool is_whole = request->bytes == call->block_bytes();
    const cache::Access access =
        access_of(request->access == SPW_OVERWRITE && !is_whole ? SPW_WRITE : request->access);
    batch.bundle.push_back({span.first, offset, static_cast<uint32_t>(request->bytes), access,
                            static_cast<std::byte*>(request->buffer), request});
  }
  if (batch.bundle.size() == kBundleMax) send_bundle(batch);
}

// A forked child has none of the threads that answer.
bool is_inherited(const spw_batch& batch) { return batch.port && batch.process != ::getpid(); }
void stop_in_child(const spw_batch& batch) {
  if (is_inherited(batch)) process::fatal(process::kExitFailure, access::touched_in_child().message());
}

// ---- Running ----

// Those whose blocks have come meanwhile, which the oldest's did not tell of.
void finish_present(spw_batch& batch) {
  for (size_t i = std::min(batch.under_way.size(), kLooksMax); i > 0; --i) {
    spw_request* const next = batch.under_way.front();
    bool is_here;
    {
      Call call;
      batch.under_way.pop_front();
      is_here = is_there(*call, blocks_around(*call, next->address, next->bytes));
      if (!is_here) batch.under_way.push_back(next);
    }
    if (is_here) finish(batch, next);
  }
}

// Waits for one of those under way at least.
void finish_one(spw_batch& batch) {
  if (!batch.under_way.empty()) {
    finish_oldest(batch);
    return finish_present(batch);
  }
  send_bundle(batch);
  take_replies(batch, true);
}

void take_next(spw_batch& batch) {
  spw_request* const next = batch.pending.front();
  batch.pending.pop_front();
  if (is_for_another_node(batch, *next)) {
    add_to_bundle(batch, next);
    while (batch.busy() > batch.in_flight_max) finish_one(batch);
    return;
  }
  if (ask_for(*next)) return finish(batch, next);
  // Asked for first: it is read while the oldest is waited for.
  {
    InRuntime guard;
    batch.under_way.push_back(next);
  }
  while (batch.busy() > batch.in_flight_max) finish_one(batch);
}

void run_pending(spw_batch& batch, size_t count) {
  for (; count > 0; --count) take_next(batch);
  if (!batch.port) return;
  send_bundle(batch);
  take_replies(batch, false);
}

}  // namespace

SPW_PUBLIC struct spw_batch* spw_batch_create(unsigned in_flight_max) {
  if (in_flight_max < 1 || in_flight_max > kBatchInFlightMax) {
    bad_argument("a batch has from 1 to 65536 requests in flight");
    return nullptr;
  }
  Call call;
  auto* batch = new (std::nothrow) spw_batch(in_flight_max);
  if (!batch) {
    result_of(Status(ENOMEM, "making a batch"));
    return nullptr;
  }
  open_port(*batch);
  return batch;
}

SPW_PUBLIC int spw_batch_submit(struct spw_batch* batch, struct spw_request* requests, size_t count) {
  if (!batch || (!requests && count > 0)) return bad_argument("there is no batch, or no request");
  stop_in_child(*batch);
  {
    Call call;
    for (size_t i = 0; i < count; ++i)
      if (const char* fault = fault_of(*call, requests[i]))
        return bad_argument(("request " + std::to_string(i) + ": " + fault).c_str());
  }
  {
    InRuntime guard;
    for (size_t i = 0; i < count; ++i) batch->pending.push_back(&requests[i]);
  }
  if (batch->is_running) return 0;
  batch->is_running = true;
  // What is submitted meanwhile is left: it may never end.
  run_pending(*batch, batch->pending.size());
  batch->is_running = false;
  return 0;
}

SPW_PUBLIC size_t spw_batch_wait(struct spw_batch* batch, size_t at_least) {
  if (!batch || batch->is_running) return 0;
  stop_in_child(*batch);
  batch->is_running = true;
  const size_t before = batch->done;
  while (batch->done - before < at_least && spw_batch_in_flight(batch) > 0) {
    if (batch->pending.empty())
      finish_one(*batch);
    else
      run_pending(*batch, batch->pending.size());
  }
  batch->is_running = false;
  return batch->done - before;
}

SPW_PUBLIC size_t spw_batch_in_flight(const struct spw_batch* batch) {
  return batch ? batch->pending.size() + batch->busy() : 0;
}

SPW_PUBLIC void spw_batch_destroy(struct spw_batch* batch) {
  if (!batch) return;
  if (is_inherited(*batch)) return;  // those who would answer are the parent's
  spw_batch_wait(batch, SIZE_MAX);
  InRuntime guard;
  if (batch->port) batch->nodes->close_port(batch->port);
  delete batch;
}
