// NUMA partitions: each node of the machine has a share of the cache's partitions,
// and what another node needs of them is asked for by message (Zheng, Burns, Szalay:
// "A parallel page cache: IOPS and caching for multicore systems", section 3.1).
//
//     thread on node 0 --(its own node's blocks: by itself)
//            Port   --up to kRequestsAMessage requests--> worker of node 1: pins, copies, unpins --as many replies--> Port
//
// A request names memory that bytes are copied to or from, so a remote block's lines are touched by its own node's
// processors only, and a message costs the same for one request as for many. There is a worker for each processor of a
// node, bound to it; a block is always served by the same one.
//
// On a machine with one node, or told to, the nodes are simulated: so
// many groups of workers, bound to nothing. All else is the same.
//
// Threads: a Port is one thread's at a time; others are the exchange's own.
// Lifetime: ports are closed, with nothing in flight, before the exchange; the exchange ends before the cache.
// Limits: kPortInFlightMax requests of one port at a time; a request is within one block.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cache/cache.h"
#include "nodes/message_queue.h"
#include "platform/thread.h"

namespace spw::nodes {

struct BlockRequest {
  BlockId block;
  uint32_t offset_bytes = 0;  // within the block
  uint32_t bytes = 0;
  cache::Access access = cache::Access::kRead;  // kOverwrite: the whole block
  std::byte* buffer = nullptr;
  void* user = nullptr;
};

struct BlockReply {
  void* user;
  int error;  // 0, or an errno: the cache's error handler has been told
};

class NodeExchange {
 public:
  static constexpr size_t kRequestsAMessage = 16;
  static constexpr size_t kPortInFlightMax = 512;

  struct Layout {
    unsigned nodes = 1;
    unsigned workers_a_node = 1;
    bool is_simulated = true;  // else workers are bound to the processors of their nodes
  };
  static Result<std::unique_ptr<NodeExchange>> start(cache::SharedCache& cache, unsigned block_shift,
                                                     const Layout& layout);
  ~NodeExchange();

  unsigned nodes() const { return layout_.nodes; }
  bool is_simulated() const { return layout_.is_simulated; }
  // Where the calling thread runs now, if nodes are not simulated.
  unsigned node_here() const;
  unsigned node_of(BlockId block) const { return cache_.partition_map().of(block).value % layout_.nodes; }

  // One thread's door. `node`: where that thread runs, as a number among the nodes that have processors.
  class Port;
  Result<Port*> open_port(unsigned node);
  void close_port(Port* port);

 private:
  struct RequestMessage {
    Port* from;
    uint32_t count;
    BlockRequest requests[kRequestsAMessage];
  };
  struct ReplyMessage {
    uint32_t count;
    BlockReply replies[kRequestsAMessage];
  };
  struct Worker {
    explicit Worker(uint64_t capacity) : inbox(capacity) {}
    MessageQueue<RequestMessage> inbox;
    Atomic<bool> stop;
    platform::Thread thread;
  };

  NodeExchange(cache::SharedCache& cache, unsigned block_shift, const Layout& layout)
      : cache_(cache), block_shift_(block_shift), layout_(layout) {}
  unsigned worker_of(BlockId block) const;
  void run(Worker& worker, cache::Client& client);
  void ask_ahead(cache::Client& client, const RequestMessage& message);
  int serve(cache::Client& client, const BlockRequest& request);

  cache::SharedCache& cache_;
  const unsigned block_shift_;
  const Layout layout_;
  std::vector<unsigned> machine_nodes_;           // by number, if nodes are not simulated
  std::vector<std::unique_ptr<Worker>> workers_;  // those of node n: from n * workers_a_node on
  std::mutex ports_mutex_;
  std::vector<std::unique_ptr<Port>> ports_;
};

class NodeExchange::Port {
 public:
  // Takes as many of the requests as may be in flight; those of the port's own node are done when this returns, and
  // their replies wait to be received. The rest is on its way after send(), which receive() calls before it waits.
  size_t submit(std::span<const BlockRequest> requests);
  void send();
  // Up to replies.size() of what is done. Waits until there is one, if anything is in flight and `wait` says so.
  size_t receive(std::span<BlockReply> replies, bool wait);
  size_t in_flight() const { return in_flight_; }
  unsigned node() const { return node_; }
  // Messages sent so far.
  uint64_t messages() const { return messages_; }

 private:
  friend class NodeExchange;
  Port(NodeExchange& exchange, cache::Client& client, unsigned node);
  void send_to(unsigned worker);

  NodeExchange& exchange_;
  cache::Client* client_;
  unsigned node_;
  bool open_ = true;
  size_t in_flight_ = 0;
  uint64_t messages_ = 0;
  std::vector<RequestMessage> bundles_;  // one a worker
  MessageQueue<ReplyMessage> inbox_;
  std::vector<BlockReply> done_;  // here, and not received yet; the last first
};

}  // namespace spw::nodes
