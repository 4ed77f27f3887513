#include "nodes/node_exchange.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "cache/client_thread.h"
#include "platform/numa.h"
#include "platform/spin.h"

namespace spw::nodes {

namespace {

constexpr uint64_t kInboxMessages = 256;
// About as long as a sleep and a wake cost.
constexpr int kIdleSpinsMax = 400;
constexpr uint64_t kSleepNs = 100'000'000;  // a safeguard: senders wake who sleeps

}  // namespace

Result<std::unique_ptr<NodeExchange>> NodeExchange::start(cache::SharedCache& cache, unsigned block_shift,
                                                          const Layout& layout) {
  if (layout.nodes == 0 || layout.workers_a_node == 0)
    return Status::sentence(EINVAL, "an exchange of no nodes, or of nodes without workers");
  std::unique_ptr<NodeExchange> exchange(new NodeExchange(cache, block_shift, layout));
  if (!layout.is_simulated) {
    exchange->machine_nodes_ = platform::nodes_with_processors();
    if (exchange->machine_nodes_.size() < layout.nodes)
      return Status::sentence(EINVAL, "an exchange of more nodes than the machine has");
  }
  for (unsigned w = 0; w < layout.nodes * layout.workers_a_node; ++w)
    exchange->workers_.push_back(std::make_unique<Worker>(kInboxMessages));
  for (unsigned w = 0; w < exchange->workers_.size(); ++w) {
    Worker& worker = *exchange->workers_[w];
    auto thread = cache::start_client_thread(
        cache,
        [&exchange = *exchange, &worker, w](cache::Client& client) {
          // Not bound where that is forbidden: slower, and right.
          if (!exchange.layout_.is_simulated)
            (void)platform::run_on_node(exchange.machine_nodes_[w / exchange.layout_.workers_a_node]).is_ok();
          exchange.run(worker, client);
        },
        cache::Uses::kSeen);
    if (!thread) return thread.status();
    worker.thread = std::move(*thread);
  }
  return exchange;
}

NodeExchange::~NodeExchange() {
  for (const auto& port : ports_) SPW_CHECK(!port->open_);
  for (const auto& worker : workers_) {
    worker->stop.store_release(true);
    worker->inbox.wake();
  }
  workers_.clear();  // joins them: one that has just answered still has to do with its port
}

Result<NodeExchange::Port*> NodeExchange::open_port(unsigned node) {
  SPW_CHECK(node < layout_.nodes);
  auto client = cache_.open_client();
  if (!client) return client.status();
  std::lock_guard lock(ports_mutex_);
  for (const auto& port : ports_) {
    if (port->open_) continue;
    port->open_ = true;
    port->client_ = *client;
    port->node_ = node;
    return port.get();
  }
  ports_.emplace_back(new Port(*this, **client, node));
  return ports_.back().get();
}

void NodeExchange::close_port(Port* port) {
  SPW_CHECK(port->in_flight_ == 0);
  cache_.close_client(port->client_);
  std::lock_guard lock(ports_mutex_);
  port->open_ = false;
}

unsigned NodeExchange::node_here() const {
  const auto here = std::find(machine_nodes_.begin(), machine_nodes_.end(), platform::current_node());
  const auto node = static_cast<unsigned>(here - machine_nodes_.begin());
  return node < layout_.nodes ? node : 0;
}

unsigned NodeExchange::worker_of(BlockId block) const {
  const unsigned turn = cache_.partition_map().of(block).value / layout_.nodes;
  return node_of(block) * layout_.workers_a_node + turn % layout_.workers_a_node;
}

// ---- A worker ----

void NodeExchange::run(Worker& worker, cache::Client& client) {
  RequestMessage message;
  int idle_spins = 0;
  while (!worker.stop.load_acquire()) {
    if (!worker.inbox.pop(&message)) {
      if (++idle_spins < kIdleSpinsMax)
        platform::spin_pause();
      else
        worker.inbox.wait(kSleepNs);
      continue;
    }
    idle_spins = 0;
    ask_ahead(client, message);
    ReplyMessage reply;
    reply.count = message.count;
    for (uint32_t i = 0; i < message.count; ++i)
      reply.replies[i] = {message.requests[i].user, serve(client, message.requests[i])};
    // A port's inbox has room for as many messages as it may have requests in flight.
    SPW_CHECK(message.from->inbox_.push(reply));
  }
}

// All that a message is for is read at a time, not one after the other.
void NodeExchange::ask_ahead(cache::Client& client, const RequestMessage& message) {
  if (message.count < 2) return;
  for (uint32_t i = 0; i < message.count; ++i) {
    const BlockRequest& request = message.requests[i];
    if (request.access != cache::Access::kOverwrite && !cache_.is_resident(request.block))
      cache_.prefetch(client, request.block, 1);
  }
}

int NodeExchange::serve(cache::Client& client, const BlockRequest& request) {
  cache::Pin pin;
  const Status status = cache_.pin(client, request.block, request.access, &pin);
  if (!status) return status.error();
  std::byte* const there = pin.data + request.offset_bytes;
  if (request.access == cache::Access::kRead)
    std::memcpy(request.buffer, there, request.bytes);
  else
    std::memcpy(there, request.buffer, request.bytes);
  cache_.unpin(client, pin.frame);
  return 0;
}

// ---- A port ----

NodeExchange::Port::Port(NodeExchange& exchange, cache::Client& client, unsigned node)
    : exchange_(exchange),
      client_(&client),
      node_(node),
      bundles_(exchange.workers_.size()),
      inbox_(kPortInFlightMax) {
  for (RequestMessage& bundle : bundles_) {
    bundle.from = this;
    bundle.count = 0;
  }
}

size_t NodeExchange::Port::submit(std::span<const BlockRequest> requests) {
  const size_t taken = std::min(requests.size(), kPortInFlightMax - in_flight_);
  in_flight_ += taken;
  // The others first: they are under way while this thread does its own.
  for (const BlockRequest& request : requests.first(taken)) {
    SPW_DCHECK(request.offset_bytes + uint64_t{request.bytes} <= uint64_t{1} << exchange_.block_shift_);
    if (exchange_.node_of(request.block) == node_) continue;
    RequestMessage& bundle = bundles_[exchange_.worker_of(request.block)];
    bundle.requests[bundle.count++] = request;
    if (bundle.count == kRequestsAMessage) send_to(exchange_.worker_of(request.block));
  }
  send();
  for (const BlockRequest& request : requests.first(taken))
    if (exchange_.node_of(request.block) == node_)
      done_.push_back({request.user, exchange_.serve(*client_, request)});
  return taken;
}

void NodeExchange::Port::send() {
  for (unsigned worker = 0; worker < bundles_.size(); ++worker)
    if (bundles_[worker].count > 0) send_to(worker);
}

// A worker whose inbox is full waits for nothing but the cache, so there will be room.
void NodeExchange::Port::send_to(unsigned worker) {
  RequestMessage& bundle = bundles_[worker];
  while (!exchange_.workers_[worker]->inbox.push(bundle)) platform::spin_pause();
  bundle.count = 0;
  ++messages_;
}

size_t NodeExchange::Port::receive(std::span<BlockReply> replies, bool wait) {
  size_t count = 0;
  int idle_spins = 0;
  while (count < replies.size() && in_flight_ > 0) {
    if (!done_.empty()) {
      replies[count++] = done_.back();
      done_.pop_back();
      --in_flight_;
      continue;
    }
    ReplyMessage message;
    if (inbox_.pop(&message)) {
      for (uint32_t i = 0; i < message.count; ++i) done_.push_back(message.replies[message.count - 1 - i]);
    } else if (count > 0 || !wait) {
      break;
    } else if (++idle_spins < kIdleSpinsMax) {
      platform::spin_pause();
    } else {
      inbox_.wait(kSleepNs);
    }
  }
  return count;
}

}  // namespace spw::nodes
