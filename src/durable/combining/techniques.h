// The techniques, one class each; write_combiner.h says what each does.
//
// Threads, limits: as there.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "durable/combining/line_cache.h"
#include "durable/combining/line_profile.h"
#include "durable/combining/line_set.h"
#include "durable/combining/size_choice.h"
#include "durable/combining/write_combiner.h"

namespace spw::durable {

// written() comes before the store, so a line is flushed by the call
// after: one flush for each store, also where lines repeat.
class EagerCombiner final : public WriteCombiner {
 public:
  explicit EagerCombiner(LineFlusher& flusher) : flusher_(flusher) {}

  void written(Line line) override { flush_last(line); }
  void end_section() override { flush_last(kNoLine); }
  uint32_t size() const override { return 1; }

 private:
  void flush_last(Line next) {
    const Line last = std::exchange(last_, next);
    if (last != kNoLine) flusher_.flush(last);
  }

  LineFlusher& flusher_;
  Line last_ = kNoLine;
};

// In ascending order, so that neighbours can be written back by one request.
class LazyCombiner final : public WriteCombiner {
 public:
  explicit LazyCombiner(LineFlusher& flusher) : flusher_(flusher) {}

  void written(Line line) override {
    if (line == last_) return;
    last_ = line;
    lines_.insert(line);
  }
  void end_section() override {
    std::sort(lines_.lines().begin(), lines_.lines().end());
    for (const Line line : lines_.lines()) flusher_.flush(line);
    lines_.clear();
    last_ = kNoLine;
  }
  uint32_t size() const override { return UINT32_MAX; }

 private:
  LineFlusher& flusher_;
  Line last_ = kNoLine;
  LineSet lines_;
};

// As in Atlas: an entry for each value of a line number's low bits. At the end the entries are flushed in their order.
class TableCombiner final : public WriteCombiner {
 public:
  static constexpr uint32_t kEntries = 8;

  explicit TableCombiner(LineFlusher& flusher) : flusher_(flusher) { entries_.fill(kNoLine); }

  void written(Line line) override {
    Line& entry = entries_[line % kEntries];
    if (entry != line) replace(entry, line);
  }
  void end_section() override {
    for (Line& entry : entries_) replace(entry, kNoLine);
  }
  uint32_t size() const override { return kEntries; }

 private:
  void replace(Line& entry, Line line) {
    const Line before = std::exchange(entry, line);
    if (before != kNoLine) flusher_.flush(before);
  }

  LineFlusher& flusher_;
  std::array<Line, kEntries> entries_;
};

class FixedCombiner final : public WriteCombiner {
 public:
  FixedCombiner(uint32_t size, LineFlusher& flusher) : cache_(size, size, flusher) {}

  void written(Line line) override { cache_.written(line); }
  void end_section() override { cache_.flush_all(); }
  uint32_t size() const override { return cache_.size(); }

 private:
  LineCache cache_;
};

// One burst of writes is watched, then the size is set and what
// watched is gone: the paper found one enough and hibernates for ever.
class AdaptiveCombiner final : public WriteCombiner {
 public:
  AdaptiveCombiner(const CombinerOptions& options, LineFlusher& flusher)
      : burst_writes_(options.burst_writes),
        cache_(std::min(options.size_start, options.size_max), options.size_max, flusher),
        profile_(std::make_unique<LineProfile>(options.size_max)) {}

  void written(Line line) override {
    if (line != passed_) written_other(line);
  }
  void end_section() override {
    if (profile_ != nullptr) [[unlikely]]
      profile_->end_section();
    cache_.flush_all();
    passed_ = kNoLine;
  }
  uint32_t size() const override { return cache_.size(); }

 private:
  void written_other(Line line);

  const uint64_t burst_writes_;
  Line passed_ =
      kNoLine;  // the newest line, from the choice on: one comparison then tells that there is nothing to do
  LineCache cache_;
  std::unique_ptr<LineProfile> profile_;  // until the size is chosen
};

class NoCombiner final : public WriteCombiner {
 public:
  void written(Line) override {}
  void end_section() override {}
  uint32_t size() const override { return 0; }
};

// Any of the others, with all its writes watched.
class ProfilingCombiner final : public WriteCombiner {
 public:
  ProfilingCombiner(std::unique_ptr<WriteCombiner> watched, uint32_t size_max)
      : watched_(std::move(watched)), size_max_(size_max), profile_(size_max) {}

  void written(Line line) override {
    profile_.written(line);
    watched_->written(line);
  }
  void end_section() override {
    profile_.end_section();
    watched_->end_section();
  }
  uint32_t size() const override { return watched_->size(); }
  uint32_t profiled_size() const override { return choose_size(profile_.curve(), size_max_); }

 private:
  std::unique_ptr<WriteCombiner> watched_;
  const uint32_t size_max_;
  LineProfile profile_;
};

}  // namespace spw::durable
