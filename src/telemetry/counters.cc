#include "telemetry/counters.h"

#include <pthread.h>

#include <mutex>
#include <new>

#include "base/check.h"

namespace spw::telemetry {

namespace {

constexpr std::array<CounterInfo, kCounterCount> kInfos = {{
#define SPW_COUNTER(name, text, unit) {#name, text, unit},
#include "telemetry/counters.inc"
#undef SPW_COUNTER
}};

// A block with its place in the registry's list. Leaked on purpose: threads outlive static destruction.
struct Node {
  CounterBlock* block = nullptr;
  Node* next_all = nullptr;
  Node* next_free = nullptr;
};

// Where new blocks are placed.
struct Place {
  CounterBlock* next = nullptr;
  CounterBlock* end = nullptr;
  Atomic<uint32_t>* used = nullptr;
};

struct Registry {
  std::mutex mutex;
  Node* all = nullptr;   // every node ever made
  Node* free = nullptr;  // nodes whose thread has ended; their words stay as the retired sum
  Place place;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

CounterBlock* make_block(Place& place) {
  if (place.next == place.end) return new CounterBlock;
  auto* block = new (place.next++) CounterBlock;
  place.used->store_release(place.used->load_relaxed() +
                            1);  // pairs with the reader's acquire: it sees a block of zeros
  return block;
}

// Under the registry's lock.
Node* new_node(Registry& r) {
  Node* node = new Node;
  node->block = make_block(r.place);
  node->next_all = r.all;
  r.all = node;
  return node;
}

Node* take_node() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  Node* node = r.free;
  if (!node) return new_node(r);
  r.free = node->next_free;
  return node;
}

void give_back_node(Node* node) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  node->next_free = r.free;
  r.free = node;
}

// A key's destructor instead of a C++ one, whose registration takes the dynamic loader's lock: a thread that serves
// faults must not wait for it, since whoever has it may be waiting for a fault to be served.
void thread_ended(void* node) {
  detail::t_block = nullptr;
  give_back_node(static_cast<Node*>(node));
}
pthread_key_t end_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    SPW_CHECK(pthread_key_create(&made, &thread_ended) == 0);
    return made;
  }();
  return key;
}

void give_this_thread(Node* node) {
  detail::t_block = node->block;
  pthread_setspecific(end_key(), node);
}

}  // namespace

std::span<const CounterInfo, kCounterCount> counter_infos() { return kInfos; }

namespace detail {

constinit thread_local CounterBlock* t_block = nullptr;

CounterBlock& make_thread_counters() {
  give_this_thread(take_node());
  return *t_block;
}

}  // namespace detail

void place_counters(void* memory, size_t bytes, Atomic<uint32_t>& used) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto* first = static_cast<CounterBlock*>(memory);
  r.place = {first, first + bytes / sizeof(CounterBlock), &used};
  r.free = nullptr;  // the next thread's block is to be a new one
  // What this thread has counted so far stays where it is, out of the reader's sight.
  if (detail::t_block != nullptr) give_this_thread(new_node(r));
}

// A thread that is gone may have had the registry's lock, so it is made anew where it is.
void forget_placed_counters() {
  new (&registry()) Registry;
  detail::t_block = nullptr;
  pthread_setspecific(end_key(), nullptr);
}

Totals read_totals() {
  Totals totals{};
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (const Node* node = r.all; node; node = node->next_all)
    for (size_t i = 0; i < kCounterCount; ++i) totals[i] += node->block->words[i].load_relaxed();
  return totals;
}

Latencies read_miss_latencies() {
  Latencies latencies;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (const Node* node = r.all; node; node = node->next_all) latencies.add(node->block->miss_latencies);
  return latencies;
}

}  // namespace spw::telemetry
