// Text for a terminal: other processes' words made harmless, numbers as people read them.
//
// Programs choose their names, those of their functions and of the files they map, and a name may hold what a terminal
// obeys. Nothing of theirs is printed but through printable().
// Threads: pure functions of their arguments. Limits: kTextLettersMax.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spw::tool::top {

enum class Charset : uint8_t { kAscii, kUtf8 };

inline constexpr size_t kTextLettersMax = 1024;    // of one name; what follows is left out
inline constexpr char32_t kNoLetter = 0xffffffff;  // of next_letter(): a byte that is no UTF-8

// Takes the first letter off `text`, which is not empty; kNoLetter takes one byte.
char32_t next_letter(std::string_view& text);
void append_letter(std::string& text, char32_t letter);
// Whether a terminal shows the letter, and that is all: no control of C0 or C1, no mark of direction or joining,
// no surrogate. Letters that are not shown by themselves are for the canvas to replace (canvas.h).
bool is_harmless(char32_t letter);

// The text with what is not harmless written out: "\x1b", "\u202e". In ASCII other letters become '?'.
std::string printable(std::string_view text, Charset charset);

// "973", "12.3k", "4.1M"; "-" of what is no number.
std::string count_text(double count);
// "850 ns", "8.2 us", "12.0 ms", "3.4 s".
std::string time_text(uint64_t ns);
// "12 s", "3 min 05 s", "2 h 10 min", "3 d 4 h". Negative ones and what is no number are 0.
std::string span_text(double seconds);
std::string percent_text(double share);
// "1.2 GiB"; 0 of what is no number or negative.
std::string bytes_text(double bytes);

}  // namespace spw::tool::top
