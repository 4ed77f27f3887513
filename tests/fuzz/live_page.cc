// Pages of counters, which are other processes' memory: what `spillway top` shows of one, and what --metrics tells.
//
// The input is a list of changes to a page of zeros that has its header; the page is looked at before and after the
// last half of them, as two looks of `top`.
#include "telemetry/live_page.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/check.h"
#include "input.h"
#include "memory_file.h"
#include "metrics_text.h"
#include "platform/memory.h"
#include "top/trace.h"
#include "top/view.h"

namespace {

using namespace spw;
using namespace tool::top;
using telemetry::CounterBlock;
using telemetry::LiveHeader;
using telemetry::LivePage;

template <class T>
T taken(Result<T> result) {
  SPW_CHECK(result.is_ok());
  return std::move(*result);
}

// One page for all inputs: making one anew takes longer than everything else.
class Page {
 public:
  Page()
      : file_(taken(platform::create_sealed_memory_file(telemetry::kLivePageName, LivePage::kBytes))),
        memory_(taken(platform::map_file(file_, 0, LivePage::kBytes, platform::Protection::kReadWrite))) {}

  void begin() {
    std::memset(memory_.data(), 0, kChanged);
    auto* header = new (memory_.data()) LiveHeader;
    header->counter_count = telemetry::kCounterCount;
    header->schema = telemetry::kReportSchema;
    header->block_bytes = 4096;
    header->magic = LiveHeader::kMagic;
    header->used.store_relaxed(kThreads);
  }
  void change(fuzz::Input& input) {
    uint64_t at = input.number<uint32_t>() % kChanged;
    // Those that most depends on get more than their share.
    const auto what = input.number<uint8_t>() % 4;
    if (what == 0) at %= sizeof(LiveHeader);
    if (what == 1) at = LivePage::kAreasOffset + at % sizeof(telemetry::AreaTable);
    if (what == 2) at = LivePage::kBlocksOffset + at % sizeof(CounterBlock) / 8 * 8;
    const std::string_view data = input.text(input.number<uint8_t>());
    std::memcpy(memory_.data() + at, data.data(), std::min<uint64_t>(data.size(), kChanged - at));
  }
  Result<LivePage> open() const { return LivePage::open_file(taken(platform::open_again(file_)), "a page"); }

 private:
  static constexpr uint32_t kThreads = 3;
  static constexpr uint64_t kChanged = LivePage::kBlocksOffset + kThreads * sizeof(CounterBlock);
  platform::File file_;
  platform::Mapping memory_;
};

void tell_metrics(const LivePage& page, const PageFacts& facts) {
  tool::RunNow run;
  run.version = "1";
  run.cap_bytes = facts.memory_cap_bytes;
  tool::ProcessNow process;
  process.program = page.header().program;
  process.engine = facts.engine;
  process.totals = page.totals();
  process.misses = page.miss_latencies();
  process.block_bytes = facts.block_bytes;
  run.processes.push_back(process);
  run.totals = telemetry::run_totals(process.totals, process.block_bytes, 5);
  (void)tool::prometheus_text(tool::metrics_text(run));
}

void show(const LivePage& page, const PageFacts& facts, const Look& before, LivePage::MissCounts& misses,
          LivePage::TraceCounts& traced, Pane pane) {
  const Look now = look_at(page, Device(""));
  View view;
  view.watched.emplace();
  Watched& watched = *view.watched;
  watched.facts = facts;
  watched.history.add(numbers_between(before, now, facts));
  watched.latencies_now = now.latencies.since(before.latencies);
  watched.latencies_all = now.latencies;
  const LivePage::MissCounts misses_before = misses;
  for (const LivePage::Missed& each : page.missed_since(misses))
    watched.areas.push_back({each.block, 1, each.misses, 0.5, "area", "maker"});
  for (const telemetry::Area& area : page.areas())
    watched.areas.push_back({area.begin, area.bytes, 1, 1, printable(area.name, Charset::kUtf8), ""});
  (void)page.placed_since(misses_before);
  for (std::string& line : trace_lines(page, facts, traced)) watched.trace.push_back(std::move(line));
  view.pane = pane;
  Canvas canvas(100, 40, pane == Pane::kTrace ? Charset::kAscii : Charset::kUtf8);
  draw(canvas, view);
  for (int line = 0; line < canvas.lines(); ++line)
    for (int column = 0; column < canvas.columns(); ++column) {
      const char32_t letter = canvas.at(column, line).letter;
      SPW_CHECK(letter == 0 || is_harmless(letter));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  static Page page;
  fuzz::Input input(data, bytes);
  page.begin();
  const auto flags = input.number<uint8_t>();
  const unsigned first = flags % 16;
  const auto pane = static_cast<Pane>(flags >> 4 & 3);
  for (unsigned i = 0; i < first && !input.is_over(); ++i) page.change(input);
  auto opened = page.open();
  if (!opened) return 0;
  const auto facts = facts_of(1, *opened);
  if (!facts) return 0;
  LivePage::MissCounts misses;
  LivePage::TraceCounts traced;
  const Look before = look_at(*opened, Device(""));
  show(*opened, *facts, before, misses, traced, pane);
  while (!input.is_over()) page.change(input);
  show(*opened, *facts, before, misses, traced, pane);
  tell_metrics(*opened, *facts);
  return 0;
}
