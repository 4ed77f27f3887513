#include "top/canvas.h"

#include <wchar.h>

#include <algorithm>

namespace spw::tool::top {

namespace {

// What is shown for a letter of a text, and in how many columns: 1 or 2.
struct Shown {
  char32_t letter;
  int columns;
};

Shown shown(char32_t letter) {
  if (letter == kNoLetter || !is_harmless(letter)) return {U'?', 1};
  if (letter < 0x80) return {letter, 1};
  // By the locale, as the terminal has it; -1 of what that has no letter for, 0 of marks that join others.
  const int columns = ::wcwidth(static_cast<wchar_t>(letter));
  return columns == 1 || columns == 2 ? Shown{letter, columns} : Shown{U'?', 1};
}

}  // namespace

Canvas::Canvas(int columns, int lines, Charset charset)
    : columns_(std::clamp(columns, 1, kSideMax)),
      lines_(std::clamp(lines, 1, kSideMax)),
      charset_(charset),
      cells_(static_cast<size_t>(columns_) * static_cast<size_t>(lines_)) {}

std::string Canvas::line_text(int line) const {
  std::string text;
  for (int column = 0; column < columns_; ++column)
    if (const char32_t letter = at(column, line).letter; letter != 0) append_letter(text, letter);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

int Canvas::put(int column, int line, std::string_view text, Style style, int width) {
  const int end =
      std::min(columns_, column < columns_ && width < columns_ - column ? column + width : columns_);
  if (line < 0 || line >= lines_ || column < 0 || column >= end) return column;
  const int begin = column;
  while (!text.empty()) {
    const Shown next = shown(next_letter(text));
    if (column + next.columns > end) {
      if (cell(end - 1, line).letter == 0 && end - 2 >= begin) cell(end - 2, line) = {U' ', style};
      cell(end - 1, line) = {charset_ == Charset::kUtf8 ? U'…' : U'~', style};
      return end;
    }
    cell(column, line) = {next.letter, style};
    if (next.columns == 2) cell(column + 1, line) = {0, style};
    column += next.columns;
  }
  return column;
}

void Canvas::put_right(int end, int line, std::string_view text, Style style) {
  put(std::max(0, end - columns_of(text)), line, text, style, end);
}

void Canvas::paint_line(int line, Style style) {
  if (line < 0 || line >= lines_) return;
  for (int column = 0; column < columns_; ++column) cell(column, line).style = style;
}

void Canvas::blank(int column, int line, int width, Style style) {
  if (line < 0 || line >= lines_) return;
  for (int i = std::max(0, column); i < std::min(columns_, column + width); ++i)
    cell(i, line) = {U' ', style};
}

int columns_of(std::string_view text) {
  int columns = 0;
  while (!text.empty()) columns += shown(next_letter(text)).columns;
  return columns;
}

}  // namespace spw::tool::top
