// The paper's linked-list: N elements, of which the second half is shuffled into the first, one behind each.
//
// An element is a node and a text, its number. Both are filled before
// anybody can reach them; the section links the node in, one store.
// Five stores an element: the node's text, the text's digits, their end, the node's successor, and the predecessor's
// link (of the first element: the list's). They are on three lines: text, node and predecessor, see arena.h. Together
// 30,000 lines for 49,999 stores, 0.60001.
//
// Inferred: the one store that is missing to 50,000 is the last element's successor. It goes behind what has none, and
// is left as it was allocated, zero. The paper calls the program multi-threaded; its numbers are those of the one in
// the Atlas repository that has one thread, with 10,000 elements one at a time. Sections here are by a mutex, as a
// program with threads has them. size: N. rounds: lists.
#include <charconv>
#include <cstdlib>
#include <mutex>

#include "durable/arena.h"

namespace spw::bench {

namespace {

struct Node {
  char* text;
  Node* next;
};

struct alignas(64) List {
  Node* first;
};

class Shuffle {
 public:
  Shuffle(Arena& arena, List& list) : arena_(arena), list_(list) {}

  // The first half.
  void append(uint64_t number) {
    Node* node = new_node(number);
    store<Node*>(node->next, nullptr);
    std::lock_guard lock(mutex_);
    store(after_ == nullptr ? list_.first : after_->next, node);
    after_ = node;
  }
  void rewind() { after_ = list_.first; }
  // Behind the next element of the first half.
  void insert(uint64_t number) {
    Node* node = new_node(number);
    std::lock_guard lock(mutex_);
    Node* successor = after_->next;
    if (successor != nullptr) store(node->next, successor);
    store(after_->next, node);
    after_ = successor;
  }

 private:
  Node* new_node(uint64_t number) {
    char digits[20];
    const auto length =
        static_cast<size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr - digits);
    Node* node = arena_.allocate<Node>();
    char* text = static_cast<char*>(arena_.allocate(length + 1));
    store(node->text, text);
    store_bytes(text, digits, length);
    store(text[length], '\0');
    return node;
  }

  Arena& arena_;
  List& list_;
  std::mutex mutex_;
  Node* after_ = nullptr;  // where the next element goes
};

void check(const List& list, uint64_t size) {
  uint64_t place = 0;
  for (const Node* node = list.first; node != nullptr; node = node->next, ++place) {
    const uint64_t expected = place % 2 == 0 ? place / 2 + 1 : size / 2 + place / 2 + 1;
    if (std::strtoull(node->text, nullptr, 10) != expected) die("the list is not shuffled");
  }
  if (place != size) die("the list has lost elements");
}

}  // namespace

void run_linked_list(Run& run) {
  if (run.size == 0 || run.size % 2 != 0) die("linked-list: the size is even");
  run.start();
  for (uint64_t round = 0; round < run.rounds; ++round) {
    Arena arena(run);
    auto* list = run.allocate<List>();
    Shuffle shuffle(arena, *list);
    for (uint64_t i = 1; i <= run.size / 2; ++i) shuffle.append(i);
    shuffle.rewind();
    for (uint64_t i = run.size / 2 + 1; i <= run.size; ++i) shuffle.insert(i);
    check(*list, run.size);
  }
  run.stop();
}

}  // namespace spw::bench
