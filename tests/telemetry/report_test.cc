#include "telemetry/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/units.h"

namespace spw::telemetry {
namespace {

Facts sample_facts() {
  Facts facts;
  facts.program = "./sort \"big\\data\"\n";
  facts.process = 42;
  facts.engine = "translated";
  facts.store = "file:/mnt/nvme (spill, io_uring)";
  facts.block_bytes = 4096;
  facts.memory_cap_bytes = kGiB;
  facts.frames = 200000;
  facts.frames_peak = 150000;
  facts.resident_peak_bytes = kGiB + kMiB;
  facts.wall_seconds = 1.5;
  facts.processor_seconds = 2.5;
  facts.curve = {{1000, 20}, {3000, 10}};
  facts.areas = {{"", "./sort", 0x1234, 4096, {{1000, 15}}}, {"/data/\"odd\"", "", 0, 8192, {}}};
  return facts;
}

Totals totals_with(std::initializer_list<std::pair<Counter, uint64_t>> words) {
  Totals totals{};
  for (auto [counter, value] : words) totals[static_cast<size_t>(counter)] = value;
  return totals;
}

TEST(ReportJson, holds_facts_and_every_counter) {
  auto json = nlohmann::json::parse(report_json(sample_facts(), totals_with({{Counter::fills, 7}})));
  EXPECT_EQ(json["schema"], kReportSchema);
  EXPECT_EQ(json["facts"]["program"], "./sort \"big\\data\"\n");
  EXPECT_EQ(json["facts"]["process"], 42);
  EXPECT_EQ(json["facts"]["frames_peak"], 150000);
  EXPECT_EQ(json["facts"]["wall_seconds"], 1.5);
  EXPECT_EQ(json["facts"]["processor_seconds"], 2.5);
  EXPECT_EQ(json["curve"].dump(), R"([{"memory_bytes":1000,"reads":20},{"memory_bytes":3000,"reads":10}])");
  ASSERT_EQ(json["areas"].size(), 2u);
  EXPECT_EQ(json["areas"][0]["object"], "./sort");
  EXPECT_EQ(json["areas"][0]["offset"], 0x1234);
  EXPECT_EQ(json["areas"][0]["curve"].dump(), R"([{"memory_bytes":1000,"reads":15}])");
  EXPECT_EQ(json["areas"][1]["name"], "/data/\"odd\"");
  EXPECT_EQ(json["counters"].size(), kCounterCount);
  EXPECT_EQ(json["counters"]["fills"], 7);
}

TEST(Report, names_foreign_code) {
  Facts facts = sample_facts();
  facts.foreign = {{"/usr/lib/libz.so", "crc32", 700}, {"/usr/lib/\"odd\".so", "+0x10", 3}};
  auto json = nlohmann::json::parse(report_json(facts, {}));
  ASSERT_EQ(json["foreign"].size(), 2u);
  EXPECT_EQ(json["foreign"][0]["library"], "/usr/lib/libz.so");
  EXPECT_EQ(json["foreign"][0]["function"], "crc32");
  EXPECT_EQ(json["foreign"][0]["faults"], 700);
  EXPECT_EQ(json["foreign"][1]["library"], "/usr/lib/\"odd\".so");
  EXPECT_NE(report_text(facts, {}).find("700 faults in crc32 of /usr/lib/libz.so"), std::string::npos);
  EXPECT_EQ(report_text(sample_facts(), {}).find("foreign"), std::string::npos);
}

TEST(Report, says_what_becomes_of_faults_of_system_calls) {
  Facts facts = sample_facts();
  for (const char* word : {"brought in first", "served"}) {
    facts.system_call_faults = word;
    EXPECT_EQ(nlohmann::json::parse(report_json(facts, {}))["facts"]["system_call_faults"], word);
    EXPECT_NE(report_text(facts, {}).find(std::string("faults of system calls: ") + word + "\n"),
              std::string::npos);
  }
  EXPECT_EQ(report_text(sample_facts(), {}).find("system calls"), std::string::npos);
}

TEST(ReportJson, counts_a_wait_for_a_fill_as_a_hit) {
  auto json = nlohmann::json::parse(report_json(
      {}, totals_with({{Counter::shared_hits, 2}, {Counter::shared_waits, 1}, {Counter::shared_misses, 1}})));
  EXPECT_EQ(json["levels"]["shared"]["hits"], 3);
  EXPECT_DOUBLE_EQ(json["levels"]["shared"]["hit_ratio"], 0.75);
}

TEST(ReportJson, what_was_not_counted_or_has_no_base_is_null) {
  auto json = nlohmann::json::parse(report_json({}, totals_with({{Counter::direct_misses, 9}})));
  EXPECT_TRUE(json["levels"]["direct"]["hits"].is_null());
  EXPECT_TRUE(json["levels"]["direct"]["hit_ratio"].is_null());
  EXPECT_EQ(json["levels"]["direct"]["misses"], 9);
  EXPECT_TRUE(json["levels"]["private"]["hit_ratio"].is_null());
  EXPECT_TRUE(json["write_amplification"].is_null());
}

TEST(ReportJson, direct_hits_are_shown_where_code_counted_them) {
  auto json = nlohmann::json::parse(
      report_json({}, totals_with({{Counter::direct_hits, 3}, {Counter::direct_misses, 1}})));
  EXPECT_DOUBLE_EQ(json["levels"]["direct"]["hit_ratio"], 0.75);
}

TEST(WriteAmplification, is_bytes_written_over_bytes_dirtied) {
  EXPECT_DOUBLE_EQ(
      *write_amplification(totals_with({{Counter::store_write_bytes, 6144}, {Counter::bytes_dirtied, 4096}})),
      1.5);
}

TEST(ReportText, names_program_store_and_ratios) {
  Facts facts = sample_facts();
  facts.program = "./sort";
  std::string text = report_text(facts, totals_with({{Counter::private_hits, 3},
                                                     {Counter::private_misses, 1},
                                                     {Counter::direct_misses, 4},
                                                     {Counter::store_read_bytes, 2 * kMiB}}));
  for (const char* part : {"./sort (process 42) ran 1.500 s with the translated engine", "cap 1.0 GiB",
                           "file:/mnt/nvme (spill, io_uring)", "75.00 %", "not counted", "2.0 MiB read"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("amplification"), std::string::npos);
}

TEST(ReportFileName, a_percent_p_becomes_the_process) {
  EXPECT_EQ(report_file_name("/tmp/run.%p.json", 17), "/tmp/run.17.json");
  EXPECT_EQ(report_file_name("/tmp/run.json", 17), "/tmp/run.json");
}

}  // namespace
}  // namespace spw::telemetry
