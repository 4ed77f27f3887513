#include "top/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace spw::tool::top {
namespace {

using namespace std::string_literals;

TEST(Printable, leaves_plain_text_and_letters_of_any_language) {
  EXPECT_EQ(printable("python3 job.py", Charset::kUtf8), "python3 job.py");
  EXPECT_EQ(printable("größe 数 😀", Charset::kUtf8), "größe 数 😀");
  EXPECT_EQ(printable("größe", Charset::kAscii), "gr??e");
}

TEST(Printable, writes_out_what_a_terminal_obeys) {
  EXPECT_EQ(printable("\x1b[31mred\x07\r\n\t\x7f"s, Charset::kUtf8), "\\x1b[31mred\\x07\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("a\0b"s, Charset::kUtf8), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m",
                      Charset::kUtf8),
            "\\x9b31m")
      << "the other form of Esc [";
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gpj.exe",
                      Charset::kUtf8),
            "\\u202egpj.exe")
      << "turns round what follows";
  EXPECT_EQ(printable("\xe2\x80\x8b\xef\xbb\xbf", Charset::kUtf8), "\\u200b\\ufeff");
}

TEST(Printable, writes_out_bytes_that_are_no_utf8) {
  EXPECT_EQ(printable("\xff", Charset::kUtf8), "\\xff");
  EXPECT_EQ(printable("a\xc3", Charset::kUtf8), "a\\xc3") << "cut off";
  EXPECT_EQ(printable("\xc0\xaf", Charset::kUtf8), "\\xc0\\xaf") << "longer than it need be";
  EXPECT_EQ(printable("\xe0\x80\x9b", Charset::kUtf8), "\\xe0\\x80\\x9b")
      << "a control, longer than it need be";
  EXPECT_EQ(printable("\xed\xa0\x80", Charset::kUtf8), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(printable("\xf5\x80\x80\x80", Charset::kUtf8), "\\xf5\\x80\\x80\\x80")
      << "beyond the last letter";
}

TEST(Printable, of_any_bytes_is_harmless_and_limited) {
  std::string bytes;
  for (unsigned i = 0; i < 100'000; ++i) bytes += static_cast<char>(i * 2654435761u >> 13);
  for (const Charset charset : {Charset::kAscii, Charset::kUtf8}) {
    const std::string shown = printable(bytes, charset);
    EXPECT_LE(shown.size(), 10 * kTextLettersMax);
    for (std::string_view rest = shown; !rest.empty();) {
      const char32_t letter = next_letter(rest);
      ASSERT_NE(letter, kNoLetter);
      ASSERT_TRUE(is_harmless(letter)) << static_cast<unsigned>(letter);
    }
  }
}

TEST(Letters, come_back_as_they_were) {
  for (const char32_t letter : {U'a', U'\u00e9', U'\u0800', U'█', U'\U0001F600', U'\U0010FFFD'}) {
    std::string text;
    append_letter(text, letter);
    std::string_view rest = text;
    EXPECT_EQ(next_letter(rest), letter);
    EXPECT_TRUE(rest.empty());
  }
}

TEST(Numbers, are_short) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999.4), "999");
  EXPECT_EQ(count_text(999.6), "1.0k");
  EXPECT_EQ(count_text(12345), "12.3k");
  EXPECT_EQ(count_text(123456), "123k");
  EXPECT_EQ(count_text(4.1e6), "4.1M");
  EXPECT_EQ(count_text(std::nan("")), "-");
  EXPECT_EQ(count_text(std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(time_text(850), "850 ns");
  EXPECT_EQ(time_text(8200), "8.2 us");
  EXPECT_EQ(time_text(12'000'000), "12.0 ms");
  EXPECT_EQ(time_text(3'400'000'000), "3.4 s");
  EXPECT_EQ(span_text(12.9), "12 s");
  EXPECT_EQ(span_text(185), "3 min 05 s");
  EXPECT_EQ(span_text(2 * 3600 + 600), "2 h 10 min");
  EXPECT_EQ(span_text(76 * 3600), "3 d 4 h");
  EXPECT_EQ(span_text(-1), "0 s");
  EXPECT_EQ(span_text(std::nan("")), "0 s");
  EXPECT_FALSE(span_text(1e300).empty());
  EXPECT_EQ(bytes_text(-5), "0 B");
  EXPECT_EQ(bytes_text(std::nan("")), "0 B");
  EXPECT_EQ(bytes_text(1.5 * 1024 * 1024), "1.5 MiB");
  EXPECT_EQ(percent_text(0.973), "97.3 %");
}

}  // namespace
}  // namespace spw::tool::top
