#include "platform/cache_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace spw::platform {
namespace {

constexpr LineInstruction kAll[] = {LineInstruction::kBest, LineInstruction::kClwb,
                                    LineInstruction::kClflushopt, LineInstruction::kClflush};

TEST(cache_lines, a_line_that_is_written_back_keeps_its_contents) {
  alignas(64) char line[64] = "as before";
  for (const LineInstruction instruction : kAll) {
    line_write_back(instruction)(line);
    store_fence();
    EXPECT_EQ(std::string(line), "as before");
  }
}

TEST(cache_lines, an_instruction_that_is_wanted_is_taken_or_one_behind_it) {
  EXPECT_EQ(line_write_back(LineInstruction::kBest), line_write_back(LineInstruction::kClwb));
  const std::string best = line_write_back_name();
  EXPECT_EQ(best == "clflush", line_write_back() == line_write_back(LineInstruction::kClflush));
  EXPECT_EQ(best != "clwb", line_write_back() == line_write_back(LineInstruction::kClflushopt));
}

}  // namespace
}  // namespace spw::platform
