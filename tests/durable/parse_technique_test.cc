#include <gtest/gtest.h>

#include "durable/combining/write_combiner.h"

namespace spw::durable {
namespace {

TEST(ParseTechnique, knows_plain_words_and_the_papers) {
  const std::pair<const char*, Technique> known[] = {
      {"eager", Technique::kEager}, {"er", Technique::kEager},          {"lazy", Technique::kLazy},
      {"la", Technique::kLazy},     {"table", Technique::kTable},       {"at", Technique::kTable},
      {"sc", Technique::kAdaptive}, {"adaptive", Technique::kAdaptive}, {"none", Technique::kNone},
      {"best", Technique::kNone},
  };
  CombinerOptions defaults;
  defaults.technique = Technique::kFixed;
  for (const auto& [text, technique] : known) {
    const Result<CombinerOptions> parsed = parse_technique(text, defaults);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ((*parsed).technique, technique) << text;
  }
}

TEST(ParseTechnique, a_fixed_size_is_told_and_the_rest_is_left) {
  CombinerOptions defaults;
  defaults.burst_writes = 77;
  defaults.profiles = true;
  for (const char* text : {"fixed:26", "sc:26"}) {
    const Result<CombinerOptions> parsed = parse_technique(text, defaults);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ((*parsed).technique, Technique::kFixed);
    EXPECT_EQ((*parsed).fixed_size, 26u);
    EXPECT_EQ((*parsed).burst_writes, 77u);
    EXPECT_TRUE((*parsed).profiles);
  }
  EXPECT_EQ((*parse_technique("fixed:1", {})).fixed_size, 1u);
  EXPECT_EQ((*parse_technique("fixed:4096", {})).fixed_size, kCombinerSizeMax);
}

TEST(ParseTechnique, refuses_anything_else_and_says_what_is_allowed) {
  for (const std::string text :
       {"",         "Eager",    "eagerly",  " lazy",      "lazy ",
        "fixed",    "fixed:",   "fixed:0",  "fixed:4097", "fixed:-1",
        "fixed:+1", "fixed: 1", "fixed:8x", "fixed:8:8",  "fixed:99999999999999999999",
        "sc:",      "sc:0",     "at:8",     "table:8",    "adaptive:8",
        "none:",    ":",        ":8"}) {
    const Result<CombinerOptions> parsed = parse_technique(text, {});
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.status().error(), EINVAL);
    const std::string message = parsed.status().message();
    EXPECT_EQ(message.find("\"" + text + "\""), 0u) << message;
    EXPECT_NE(message.find("eager, lazy, table, adaptive, fixed:SIZE"), std::string::npos) << message;
  }
  EXPECT_NE(parse_technique("fixed", {}).status().message().find("needs a size"), std::string::npos);
  EXPECT_NE(parse_technique("at:8", {}).status().message().find("does not take"), std::string::npos);
}

}  // namespace
}  // namespace spw::durable
