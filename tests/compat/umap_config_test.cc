#include <gtest/gtest.h>

#include "config.h"

namespace Umap {
namespace {

Config parse(std::initializer_list<const char*> environment) {
  std::vector<const char*> entries(environment);
  entries.push_back(nullptr);
  return read_config(entries.data());
}
using Options = std::vector<std::pair<std::string, std::string>>;

TEST(UmapConfig, without_variables_nothing_is_passed_on) {
  Config config = parse({"PATH=/bin", "UMAP=1"});
  EXPECT_EQ(config.page_bytes, 4096u);
  EXPECT_EQ(config.high_water_percent, 99) << "Spillway's default: 1 % free";
  EXPECT_EQ(config.low_water_percent, 98);
  EXPECT_EQ(config.read_ahead_pages, 256u);
  EXPECT_TRUE(config.options.empty());
  EXPECT_TRUE(config.warnings.empty());
}

TEST(UmapConfig, variables_stand_for_options) {
  Config config = parse({"UMAP_PAGESIZE=65536", "UMAP_BUFSIZE=1000", "UMAP_PAGE_FILLERS=8",
                         "UMAP_PAGE_EVICTORS=2", "UMAP_READ_AHEAD=0", "UMAP_EVICT_HIGH_WATER_THRESHOLD=95"});
  EXPECT_EQ(config.page_bytes, 65536u);
  EXPECT_EQ(config.buffer_pages, 1000u);
  EXPECT_EQ(config.fillers, 8u);
  EXPECT_EQ(config.high_water_percent, 95);
  EXPECT_EQ(config.low_water_percent, 70);
  EXPECT_TRUE(config.warnings.empty());
  EXPECT_EQ(config.options, (Options{{"block", "65536"},
                                     {"memory", "65536000"},
                                     {"fillers", "8"},
                                     {"evictors", "2"},
                                     {"readahead", "0"},
                                     // First the high one: the low one is never above it.
                                     {"high_watermark", "30"},
                                     {"low_watermark", "5"}}));
}

TEST(UmapConfig, a_value_that_cannot_be_is_told_and_not_used) {
  for (const char* entry : {"UMAP_PAGESIZE=5000", "UMAP_PAGESIZE=4M", "UMAP_PAGESIZE=100", "UMAP_PAGESIZE=-1",
                            "UMAP_BUFSIZE=0", "UMAP_PAGE_FILLERS=many", "UMAP_PAGE_EVICTORS=1000",
                            "UMAP_EVICT_HIGH_WATER_THRESHOLD=101", "UMAP_EVICT_LOW_WATER_THRESHOLD=95"}) {
    Config config = parse({entry});
    EXPECT_TRUE(config.options.empty()) << entry;
    ASSERT_EQ(config.warnings.size(), 1u) << entry;
    EXPECT_EQ(config.warnings[0].find(std::string(entry).substr(0, std::string(entry).find('='))), 0u);
  }
}

TEST(UmapConfig, a_small_buffer_is_the_least_memory) {
  Config config = parse({"UMAP_BUFSIZE=2"});
  EXPECT_EQ(config.options, (Options{{"memory", "8388608"}}));
  EXPECT_EQ(config.buffer_pages, 2048u) << "what holds";
}

TEST(UmapConfig, a_page_of_any_multiple_is_raised_to_a_supported_one_and_told) {
  struct {
    const char* asked;
    uint64_t page_bytes;
  } const cases[] = {{"UMAP_PAGESIZE=12288", 16384},
                     {"UMAP_PAGESIZE=1052672", 2 << 20},
                     {"UMAP_PAGESIZE=2101248", 2 << 20},
                     {"UMAP_PAGESIZE=8388608", 2 << 20}};
  for (auto [asked, page_bytes] : cases) {
    Config config = parse({asked});
    EXPECT_EQ(config.page_bytes, page_bytes) << asked;
    EXPECT_EQ(config.options, (Options{{"block", std::to_string(page_bytes)}}));
    ASSERT_EQ(config.warnings.size(), 1u) << asked;
    EXPECT_EQ(config.warnings[0].find(asked), 0u) << config.warnings[0];
    EXPECT_NE(config.warnings[0].find(std::to_string(page_bytes)), std::string::npos) << config.warnings[0];
  }
  Config config = parse({"UMAP_PAGESIZE=12288", "UMAP_BUFSIZE=1000"});
  EXPECT_EQ(config.options, (Options{{"block", "16384"}, {"memory", "12288000"}}))
      << "pages as they were asked for";
  EXPECT_EQ(config.buffer_pages, 750u);
}

TEST(UmapConfig, what_spillways_own_variables_say_wins_and_is_reported) {
  Config config = parse({"UMAP_PAGESIZE=65536", "UMAP_BUFSIZE=1000", "UMAP_PAGE_FILLERS=8",
                         "UMAP_READ_AHEAD=4", "UMAP_EVICT_HIGH_WATER_THRESHOLD=95", "SPILLWAY_BLOCK=16K",
                         "SPILLWAY_MEMORY=1G", "SPILLWAY_FILLERS=5", "SPILLWAY_EVICTORS=3",
                         "SPILLWAY_READAHEAD=9", "SPILLWAY_HIGH_WATERMARK=20", "SPILLWAY_LOW_WATERMARK="});
  EXPECT_TRUE(config.options.empty());
  EXPECT_EQ(config.page_bytes, 16384u);
  EXPECT_EQ(config.fillers, 5u);
  EXPECT_EQ(config.evictors, 3u);
  EXPECT_EQ(config.read_ahead_pages, 9u);
  EXPECT_EQ(config.low_water_percent, 80);
  EXPECT_EQ(config.high_water_percent, 99);
}

TEST(UmapConfig, what_spillways_own_variables_cannot_be_counts_for_nothing) {
  Config config = parse({"UMAP_BUFSIZE=5000", "UMAP_PAGE_FILLERS=8", "SPILLWAY_BLOCK=0",
                         "SPILLWAY_FILLERS=4T", "SPILLWAY_LOW_WATERMARK=2G", "SPILLWAY_HIGH_WATERMARK=101"});
  EXPECT_EQ(config.page_bytes, 4096u);
  EXPECT_EQ(config.buffer_pages, 5000u);
  EXPECT_EQ(config.fillers, 8u);
  EXPECT_EQ(config.high_water_percent, 99);
  EXPECT_EQ(config.low_water_percent, 98);
}

}  // namespace
}  // namespace Umap
