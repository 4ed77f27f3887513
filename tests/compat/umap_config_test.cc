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
  EXPECT_EQ(config.high_water_percent, 90);
  EXPECT_EQ(config.low_water_percent, 70);
  EXPECT_TRUE(config.options.empty());
  EXPECT_TRUE(config.warnings.empty());
}

TEST(UmapConfig, variables_stand_for_options) {
  Config config =
      parse({"UMAP_PAGESIZE=65536", "UMAP_BUFSIZE=1000", "UMAP_PAGE_FILLERS=8", "UMAP_PAGE_EVICTORS=2",
             "UMAP_READ_AHEAD=0", "UMAP_EVICT_HIGH_WATER_THRESHOLD=95", "UMAP_MAX_FAULT_EVENTS=10"});
  EXPECT_EQ(config.page_bytes, 65536u);
  EXPECT_EQ(config.buffer_pages, 1000u);
  EXPECT_EQ(config.fillers, 8u);
  EXPECT_EQ(config.max_fault_events, 10u);
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
  for (const char* entry :
       {"UMAP_PAGESIZE=5000", "UMAP_PAGESIZE=4M", "UMAP_PAGESIZE=12288", "UMAP_PAGESIZE=-1", "UMAP_BUFSIZE=0",
        "UMAP_PAGE_FILLERS=many", "UMAP_PAGE_EVICTORS=1000", "UMAP_EVICT_HIGH_WATER_THRESHOLD=101",
        "UMAP_EVICT_LOW_WATER_THRESHOLD=95"}) {
    Config config = parse({entry});
    EXPECT_TRUE(config.options.empty()) << entry;
    ASSERT_EQ(config.warnings.size(), 1u) << entry;
    EXPECT_EQ(config.warnings[0].find(std::string(entry).substr(0, std::string(entry).find('='))), 0u);
  }
}

TEST(UmapConfig, a_small_buffer_is_the_least_memory) {
  EXPECT_EQ(parse({"UMAP_BUFSIZE=2"}).options, (Options{{"memory", "8388608"}}));
}

}  // namespace
}  // namespace Umap
