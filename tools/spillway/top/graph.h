// Bars and graphs of letters: eighths of a block where the terminal has them, else ASCII.
//
// Threads: pure functions of their arguments. Values that are no numbers leave their place empty.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "top/text.h"

namespace spw::tool::top {

// `columns` letters, `share` (0 .. 1) of them full: "█████▌    ", "#####     ".
std::string bar(double share, int columns, Charset charset);

// `lines` texts of `columns` letters, the top one first. The last value is at the right; of more values than columns
// the last ones are shown. `top`: the value that fills all lines. No value above 0 is left blank.
std::vector<std::string> graph(std::span<const double> values, int columns, int lines, double top,
                               Charset charset);

// The least of 1, 2, 5, 10, 20 ... that is not below, for a graph's top that does not move with each value.
double round_top(double value);
// The same of bytes: a power of two.
double round_top_bytes(double value);

// Of the numbers among the last `columns` values; 0 where there are none.
double most(std::span<const double> values, int columns);

// Divides `columns` among the shares, in order, so that they sum to what all together would have: no share that has
// something gets less than one while there are columns left.
std::vector<int> divide(std::span<const double> shares, int columns);

}  // namespace spw::tool::top
