// What tests of write combining share: traces of writes with section ends, a flusher that writes down what it is given,
// and models of the techniques that are too simple to be wrong.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <set>
#include <vector>

#include "base/rng.h"
#include "durable/combining/write_combiner.h"

namespace spw::durable {

inline constexpr Line kSectionEnd = kNoLine;  // in a trace

class FlushLog final : public LineFlusher {
 public:
  void flush(Line line) override { lines.push_back(line); }
  std::vector<Line> lines;
};

inline void run(WriteCombiner& combiner, const std::vector<Line>& trace) {
  for (const Line line : trace) {
    if (line == kSectionEnd)
      combiner.end_section();
    else
      combiner.written(line);
  }
}

inline std::vector<Line> flushes_of(const CombinerOptions& options, const std::vector<Line>& trace) {
  FlushLog log;
  run(*make_combiner(options, log), trace);
  return log.lines;
}

// Runs of one line, lines that come back soon, and now and then a far one; ends of sections in between and as the last.
inline std::vector<Line> random_writes(Rng& rng, size_t writes, uint64_t lines) {
  std::vector<Line> trace;
  while (trace.size() < writes) {
    const Line line = rng.below(8) == 0 ? rng.next() >> 6 : rng.below(lines);
    trace.insert(trace.end(), 1 + rng.below(3), line);
    while (rng.below(60) == 0) trace.push_back(kSectionEnd);
  }
  trace.push_back(kSectionEnd);
  return trace;
}

// `rounds` times: `stores` to each of `lines` lines, in order.
inline std::vector<Line> loop(uint64_t rounds, uint64_t lines, uint64_t stores = 1) {
  std::vector<Line> trace;
  for (uint64_t i = 0; i < rounds * lines * stores; ++i) trace.push_back(1000 + i / stores % lines);
  return trace;
}

// Of the paper's micro benchmark: 2500 times, 400 integers, each of 4 bytes, from a line's first byte on; one section.
inline std::vector<Line> persistent_array() {
  std::vector<Line> trace = loop(2500, 25, 16);
  trace.push_back(kSectionEnd);
  return trace;
}

// Two loops, a line of each in turn: an LRU cache combines the shorter one's writes from twice its length on, the
// longer one's from the sum of both on.
inline std::vector<Line> two_loops(uint64_t writes, uint64_t shorter, uint64_t longer) {
  std::vector<Line> trace;
  for (uint64_t i = 0; i < writes; ++i)
    trace.push_back(i % 2 == 0 ? i / 2 % shorter : 1'000'000 + i / 2 % longer);
  return trace;
}

// LRU; size(i): before the write i. What no longer fits after it is flushed at once.
inline std::vector<Line> lru_model(const std::vector<Line>& trace,
                                   const std::function<uint32_t(size_t)>& size) {
  std::list<Line> held;  // the newest first
  std::vector<Line> flushed;
  const auto shrink_to = [&](size_t most) {
    for (; held.size() > most; held.pop_back()) flushed.push_back(held.back());
  };
  for (size_t i = 0; i < trace.size(); ++i) {
    if (trace[i] == kSectionEnd) {
      shrink_to(0);
      continue;
    }
    const auto found = std::find(held.begin(), held.end(), trace[i]);
    if (found != held.end())
      held.erase(found);
    else
      shrink_to(size(i) - 1);
    held.push_front(trace[i]);
    shrink_to(size(i + 1));
  }
  return flushed;
}

}  // namespace spw::durable
