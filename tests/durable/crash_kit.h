// Threads, by turns in one, that lock, store to objects that several locks guard, push to and pop from a list, and put
// back what they stored; and what must be so after a crash: of each section all or nothing, in an order that the locks
// allow, nothing that was history is missing, and the list and the heap are whole.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "durable/check.h"
#include "durable/regions.h"
#include "simulated_memory.h"

namespace spw::durable {

// One word in each of three lines, always equal outside of sections.
struct Guarded {
  static constexpr unsigned kCopies = 3;
  struct Line {
    uint64_t value;
    uint64_t padding[7];
  } lines[kCopies];
};
struct Node {
  uint64_t next, value, padding[2];
};
struct List {
  uint64_t head, count;
};

class CrashKit {
 public:
  static constexpr unsigned kThreads = 3, kLocks = 3;

  CrashKit(bool leaks, uint64_t seed, const CombinerOptions& combiner)
      : rng_(seed), combiner_(combiner), memory_(leaks, seed + 1, small_layout(4), 12 * kChunkBytes) {
    open();
    set_up();
  }
  ~CrashKit() { drop(); }

  SimulatedMemory& memory() { return memory_; }
  // So many steps, or until the power goes: then what is left is recovered, and checked. True: it went.
  bool run(unsigned steps, uint64_t crash_at) {
    memory_.crash_at(crash_at);
    try {
      for (unsigned i = 0; i < steps; ++i) step();
      end_all();
      memory_.crash_at(0);
      return false;
    } catch (const Crash&) {
    }
    note_history();
    do {
      drop();
      memory_.lose_power();
    } while (!reopen());
    check();
    forget();
    return true;
  }
  uint64_t undone() const { return undone_; }
  uint64_t kept() const { return kept_; }
  uint64_t dependent() const { return dependent_; }

 private:
  // What the model knows of a section.
  struct Section {
    const Slot* slot = nullptr;
    uint64_t number = 0;
    bool was_history = false;
    std::vector<size_t> after;  // indices of sections that it must not outlive
  };

  // What a section stored to an object until another one did; each has a value of its own.
  struct Run {
    size_t section;
    uint64_t value;
  };

  static Guarded* guarded(uint64_t address) { return reinterpret_cast<Guarded*>(address); }
  List* list() const { return reinterpret_cast<List*>(list_); }

  void open() {
    auto region = PersistentRegion::attach(memory_.view(), memory_, memory_, combiner_);
    ASSERT_TRUE(region) << region.status().message();
    undone_ += (*region)->recovery().sections_undone;
    kept_ += (*region)->recovery().sections_kept;
    regions_ = std::make_unique<Regions>();
    ASSERT_TRUE(regions_->add(std::move(*region)));
  }
  // A recovery may lose power, too.
  bool reopen() {
    if (rng_.below(4) == 0) memory_.crash_at(1 + rng_.below(12));
    try {
      open();
    } catch (const Crash&) {
      return false;
    }
    memory_.crash_at(0);
    return true;
  }
  void drop() {
    regions_.reset();
    for (Thread& thread : threads_) thread = {};
  }
  void set_up() {
    Thread& thread = threads_[0];
    regions_->begin(thread);
    for (unsigned i = 0; i < kLocks; ++i) {
      objects_[i] = *regions_->allocate(thread, 0, sizeof(Guarded));
      store(thread, objects_[i], Guarded{});
      ASSERT_TRUE(regions_->set_root(thread, 0, "object" + std::to_string(i), objects_[i]));
    }
    list_ = *regions_->allocate(thread, 0, sizeof(List));
    store(thread, list_, List{});
    ASSERT_TRUE(regions_->end(thread));
    forget();
  }

  template <class T>
  void store(Thread& thread, uint64_t at, const T& value) {
    const Status status = regions_->before_store(thread, at, sizeof value);
    ASSERT_TRUE(status) << status.message();
    memory_.moment();
    for (size_t done = 0; done < sizeof value; done += sizeof(uint64_t)) {
      std::memcpy(reinterpret_cast<void*>(at + done), reinterpret_cast<const std::byte*>(&value) + done,
                  sizeof(uint64_t));
      if (done % kLineBytes == 0) memory_.stored(reinterpret_cast<void*>(at + done));
    }
    memory_.stored(reinterpret_cast<void*>(at));
  }

  void step() {
    const unsigned t = static_cast<unsigned>(rng_.below(kThreads));
    std::vector<unsigned>& held = held_[t];
    const uint64_t what = rng_.below(8);
    if (held.empty() || (what == 0 && held.size() < kLocks))
      return lock(t, static_cast<unsigned>(rng_.below(kLocks)));
    const size_t which = rng_.below(held.size());
    if (what <= 2) return unlock(t, which);
    if (what == 3 && !threads_[t].has_released) return put_back(t);
    write(t, held[which]);
  }
  void end_all() {
    for (unsigned t = 0; t < kThreads; ++t)
      while (!held_[t].empty()) unlock(t, 0);
  }

  void lock(unsigned t, unsigned which) {
    if (owner_[which] != kNobody) return;
    if (held_[t].empty()) {  // a section begins
      sections_.push_back({});
      if (last_of_[t] != kNone) sections_.back().after.push_back(last_of_[t]);
      last_of_[t] = current_[t] = sections_.size() - 1;
    }
    owner_[which] = t;
    held_[t].push_back(which);
    Section& section = sections_[current_[t]];
    if (released_by_[which] != kNone && released_by_[which] != current_[t])
      section.after.push_back(released_by_[which]);
    const Status status = regions_->acquired(threads_[t], &owner_[which]);
    ASSERT_TRUE(status) << status.message();
    note(t);
  }
  void unlock(unsigned t, size_t which) {
    const unsigned lock = held_[t][which];
    note(t);
    const Status status = regions_->releasing(threads_[t], &owner_[lock]);
    ASSERT_TRUE(status) << status.message();
    // One that has not stored yet hands nothing on.
    if (sections_[current_[t]].slot != nullptr) released_by_[lock] = current_[t];
    owner_[lock] = kNobody;
    held_[t].erase(held_[t].begin() + static_cast<std::ptrdiff_t>(which));
  }
  // Which of the slot's sections it is, once it takes part.
  void note(unsigned t) {
    const Slot* slot = threads_[t].parts[0].slot;
    if (slot == nullptr || !slot->is_open()) return;
    sections_[current_[t]].slot = slot;
    sections_[current_[t]].number = slot->section();
  }
  void put_back(unsigned t) {
    const Status status = regions_->restore(threads_[t]);
    ASSERT_TRUE(status) << status.message();
    for (std::vector<Run>& order : order_)
      std::erase_if(order, [&](const Run& run) { return run.section == current_[t]; });
  }
  void write(unsigned t, unsigned which) {
    std::vector<Run>& order = order_[which];
    if (order.empty() || order.back().section != current_[t]) order.push_back({current_[t], ++last_value_});
    const uint64_t value = order.back().value;
    if (rng_.below(2) == 0) {  // announced as one, stored line by line
      store(threads_[t], objects_[which], Guarded{{{value, {}}, {value, {}}, {value, {}}}});
    } else {
      for (auto& line : guarded(objects_[which])->lines)
        store(threads_[t], reinterpret_cast<uint64_t>(&line.value), value);
    }
    // The first lock guards the list, too.
    if (which == 0) rng_.below(2) == 0 || list()->head == 0 ? push(t, last_value_) : pop(t);
    note(t);
  }
  void push(unsigned t, uint64_t value) {
    if (list()->count >= 100) return;
    const auto node = regions_->allocate(threads_[t], 0, sizeof(Node));
    ASSERT_TRUE(node) << node.status().message();
    store(threads_[t], *node, Node{list()->head, value, {}});
    store(threads_[t], list_, List{*node, list()->count + 1});
  }
  void pop(unsigned t) {
    const uint64_t node = list()->head;
    store(threads_[t], list_, List{reinterpret_cast<Node*>(node)->next, list()->count - 1});
    const Status status = regions_->free(threads_[t], node);
    ASSERT_TRUE(status) << status.message();
  }

  // At the crash, before what knows of it is gone.
  void note_history() {
    for (Section& section : sections_)
      section.was_history = section.slot != nullptr && section.number <= section.slot->history();
  }
  void check() {
    std::vector<int> kept(sections_.size(), -1);  // -1: it wrote nothing, which shows nothing
    for (unsigned i = 0; i < kLocks; ++i) {
      const uint64_t root = regions_->region(0)->roots().get("object" + std::to_string(i));
      ASSERT_EQ(root, objects_[i]);
      const uint64_t value = guarded(root)->lines[0].value;
      for (const auto& line : guarded(root)->lines) ASSERT_EQ(line.value, value) << "torn, object " << i;
      bool is_kept = value != initial_[i];
      if (is_kept)
        ASSERT_TRUE(std::any_of(order_[i].begin(), order_[i].end(),
                                [&](const Run& run) { return run.value == value; }))
            << "nobody stored " << value << " to object " << i;
      for (const Run& run : order_[i]) {
        int& of = kept[run.section];
        ASSERT_TRUE(of == -1 || of == int{is_kept}) << "section " << run.section << " in part";
        of = is_kept;
        if (run.value == value) is_kept = false;
      }
    }
    for (size_t s = 0; s < sections_.size(); ++s) {
      ASSERT_FALSE(sections_[s].was_history && kept[s] == 0) << "lost: section " << s;
      if (kept[s] != 1) continue;
      for (const size_t before : sections_[s].after) {
        ASSERT_NE(kept[before], 0) << "section " << s << " outlived " << before;
        dependent_ += kept[before] == 1;
      }
    }
    check_heap();
  }
  void check_heap() {
    std::set<uint64_t> nodes;
    for (uint64_t at = list()->head; at != 0; at = reinterpret_cast<Node*>(at)->next) {
      ASSERT_TRUE(nodes.insert(at).second) << "the list goes round";
      ASSERT_EQ(regions_->region(0)->objects().size_of(at), sizeof(Node)) << "a node that is free";
    }
    ASSERT_EQ(nodes.size(), list()->count);
    const CheckReport report = check_region(memory_.view(), memory_.stores_leak());
    ASSERT_TRUE(report.problems.empty()) << report.problems.front();
    ASSERT_EQ(report.objects, nodes.size() + kLocks + 1) << "leaked or lost objects";
    ASSERT_EQ(report.sections_to_undo + report.sections_to_keep, 0u);
  }
  void forget() {
    sections_.clear();
    for (unsigned i = 0; i < kLocks; ++i) {
      order_[i].clear();
      initial_[i] = guarded(objects_[i])->lines[0].value;
      owner_[i] = kNobody;
      released_by_[i] = kNone;
    }
    for (unsigned t = 0; t < kThreads; ++t) {
      held_[t].clear();
      last_of_[t] = current_[t] = kNone;
    }
  }

  static constexpr unsigned kNobody = UINT32_MAX;
  static constexpr size_t kNone = SIZE_MAX;

  Rng rng_;
  const CombinerOptions combiner_;
  SimulatedMemory memory_;
  std::unique_ptr<Regions> regions_;
  Thread threads_[kThreads];
  uint64_t objects_[kLocks] = {}, list_ = 0, initial_[kLocks] = {};
  unsigned owner_[kLocks] = {};
  std::vector<unsigned> held_[kThreads];
  size_t last_of_[kThreads] = {}, current_[kThreads] = {}, released_by_[kLocks] = {};
  std::vector<Run> order_[kLocks];
  std::vector<Section> sections_;
  uint64_t last_value_ = 0, undone_ = 0, kept_ = 0, dependent_ = 0;
};

}  // namespace spw::durable
