// Persistent memory that can lose power: what a region's code stored,
// what of it is durable, and what a crash may leave.
//
// As memory (`leaks`): a line may become durable at any moment from when it is stored to, and its words one by one; it
// is durable when it was written back and a fence has passed. As blocks: nothing is durable before a fence, and a crash
// in one leaves any of its sectors. Every write-back, fence and announced store is a moment at which the power may go:
// then Crash is thrown, and lose_power() says what is left.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "durable/persistent_region.h"

namespace spw::durable {

struct Crash {};

// Small enough for a crash to take little time, with first log segments that are soon full.
inline LayoutOptions small_layout(uint32_t slots) {
  LayoutOptions layout;
  layout.capacity_bytes = 2 * kMiB;
  layout.slots = slots;
  layout.segment_bytes = 2048;
  return layout;
}

class SimulatedMemory final : public Persistence, public Grower {
 public:
  // Its heap grows by `growth_bytes` at most.
  SimulatedMemory(bool leaks, uint64_t seed, const LayoutOptions& layout, uint64_t heap_bytes,
                  uint64_t growth_bytes = 0)
      : leaks_(leaks), rng_(seed) {
    const uint64_t bytes = layout.capacity_bytes;
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    SPW_CHECK(memory != MAP_FAILED);
    view_ = format_memory(static_cast<std::byte*>(memory), layout, heap_bytes);
    durable_.assign(view_.mapped, view_.mapped + view_.bytes);
    bytes_max_ = view_.bytes + growth_bytes;
  }
  ~SimulatedMemory() override { munmap(view_.mapped, view_.header().capacity_bytes); }

  const RegionView& view() const { return view_; }
  // The power goes at the moment'th moment from now; 0: it stays.
  void crash_at(uint64_t moment) { left_ = moment; }

  void moment() {
    ++moments_;
    if (leaks_ && !touched_.empty() && rng_.below(4) == 0) leak(touched_[rng_.below(touched_.size())]);
    if (left_ != 0 && --left_ == 0) throw Crash{};
  }
  // The program has stored there.
  void stored(const void* at) {
    touch(static_cast<const std::byte*>(at));
    moment();
  }
  // What is in memory now is what a crash at this moment may leave.
  void lose_power() {
    for (const auto& [line, contents] : in_flight_) keep_some(line, contents.data());
    if (leaks_)
      for (uint64_t line = 0; line < view_.bytes >> kLineShift; ++line) {
        const std::byte* now = view_.mapped + (line << kLineShift);
        if (std::memcmp(now, durable_.data() + (line << kLineShift), kLineBytes) != 0) keep_some(line, now);
      }
    std::memcpy(view_.mapped, durable_.data(), view_.bytes);
    in_flight_.clear();
    touched_.clear();
    left_ = 0;
  }

  unsigned grain_shift() const override { return leaks_ ? kLineShift : 9; }
  bool stores_leak() const override { return leaks_; }
  std::unique_ptr<Writer> open_writer() override { return std::make_unique<SimulatedWriter>(*this, false); }
  std::unique_ptr<Writer> open_log_writer() override {
    return std::make_unique<SimulatedWriter>(*this, true);
  }
  void set_logs(Logs* logs) override { logs_ = logs; }
  // The power goes before the file is longer, or when it is.
  Status grow_to(uint64_t bytes) override {
    if (bytes > bytes_max_) return Status::sentence(ENOSPC, "the simulated memory is full");
    moment();
    durable_.resize(bytes);
    view_.bytes = bytes;
    moment();
    return {};
  }
  void fail_writes(bool fail) { fails_ = fail; }

 private:
  using Line = std::array<std::byte, kLineBytes>;

  class SimulatedWriter final : public Writer {
   public:
    SimulatedWriter(SimulatedMemory& memory, bool is_for_logs) : memory_(memory), is_for_logs_(is_for_logs) {}
    void write_back(const void* first, size_t bytes) override {
      SimulatedMemory& memory = memory_;
      const uint64_t begin =
          static_cast<uint64_t>(static_cast<const std::byte*>(first) - memory.view_.mapped);
      const unsigned shift = memory.grain_shift();
      const uint64_t end = round_up(begin + bytes, uint64_t{1} << shift);
      for (uint64_t at = round_down(begin, uint64_t{1} << shift); at < end; at += kLineBytes) {
        lines_.push_back(at >> kLineShift);
        if (memory.leaks_) memory.take_off(at >> kLineShift);
      }
      memory.touch(static_cast<const std::byte*>(first));
      memory.moment();
    }
    Status fence() override {
      SimulatedMemory& memory = memory_;
      if (memory.fails_) return Status(EIO, "cannot write to the simulated memory");
      if (!memory.leaks_) {
        std::vector<std::pair<uint64_t, Line>> copies;
        for (const uint64_t line : lines_) copies.emplace_back(line, memory.contents(line));
        if (!is_for_logs_ && memory.logs_ != nullptr && !lines_.empty())
          if (Status status = memory.logs_->persist(); !status) return status;
        for (const auto& [line, contents] : copies) memory.in_flight_[line] = contents;
      }
      memory.moment();
      for (const uint64_t line : lines_) memory.settle(line);
      lines_.clear();
      return {};
    }

   private:
    SimulatedMemory& memory_;
    const bool is_for_logs_;
    std::vector<uint64_t> lines_;
  };

  Line contents(uint64_t line) const {
    Line contents;
    std::memcpy(contents.data(), view_.mapped + (line << kLineShift), kLineBytes);
    return contents;
  }
  void touch(const std::byte* at) {
    const uint64_t line = static_cast<uint64_t>(at - view_.mapped) >> kLineShift;
    if (touched_.size() < kTouchedMax)
      touched_.push_back(line);
    else
      touched_[moments_ % kTouchedMax] = line;
  }
  // Begins its way.
  void take_off(uint64_t line) { in_flight_[line] = contents(line); }
  // Has arrived: as it was when it took off or, where stores leak, as
  // it is now. What has leaked since is newer than either.
  void settle(uint64_t line) {
    const auto found = in_flight_.find(line);
    if (found == in_flight_.end()) return;
    std::memcpy(durable_.data() + (line << kLineShift), found->second.data(), kLineBytes);
    in_flight_.erase(found);
    if (leaks_ && rng_.below(2) == 0) leak(line);
  }
  void leak(uint64_t line) {
    std::memcpy(durable_.data() + (line << kLineShift), view_.mapped + (line << kLineShift), kLineBytes);
    in_flight_.erase(line);
  }
  // Nothing of the line, all of it, or any of its words.
  void keep_some(uint64_t line, const std::byte* from) {
    const uint64_t how = rng_.below(3);
    if (how == 0) return;
    const uint64_t words = how == 1 ? 0xFF : rng_.below(256);
    for (unsigned word = 0; word < kLineBytes / 8; ++word)
      if (words >> word & 1)
        std::memcpy(durable_.data() + (line << kLineShift) + word * 8, from + word * 8, 8);
  }

  static constexpr size_t kTouchedMax = 64;

  const bool leaks_;
  Rng rng_;
  RegionView view_;
  std::vector<std::byte> durable_;
  uint64_t bytes_max_ = 0;
  std::map<uint64_t, Line> in_flight_;
  std::vector<uint64_t> touched_;
  Logs* logs_ = nullptr;
  uint64_t left_ = 0, moments_ = 0;
  bool fails_ = false;
};

}  // namespace spw::durable
