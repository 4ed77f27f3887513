#include "advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "compression_advice.h"

namespace spw::tool {

namespace {

constexpr size_t kTableRows = 10;
constexpr size_t kAreaRows = 8;
constexpr size_t kPictureColumns = 64, kPictureRows = 12;
constexpr double kEnough = 0.05;  // within so much of the best time

// From the run's own memory to what is useful at most.
uint64_t memory_at(const Advised& run, double share) {
  const auto least = static_cast<double>(run.facts.memory_cap_bytes),
             most = static_cast<double>(run.memory_useful_bytes());
  return static_cast<uint64_t>(least + share * (most - least));
}

std::string row(const Advised& run, uint64_t memory_bytes, std::string_view note) {
  const uint64_t reads = run.reads_at(memory_bytes);
  return fmt::format("  {:>10}  {:>12}  {:>12}  {:>8.2f} s{}\n", format_size(memory_bytes), reads,
                     format_size(reads * run.facts.block_bytes), run.seconds_at(memory_bytes), note);
}

std::string picture(const Advised& run) {
  const double top = run.seconds_at(run.facts.memory_cap_bytes);
  std::string rows[kPictureRows];
  for (std::string& line : rows) line.assign(kPictureColumns, ' ');
  for (size_t column = 0; column < kPictureColumns; ++column) {
    const double seconds =
        run.seconds_at(memory_at(run, static_cast<double>(column) / (kPictureColumns - 1)));
    const auto height = static_cast<size_t>(std::lround(seconds / top * (kPictureRows - 1)));
    rows[kPictureRows - 1 - std::min(height, kPictureRows - 1)][column] = '*';
  }
  std::string text;
  for (size_t i = 0; i < kPictureRows; ++i)
    text += fmt::format("  {:>8} |{}\n",
                        i == 0                  ? fmt::format("{:.2f} s", top)
                        : i + 1 == kPictureRows ? "0 s"
                                                : "",
                        rows[i]);
  text += fmt::format("  {:>8} +{}\n", "", std::string(kPictureColumns, '-'));
  const std::string left = format_size(run.facts.memory_cap_bytes),
                    right = format_size(run.memory_useful_bytes());
  return text + fmt::format("  {:>8}  {}{:>{}}\n", "", left, right, kPictureColumns - left.size());
}

// Of an allocation the function that made it, of a mapped file its name.
std::string name_of(const telemetry::AreaReads& area, CodeNames& names) {
  if (!area.name.empty()) return area.name;
  if (area.bytes == 0) return "small objects";
  std::string size = "up to " + format_size(area.bytes);
  if (area.object.empty()) return size;
  return size + ", allocated in " + text_of(names.of_call(area.object, area.offset));
}

// Which allocations and files the reads are of, with this run's memory and with more.
std::string areas_table(const Advised& run, CodeNames& names) {
  const uint64_t sizes[] = {memory_at(run, 0), memory_at(run, 1.0 / 3), memory_at(run, 2.0 / 3),
                            memory_at(run, 1)};
  std::string text = "\n  blocks read with";
  for (const uint64_t size : sizes) text += fmt::format("  {:>10}", format_size(size));
  text += "  of\n";
  size_t rows = 0;
  for (const telemetry::AreaReads& area : run.facts.areas) {
    if (area.curve.front().reads == 0 || rows++ == kAreaRows) break;
    text += std::string(sizeof("  blocks read with") - 1, ' ');
    for (const uint64_t size : sizes) text += fmt::format("  {:>10}", Advised::reads_at(area.curve, size));
    text += "  " + name_of(area, names) + "\n";
  }
  return text;
}

std::string compression_line(const Advised& run) {
  const CompressionAdvice advice = advise_compression(run);
  if (!advice.is_known) return "";
  std::string text = fmt::format("  --compress auto: {:.0f} % of the pages compress", 100 * advice.fits);
  if (advice.ratio > 0) text += fmt::format(", {:.1f} of them into the memory of one", advice.ratio);
  if (advice.pool_bytes == 0) return text + "; it would gain nothing here\n";
  return text + fmt::format("; with {} of the memory for that, about {:.2f} s\n",
                            format_size(advice.pool_bytes), advice.seconds);
}

}  // namespace

uint64_t Advised::reads_at(const std::vector<telemetry::CurvePoint>& curve, uint64_t memory_bytes) {
  uint64_t reads = curve.front().reads;
  for (const telemetry::CurvePoint& point : curve)
    if (point.memory_bytes <= memory_bytes) reads = point.reads;
  return reads;
}

double Advised::seconds_at(uint64_t memory_bytes) const {
  const uint64_t reads = facts.curve.front().reads;
  if (reads == 0) return facts.wall_seconds;
  return seconds_with(static_cast<double>(reads_at(memory_bytes)) / static_cast<double>(reads));
}

double Advised::seconds_with(double share) const {
  const double all = std::max(facts.processor_seconds + waited_seconds, facts.wall_seconds);
  return all <= 0 ? facts.wall_seconds : facts.wall_seconds * (1 - waited_seconds * (1 - share) / all);
}

uint64_t Advised::memory_within(double share) const {
  const double best = seconds_at(memory_useful_bytes());
  for (const telemetry::CurvePoint& point : facts.curve)
    if (seconds_at(point.memory_bytes) <= best * (1 + share)) return point.memory_bytes;
  return memory_useful_bytes();
}

std::string advice_text(const Advised& run, CodeNames& names) {
  const telemetry::Facts& facts = run.facts;
  std::string text = fmt::format("spillway: {} ran {:.2f} s with {} ({} engine, blocks of {})\n",
                                 facts.program, facts.wall_seconds, format_size(facts.memory_cap_bytes),
                                 facts.engine, format_size(facts.block_bytes));
  if (facts.curve.size() < 2)
    return text + fmt::format(
                      "  no block had to be read a second time: more memory would save no reads. What less "
                      "would cost is found "
                      "with less:\n  spillway advise --memory {}M -- ...\n",
                      std::max<uint64_t>(facts.memory_cap_bytes / kMiB / 4, 8));
  text += fmt::format("  {:>10}  {:>12}  {:>12}  {:>10}\n", "memory", "blocks read", "bytes read", "about");
  text += row(run, facts.memory_cap_bytes, "  (this run)");
  for (size_t i = 1; i < kTableRows; ++i)
    text += row(run, memory_at(run, static_cast<double>(i) / (kTableRows - 1)), "");
  text += "\n" + picture(run);
  if (!facts.areas.empty()) text += areas_table(run, names);
  text += "\n";
  const uint64_t enough = run.memory_within(kEnough);
  text += fmt::format(
      "  --memory {:.2f}G is enough: about {:.2f} s, within {:.0f} % of the best; from {} on nothing gets "
      "better\n",
      std::ceil(static_cast<double>(enough) / static_cast<double>(kGiB) * 100) / 100, run.seconds_at(enough),
      kEnough * 100, format_size(run.memory_useful_bytes()));
  return text + compression_line(run);
}

std::string advice_json(const Advised& run, CodeNames& names) {
  using nlohmann::json;
  json points = json::array();
  for (const telemetry::CurvePoint& point : run.facts.curve)
    points.push_back({{"memory_bytes", point.memory_bytes},
                      {"reads", point.reads},
                      {"seconds", run.seconds_at(point.memory_bytes)}});
  json areas = json::array();
  for (const telemetry::AreaReads& area : run.facts.areas) {
    json curve = json::array();
    for (const telemetry::CurvePoint& point : area.curve)
      curve.push_back({{"memory_bytes", point.memory_bytes}, {"reads", point.reads}});
    areas.push_back({{"name", name_of(area, names)}, {"curve", curve}});
  }
  const CompressionAdvice compression = advise_compression(run);
  json compress = nullptr;
  if (compression.is_known)
    compress = {{"fits", compression.fits},
                {"ratio", compression.ratio},
                {"pool_bytes", compression.pool_bytes},
                {"seconds", compression.seconds}};
  return json{{"program", run.facts.program},
              {"engine", run.facts.engine},
              {"block_bytes", run.facts.block_bytes},
              {"memory_bytes", run.facts.memory_cap_bytes},
              {"seconds", run.facts.wall_seconds},
              {"enough_bytes", run.memory_within(kEnough)},
              {"compress", compress},
              {"curve", points},
              {"areas", areas}}
             .dump(1) +
         "\n";
}

std::string advice_svg(const Advised& run) {
  constexpr double kWidth = 640, kHeight = 360, kLeft = 70, kRight = 20, kTop = 40, kBottom = 50;
  const double top = run.seconds_at(run.facts.memory_cap_bytes);
  const auto least = static_cast<double>(run.facts.memory_cap_bytes);
  const double range = std::max(1.0, static_cast<double>(run.memory_useful_bytes()) - least);
  const auto x = [&](uint64_t bytes) {
    return kLeft + (static_cast<double>(bytes) - least) / range * (kWidth - kLeft - kRight);
  };
  const auto y = [&](double seconds) {
    return kHeight - kBottom - seconds / top * (kHeight - kTop - kBottom);
  };
  std::string line;
  for (const telemetry::CurvePoint& point : run.facts.curve)
    line += fmt::format("{:.1f},{:.1f} ", x(point.memory_bytes), y(run.seconds_at(point.memory_bytes)));
  const uint64_t enough = run.memory_within(kEnough);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"22\" "
      "font-size=\"15\">Estimated time over memory</text>\n",
      kWidth, kHeight, kLeft);
  svg += fmt::format("<path d=\"M{0} {1} V{2} H{3}\" fill=\"none\" stroke=\"#888\"/>\n", kLeft, kTop,
                     kHeight - kBottom, kWidth - kRight);
  svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\"/>\n", line);
  svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"#d55e00\"/>\n", x(enough),
                     y(run.seconds_at(enough)));
  const auto label = [&](double at_x, double at_y, const char* anchor, const std::string& text) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x, at_y, anchor,
                       text);
  };
  label(kLeft, kHeight - kBottom + 18, "start", format_size(run.facts.memory_cap_bytes));
  label(kWidth - kRight, kHeight - kBottom + 18, "end", format_size(run.memory_useful_bytes()));
  label(x(enough), y(run.seconds_at(enough)) - 10, "middle", format_size(enough));
  label(kLeft - 6, y(top) + 4, "end", fmt::format("{:.2f} s", top));
  label(kLeft - 6, y(0) + 4, "end", "0 s");
  return svg + "</svg>\n";
}

}  // namespace spw::tool
