// What one screen shows, cell by cell, before a terminal sees it: so that what is drawn can be looked at without one.
//
// Invariants: every cell's letter is harmless (text.h); behind a letter that takes two columns is a cell with letter 0.
// Threads: one. Limits: kSideMax columns and lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "top/text.h"

namespace spw::tool::top {

enum class Style : uint8_t {
  kPlain,
  kDim,
  kStrong,
  kTitle,
  kSelected,
  kLabel,
  kGood,
  kWarning,
  kBad,
  kGraph,
  kOther
};
inline constexpr unsigned kStyles = 11;

struct Cell {
  char32_t letter = U' ';
  Style style = Style::kPlain;
};

class Canvas {
 public:
  static constexpr int kSideMax = 1000;

  // Sizes are brought into 1 .. kSideMax.
  Canvas(int columns, int lines, Charset charset);

  int columns() const { return columns_; }
  int lines() const { return lines_; }
  Charset charset() const { return charset_; }
  const Cell& at(int column, int line) const { return cells_[static_cast<size_t>(line * columns_ + column)]; }
  // The line as text, without blanks at its end.
  std::string line_text(int line) const;

  // Writes from `column` on, at most `width` columns and not beyond the edge; what does not fit ends with a mark.
  // Escapes nothing: what is not harmless becomes '?'. Returns the column behind. Lines outside are not drawn.
  int put(int column, int line, std::string_view text, Style style = Style::kPlain, int width = kSideMax);
  // So that it ends before `end`.
  void put_right(int end, int line, std::string_view text, Style style = Style::kPlain);
  // The style of a whole line, its letters kept.
  void paint_line(int line, Style style);
  void blank(int column, int line, int width, Style style = Style::kPlain);

 private:
  Cell& cell(int column, int line) { return cells_[static_cast<size_t>(line * columns_ + column)]; }

  int columns_, lines_;
  Charset charset_;
  std::vector<Cell> cells_;
};

// How many columns the text takes.
int columns_of(std::string_view text);

}  // namespace spw::tool::top
