#include "base/units.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

TEST(ParseSize, reads_what_people_write) {
  EXPECT_EQ(parse_size_bytes("4096"), 4096u);
  EXPECT_EQ(parse_size_bytes("512M"), 512 * kMiB);
  EXPECT_EQ(parse_size_bytes("4GiB"), 4 * kGiB);
  EXPECT_EQ(parse_size_bytes("1.5g"), kGiB + kGiB / 2);
  EXPECT_EQ(parse_size_bytes("64kb"), 64 * kKiB);
  EXPECT_EQ(parse_size_bytes("2 T"), 2 * kTiB);
  EXPECT_EQ(parse_size_bytes("7B"), 7u);
}

TEST(ParseSize, refuses_everything_else) {
  for (const char* text : {"", "G", "-1", "4X", "4Ki", "4GiBs", "0x10", "1e3", "nan", "99999999T", "4 G B"})
    EXPECT_FALSE(parse_size_bytes(text).has_value()) << text;
}

TEST(FormatSize, uses_the_largest_fitting_unit) {
  EXPECT_EQ(format_size(512), "512 B");
  EXPECT_EQ(format_size(4 * kGiB), "4.0 GiB");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
}

}  // namespace
}  // namespace spw
