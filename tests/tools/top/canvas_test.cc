#include "top/canvas.h"

#include <gtest/gtest.h>
#include <locale.h>

namespace spw::tool::top {
namespace {

struct CanvasTest : ::testing::Test {
  CanvasTest() {
    if (::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) ADD_FAILURE() << "there is no locale C.UTF-8";
  }
};

TEST_F(CanvasTest, puts_text_where_it_belongs) {
  Canvas canvas(10, 3, Charset::kUtf8);
  EXPECT_EQ(canvas.put(2, 1, "abc", Style::kStrong), 5);
  EXPECT_EQ(canvas.line_text(0), "");
  EXPECT_EQ(canvas.line_text(1), "  abc");
  EXPECT_EQ(canvas.at(3, 1).style, Style::kStrong);
  EXPECT_EQ(canvas.at(5, 1).style, Style::kPlain);
  canvas.put_right(10, 2, "xyz");
  EXPECT_EQ(canvas.line_text(2), "       xyz");
}

TEST_F(CanvasTest, marks_what_is_cut_off) {
  Canvas canvas(6, 2, Charset::kUtf8);
  canvas.put(0, 0, "abcdef");
  EXPECT_EQ(canvas.line_text(0), "abcdef") << "it fits";
  canvas.put(0, 0, "abcdefg");
  EXPECT_EQ(canvas.line_text(0), "abcde…");
  canvas.put(0, 1, "abcdefg", Style::kPlain, 3);
  EXPECT_EQ(canvas.line_text(1), "ab…");
  Canvas plain(6, 1, Charset::kAscii);
  plain.put(0, 0, "abcdefg");
  EXPECT_EQ(plain.line_text(0), "abcde~");
}

TEST_F(CanvasTest, draws_nothing_outside) {
  Canvas canvas(4, 2, Charset::kUtf8);
  for (const int column : {-1, 4, 100})
    for (const int line : {-1, 0, 2}) canvas.put(column, line, "x");
  canvas.put(0, 5, "x");
  canvas.put(0, 0, "x", Style::kPlain, 0);
  canvas.paint_line(7, Style::kBad);
  canvas.blank(-3, 0, 100);
  EXPECT_EQ(canvas.line_text(0), "");
  EXPECT_EQ(canvas.line_text(1), "");
  Canvas tiny(-5, 0, Charset::kUtf8);
  EXPECT_EQ(tiny.columns() * tiny.lines(), 1);
}

TEST_F(CanvasTest, gives_wide_letters_two_columns) {
  Canvas canvas(6, 1, Charset::kUtf8);
  EXPECT_EQ(columns_of("数x"), 3);
  EXPECT_EQ(canvas.put(0, 0, "数x"), 3);
  EXPECT_EQ(canvas.at(1, 0).letter, 0u);
  EXPECT_EQ(canvas.line_text(0), "数x");
  canvas.put(0, 0, "数数数数");
  EXPECT_EQ(canvas.line_text(0), "数数 …") << "half a letter is none";
}

TEST_F(CanvasTest, holds_nothing_that_a_terminal_obeys) {
  Canvas canvas(40, 1, Charset::kUtf8);
  canvas.put(0, 0,
             "a\x1b[2Jb\n\xff"
             "c\xc2\x9b"
             "d\xe2\x80\xae"
             "e\xcc\x81");
  EXPECT_EQ(canvas.line_text(0), "a?[2Jb??c?d?e?") << "nor marks that join their neighbours";
}

}  // namespace
}  // namespace spw::tool::top
