#include "top/graph.h"

#include <algorithm>
#include <cmath>

namespace spw::tool::top {

namespace {

constexpr int kEighths = 8;
constexpr char32_t kLowest = U'▁', kFull = U'█', kLeftEighth = U'▏';
// As high as they look.
constexpr std::string_view kAsciiHeights = " ._-=+*%#";

char32_t height_letter(int eighths, Charset charset) {
  if (eighths <= 0) return U' ';
  eighths = std::min(eighths, kEighths);
  if (charset == Charset::kAscii) return static_cast<char32_t>(kAsciiHeights[static_cast<size_t>(eighths)]);
  return kLowest + static_cast<char32_t>(eighths - 1);
}

std::span<const double> last(std::span<const double> values, int columns) {
  const size_t wanted = static_cast<size_t>(std::max(columns, 0));
  return values.last(std::min(values.size(), wanted));
}

}  // namespace

std::string bar(double share, int columns, Charset charset) {
  std::string text;
  if (!std::isfinite(share)) share = 0;
  const int eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * columns * kEighths));
  for (int i = 0; i < columns; ++i) {
    const int here = std::clamp(eighths - i * kEighths, 0, kEighths);
    if (charset == Charset::kAscii)
      text += here * 2 >= kEighths ? '#' : ' ';
    else
      append_letter(text, here == 0          ? U' '
                          : here == kEighths ? kFull
                                             : kLeftEighth - static_cast<char32_t>(here - 1));
  }
  return text;
}

std::vector<std::string> graph(std::span<const double> values, int columns, int lines, double top,
                               Charset charset) {
  std::vector<std::string> texts(static_cast<size_t>(std::max(lines, 0)));
  const std::span<const double> shown = last(values, columns);
  for (std::string& text : texts) text.assign(static_cast<size_t>(std::max(columns, 0)) - shown.size(), ' ');
  for (const double value : shown) {
    int eighths = 0;
    if (std::isfinite(value) && value > 0 && top > 0)
      eighths = std::max(1, static_cast<int>(std::lround(std::min(value / top, 1.0) * lines * kEighths)));
    for (int line = 0; line < lines; ++line)
      append_letter(texts[static_cast<size_t>(line)],
                    height_letter(eighths - (lines - 1 - line) * kEighths, charset));
  }
  return texts;
}

double round_top(double value) {
  if (!std::isfinite(value) || value <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0})
    if (step * power >= value * (1 - 1e-9)) return step * power;
  return 10 * power;
}

double round_top_bytes(double value) {
  return std::isfinite(value) && value > 1 ? std::exp2(std::ceil(std::log2(value))) : 1;
}

double most(std::span<const double> values, int columns) {
  double found = 0;
  for (const double value : last(values, columns))
    if (std::isfinite(value)) found = std::max(found, value);
  return found;
}

std::vector<int> divide(std::span<const double> shares, int columns) {
  std::vector<int> parts;
  double sum = 0;
  int used = 0;
  for (const double share : shares) {
    sum += std::isfinite(share) ? std::max(share, 0.0) : 0;
    int part = static_cast<int>(std::lround(std::min(sum, 1.0) * columns)) - used;
    part = std::clamp(share > 0 ? std::max(part, 1) : part, 0, columns - used);
    parts.push_back(part);
    used += part;
  }
  return parts;
}

}  // namespace spw::tool::top
