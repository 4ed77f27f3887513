#include "process/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <set>

#include "base/units.h"

namespace spw::process {
namespace {

using Environment = std::initializer_list<const char*>;

struct Parsed {
  Result<Options> options{Options{}};
  std::vector<std::string> warnings;
};

Parsed parse(Environment environment, uint64_t memory_available_bytes = 8 * kGiB) {
  std::vector<const char*> entries(environment);
  entries.push_back(nullptr);
  Parsed parsed;
  parsed.options = parse_environment(entries.data(), memory_available_bytes, &parsed.warnings);
  return parsed;
}

std::string error_line(Environment environment, uint64_t memory_available_bytes = 8 * kGiB) {
  Parsed parsed = parse(environment, memory_available_bytes);
  EXPECT_FALSE(parsed.options.is_ok());
  return std::string(parsed.options.status().context());
}

TEST(Options, fallbacks_hold_when_nothing_is_set) {
  Parsed parsed = parse({"HOME=/root"});
  ASSERT_TRUE(parsed.options.is_ok());
  const Options& options = *parsed.options;
  EXPECT_EQ(options.memory_bytes, 6 * kGiB);
  EXPECT_EQ(options.store, "/tmp");
  EXPECT_EQ(options.block_bytes, 4 * kKiB);
  EXPECT_TRUE(options.block_is_auto);
  EXPECT_EQ(options.engine, EngineKind::kAuto);
  EXPECT_EQ(options.policy, "clock2q+");
  EXPECT_EQ(options.threshold_bytes, 64 * kKiB);
  EXPECT_EQ(options.quota_bytes, options.memory_bytes / 8);
  EXPECT_EQ(options.servers, 0u);
  EXPECT_EQ(options.delegation, DelegationChoice::kAuto);
  EXPECT_EQ(options.levels, Levels::kView);
  EXPECT_EQ(options.faults, Faults::kAuto);
  EXPECT_EQ(options.extents, ExtentUse::kAuto);
  EXPECT_EQ(options.on_refused_child, OnRefusedChild::kEnd);
  EXPECT_EQ(options.io, IoChoice::kAuto);
  EXPECT_EQ(options.readahead_blocks, 256u);
  EXPECT_EQ(options.stats.kind, StatsKind::kOff);
  EXPECT_TRUE(parsed.warnings.empty());
}

TEST(Options, a_store_is_a_directory_or_the_name_of_a_store) {
  for (const char* name : {"sparse:/a?size=1G", "striped:/a,/b", "nbd://host/x", "nbd+unix:///?socket=/s"}) {
    EXPECT_TRUE(is_store_name(name)) << name;
    const std::string variable = "SPILLWAY_STORE=" + std::string(name);
    Parsed parsed = parse({variable.c_str()});
    ASSERT_TRUE(parsed.options.is_ok());
    EXPECT_EQ((*parsed.options).store, name);
  }
  for (const char* name : {"/a:b", "a/b:c", ":x", "", "a", "../x:y"})
    EXPECT_FALSE(is_store_name(name)) << name;
}

TEST(Options, a_list_of_stores_has_absolute_paths) {
  const std::string here = std::filesystem::current_path().string();
  for (const auto& [given, means] : std::vector<std::pair<std::string, std::string>>{
           {"/a,b", "/a," + here + "/b"},
           {"nbd://host/x,b/../c,sparse:/d?size=1G", "nbd://host/x," + here + "/c,sparse:/d?size=1G"},
           {"/a%2Cb,/c", "/a%2Cb,/c"},
           {"striped:chunk=1M,a,/b", "striped:chunk=1M,a,/b"}}) {
    const std::string variable = "SPILLWAY_STORE=" + given;
    Parsed parsed = parse({variable.c_str()});
    ASSERT_TRUE(parsed.options.is_ok()) << given;
    EXPECT_EQ((*parsed.options).store, means);
  }
  for (const char* refused : {"SPILLWAY_STORE=/a,,/b", "SPILLWAY_STORE=/a,", "SPILLWAY_STORE=,",
                              "SPILLWAY_STORE=/a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"})
    EXPECT_FALSE(parse({refused}).options.is_ok()) << refused;
}

TEST(Options, every_option_is_read_from_its_variable) {
  Parsed parsed =
      parse({"SPILLWAY_MEMORY=1G", "SPILLWAY_STORE=/mnt/nvme", "SPILLWAY_BLOCK=64K",
             "SPILLWAY_ENGINE=translated", "SPILLWAY_POLICY=clock", "SPILLWAY_THRESHOLD=1M",
             "SPILLWAY_QUOTA=10M", "SPILLWAY_SERVERS=3", "SPILLWAY_DELEGATION=dedicated",
             "SPILLWAY_FAULTS=signals", "SPILLWAY_EXTENTS=off", "SPILLWAY_IO=threads", "SPILLWAY_READAHEAD=0",
             "SPILLWAY_ON_REFUSED_CHILD=go-on", "SPILLWAY_STATS=/var/run.json"});
  ASSERT_TRUE(parsed.options.is_ok()) << parsed.options.status().context();
  const Options& options = *parsed.options;
  EXPECT_EQ(options.memory_bytes, kGiB);
  EXPECT_EQ(options.store, "/mnt/nvme");
  EXPECT_EQ(options.block_bytes, 64 * kKiB);
  EXPECT_FALSE(options.block_is_auto);
  EXPECT_EQ(options.engine, EngineKind::kTranslated);
  EXPECT_EQ(options.threshold_bytes, kMiB);
  EXPECT_EQ(options.quota_bytes, 10 * kMiB);
  EXPECT_EQ(options.servers, 3u);
  EXPECT_EQ(options.delegation, DelegationChoice::kDedicated);
  EXPECT_EQ(options.faults, Faults::kSignals);
  EXPECT_EQ(options.extents, ExtentUse::kOff);
  EXPECT_EQ(options.on_refused_child, OnRefusedChild::kGoOn);
  EXPECT_EQ(options.io, IoChoice::kThreads);
  EXPECT_EQ(options.readahead_blocks, 0u);
  EXPECT_EQ(options.stats.kind, StatsKind::kJson);
  EXPECT_EQ(options.stats.file, "/var/run.json");
  EXPECT_TRUE(parsed.warnings.empty());
}

TEST(Options, the_store_falls_back_to_the_temporary_directory) {
  EXPECT_EQ((*parse({"TMPDIR=/scratch/me"}).options).store, "/scratch/me");
}

TEST(Options, relative_paths_become_absolute) {
  Parsed parsed = parse({"SPILLWAY_STORE=here", "SPILLWAY_STATS=run.json"});
  ASSERT_TRUE(parsed.options.is_ok());
  EXPECT_EQ((*parsed.options).store.front(), '/');
  EXPECT_TRUE((*parsed.options).store.ends_with("/here"));
  EXPECT_EQ((*parsed.options).stats.file.front(), '/');
}

TEST(Options, an_empty_value_counts_as_unset) {
  Parsed parsed = parse({"SPILLWAY_MEMORY=", "SPILLWAY_IO="});
  ASSERT_TRUE(parsed.options.is_ok());
  EXPECT_EQ((*parsed.options).memory_bytes, 6 * kGiB);
}

TEST(Options, a_bad_size_names_variable_value_range_and_example) {
  EXPECT_EQ(error_line({"SPILLWAY_MEMORY=4X"}),
            "SPILLWAY_MEMORY=4X: accepted: a size from 8.0 MiB to 16.0 TiB, such as SPILLWAY_MEMORY=4G");
}

TEST(Options, values_outside_their_range_are_refused) {
  for (Environment bad :
       {Environment{"SPILLWAY_MEMORY=1K"}, Environment{"SPILLWAY_MEMORY=17T"},
        Environment{"SPILLWAY_MEMORY=-1"}, Environment{"SPILLWAY_BLOCK=2K"}, Environment{"SPILLWAY_BLOCK=4M"},
        Environment{"SPILLWAY_BLOCK=12K"}, Environment{"SPILLWAY_SERVERS=65"},
        Environment{"SPILLWAY_SERVERS=2x"}, Environment{"SPILLWAY_SERVERS=4K"},
        Environment{"SPILLWAY_THRESHOLD=0"}, Environment{"SPILLWAY_READAHEAD=many"}})
    EXPECT_NE(error_line(bad).find(": accepted: "), std::string::npos) << *bad.begin();
}

TEST(Options, a_bad_choice_lists_the_choices) {
  EXPECT_EQ(error_line({"SPILLWAY_IO=aio"}),
            "SPILLWAY_IO=aio: accepted: one of auto, io_uring, libaio, threads, such as SPILLWAY_IO=threads");
  EXPECT_FALSE(parse({"SPILLWAY_ENGINE=Auto"}).options.is_ok());
}

TEST(Options, the_high_watermark_is_not_below_the_low_one) {
  EXPECT_EQ(error_line({"SPILLWAY_LOW_WATERMARK=5", "SPILLWAY_HIGH_WATERMARK=4"}),
            "SPILLWAY_HIGH_WATERMARK=4: less than SPILLWAY_LOW_WATERMARK, which is 5; accepted: a number "
            "from that to 50, "
            "such as SPILLWAY_HIGH_WATERMARK=5");
}

TEST(Options, files_to_map_are_patterns_as_they_are_written) {
  EXPECT_EQ(parse({}).options->map_files, kMapFilesByProgram);
  EXPECT_EQ(parse({"SPILLWAY_MAP_FILES=*.idx:/data/*"}).options->map_files, "*.idx:/data/*");
  EXPECT_EQ(parse({"SPILLWAY_MAP_FILES=none"}).options->map_files, "");
}

TEST(Options, memory_must_hold_enough_blocks) {
  EXPECT_NE(error_line({"SPILLWAY_MEMORY=64M", "SPILLWAY_BLOCK=2M"}).find("at least 512.0 MiB (256 blocks)"),
            std::string::npos);
  EXPECT_TRUE(parse({"SPILLWAY_MEMORY=512M", "SPILLWAY_BLOCK=2M"}).options.is_ok());
}

TEST(Options, a_quota_above_the_cap_is_refused) {
  EXPECT_NE(error_line({"SPILLWAY_MEMORY=1G", "SPILLWAY_QUOTA=2G"})
                .find("more than SPILLWAY_MEMORY, which is 1.0 GiB"),
            std::string::npos);
}

TEST(Options, an_unknown_variable_is_warned_about_with_the_nearest_name) {
  Parsed parsed = parse({"SPILLWAY_MEMROY=4G", "SPILLWAY_QUITE_ANOTHER=1", "SPILLWAYX=1",
                         "SPILLWAY_CLANG=clang-19", "SPILLWAY_DIR=/usr"});
  ASSERT_TRUE(parsed.options.is_ok());
  ASSERT_EQ(parsed.warnings.size(), 2u);
  EXPECT_EQ(parsed.warnings[0],
            "SPILLWAY_MEMROY is not an option of Spillway and is ignored; did you mean SPILLWAY_MEMORY?");
  EXPECT_EQ(parsed.warnings[1], "SPILLWAY_QUITE_ANOTHER is not an option of Spillway and is ignored");
}

TEST(Options, the_source_stands_in_the_error_line) {
  Options options;
  const OptionInfo& memory = option_infos().front();
  Status status = set_option(options, memory, "--memory", "lots");
  ASSERT_FALSE(status.is_ok());
  EXPECT_TRUE(status.context().starts_with("--memory=lots: accepted: "));
  EXPECT_TRUE(status.context().ends_with("such as --memory=4G"));
}

TEST(OptionInfos, examples_are_accepted_and_texts_are_there) {
  std::set<std::string_view> names;
  for (const OptionInfo& info : option_infos()) {
    Options options;
    EXPECT_TRUE(set_option(options, info, info.name, info.example).is_ok()) << info.name;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.help.empty());
    EXPECT_LE(info.help.size(), 70u) << info.name;
    EXPECT_TRUE(info.doc.ends_with('.')) << info.name;
  }
}

TEST(NearestWord, finds_slips_and_nothing_else) {
  const std::string_view words[] = {"memory", "store", "policy"};
  EXPECT_EQ(nearest_word("memry", words), "memory");
  EXPECT_EQ(nearest_word("sotre", words), "store");
  EXPECT_EQ(nearest_word("policies", words), "policy");
  EXPECT_EQ(nearest_word("bandwidth", words), "");
  EXPECT_EQ(nearest_word("styles", words), "") << "half of the letters are others";
}

TEST(NearestWord, a_beginning_is_near_however_much_is_missing) {
  const std::string_view words[] = {"help", "memory", "store", "statistics", "policy"};
  EXPECT_EQ(nearest_word("mem", words), "memory");
  EXPECT_EQ(nearest_word("stat", words), "statistics");
  EXPECT_EQ(nearest_word("st", words), "store") << "the shortest of two";
  EXPECT_EQ(nearest_word("s", words), "");
  EXPECT_EQ(nearest_word("", words), "");
}

}  // namespace
}  // namespace spw::process
