// The paper's queue: Michael and Scott's with two locks, one for each end.
//
// An enqueue fills a node, of which nobody knows yet, outside of any section; the section is the tail lock's: the last
// node's link and the queue's tail. A dequeue stores the head under the head lock. A thread's stores outside of
// sections are written back with its next section.
//
// Inferred: the paper's 400,006 stores are those of the thread that enqueues, four an item and six to begin with; a
// dequeue's one store is not among them, with it there were 500,006. (Its programs' counters are each thread's own.)
// 0.625 of them is 2.5 lines an item, see arena.h. So what is held against the paper is counted before dequeuing
// begins; the figures of all are given besides: 0.7, 3.5 lines for 5 stores. Its queue stores the addresses of two
// mutexes as well, which mean nothing after a restart; ours are not in the region, so there are 400,004. The paper's
// 300 K sections are those, and one for each look of the dequeuing thread at whether all is done, in which nothing is
// stored; those are no part of our count.
//
// One thread enqueues everything, then another one dequeues it: a dequeue that found a node by its link alone, with no
// lock that the enqueue had taken, would not depend on it. std::mutex needs no announcement in a program that is linked
// with the runtime. size: items. rounds: times over.
#include <mutex>
#include <thread>

#include "durable/arena.h"

namespace spw::bench {

namespace {

struct Node {
  int32_t value;
  Node* next;
};

struct Ends {
  Node* head;
  Node* tail;
};

class Queue {
 public:
  Queue(Arena& arena, Ends& ends) : arena_(arena), ends_(ends) {
    Node* dummy = new_node(-1);
    Section section;
    store(ends_.head, dummy);
    store(ends_.tail, dummy);
  }

  void enqueue(int32_t value) {
    Node* node = new_node(value);
    std::lock_guard lock(tail_mutex_);
    store(ends_.tail->next, node);
    store(ends_.tail, node);
  }
  bool dequeue(int32_t& value) {
    std::lock_guard lock(head_mutex_);
    Node* first = ends_.head->next;
    if (first == nullptr) return false;
    value = first->value;
    store(ends_.head, first);
    return true;
  }

 private:
  Node* new_node(int32_t value) {
    Node* node = arena_.allocate<Node>();
    store(node->value, value);
    store<Node*>(node->next, nullptr);
    return node;
  }

  Arena& arena_;
  Ends& ends_;
  std::mutex head_mutex_, tail_mutex_;
};

}  // namespace

void run_queue(Run& run) {
  Arena arena(run);
  auto* ends = static_cast<Ends*>(run.allocate(64));
  const auto items = static_cast<int32_t>(run.size);
  std::mutex done_mutex;
  bool is_done = false;
  run.start();
  Queue queue(arena, *ends);
  for (uint64_t round = 0; round < run.rounds; ++round) {
    std::thread([&] {
      for (int32_t i = 0; i < items; ++i) queue.enqueue(i);
      std::lock_guard lock(done_mutex);
      is_done = true;
    }).join();
    run.counted();
    std::thread([&] {
      int32_t value = 0, expected = 0;
      for (bool stops = false; !stops;) {
        while (queue.dequeue(value))
          if (value != expected++) die("the queue has lost its order");
        std::lock_guard lock(done_mutex);
        stops = is_done;
      }
      if (expected != items) die("the queue has lost items");
    }).join();
  }
  run.stop();
}

}  // namespace spw::bench
