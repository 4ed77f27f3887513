#include "top/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/units.h"

namespace spw::tool::top {

namespace {

struct Range {
  char32_t first, last;
};
// What a terminal may obey, or what changes how its neighbours are shown.
constexpr Range kHarmful[] = {{0x00, 0x1f},       {0x7f, 0x9f},     {0xad, 0xad},     {0x061c, 0x061c},
                              {0x180e, 0x180e},   {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                              {0xd800, 0xf8ff},   {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xfff0, 0xffff},
                              {0xe0000, 0x10ffff}};

}  // namespace

char32_t next_letter(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const size_t bytes = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >> 4 == 0xe ? 3 : 4;
  constexpr unsigned kFirstBits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool begins_one = first < 0x80 || (first >= 0xc2 && first < 0xf5);
  char32_t letter = first & kFirstBits[bytes];
  bool is_whole = begins_one && bytes <= text.size();
  for (size_t i = 1; i < bytes && is_whole; ++i) {
    is_whole = byte(i) >> 6 == 2;
    letter = letter << 6 | (byte(i) & 0x3f);
  }
  is_whole =
      is_whole && letter >= kLeast[bytes] && letter <= 0x10ffff && (letter < 0xd800 || letter > 0xdfff);
  text.remove_prefix(is_whole ? bytes : 1);
  return is_whole ? letter : kNoLetter;
}

void append_letter(std::string& text, char32_t letter) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (letter < 0x80) return add(letter);
  if (letter < 0x800) {
    add(0xc0 | letter >> 6);
  } else {
    if (letter < 0x10000) {
      add(0xe0 | letter >> 12);
    } else {
      add(0xf0 | letter >> 18);
      add(0x80 | (letter >> 12 & 0x3f));
    }
    add(0x80 | (letter >> 6 & 0x3f));
  }
  add(0x80 | (letter & 0x3f));
}

bool is_harmless(char32_t letter) {
  return std::none_of(std::begin(kHarmful), std::end(kHarmful),
                      [&](const Range& range) { return letter >= range.first && letter <= range.last; });
}

std::string printable(std::string_view text, Charset charset) {
  std::string shown;
  for (size_t letters = 0; !text.empty() && letters < kTextLettersMax; ++letters) {
    const auto byte = static_cast<unsigned char>(text.front());
    const char32_t letter = next_letter(text);
    if (letter == kNoLetter)
      shown += fmt::format("\\x{:02x}", byte);
    else if (!is_harmless(letter))
      shown += letter < 0x100 ? fmt::format("\\x{:02x}", static_cast<unsigned>(letter))
                              : fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
    else if (letter >= 0x80 && charset == Charset::kAscii)
      shown += '?';
    else
      append_letter(shown, letter);
  }
  return shown;
}

std::string count_text(double count) {
  if (!std::isfinite(count)) return "-";
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P"};
  size_t unit = 0;
  while (std::abs(count) >= 999.5 && unit + 1 < std::size(kUnits)) {
    count /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || std::abs(count) >= 99.95 ? 0 : 1;
  return fmt::format("{:.{}f}{}", count, digits, kUnits[unit]);
}

std::string time_text(uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.1f} us", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.1f} ms", value / 1e6);
  return fmt::format("{:.1f} s", value / 1e9);
}

std::string span_text(double seconds) {
  if (!(seconds > 0)) seconds = 0;
  const auto s = static_cast<uint64_t>(std::min(seconds, 1e12));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  if (s < 24 * 3600) return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
  return fmt::format("{} d {} h", s / (24 * 3600), s / 3600 % 24);
}

std::string percent_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "-";
}

std::string bytes_text(double bytes) {
  if (!(bytes > 0)) bytes = 0;
  return format_size(static_cast<uint64_t>(std::min(bytes, 9e18)));
}

}  // namespace spw::tool::top
