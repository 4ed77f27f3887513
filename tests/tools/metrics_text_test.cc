#include "metrics_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "metrics_run.h"
#include "openmetrics.h"

namespace spw::tool {
namespace {

using Labels = std::map<std::string, std::string>;

OpenMetrics read_back(const RunNow& run) { return read_openmetrics(metrics_text(run)); }

TEST(OpenMetricsReader, refuses_what_is_wrong) {
  const std::string head = "# TYPE a counter\n# HELP a b\n";
  EXPECT_NO_THROW((void)read_openmetrics(head + "a_total{l=\"x\\\"\\n\\\\\"} 1\n# EOF\n"));
  const std::vector<std::string> wrong_ones = {
      head + "a_total 1\n",                                            // no end
      head + "a_total 1\n# EOF\nb",                                    // after it
      head + "a 1\n# EOF\n",                                           // no _total
      head + "a_total -1\n# EOF\n",                                    // negative
      head + "a_total 1\na_total 2\n# EOF\n",                          // twice
      head + "a_total{l=\"x\n\"} 1\n# EOF\n",                          // not escaped
      head + "a_total{l=\"\\x\"} 1\n# EOF\n",                          // escaped for nothing
      head + "a_total{l=\"\xff\"} 1\n# EOF\n",                         // not UTF-8
      head + "a_total{l=\"\",l=\"\"} 1\n# EOF\n",                      // a label twice
      head + "a_total NaN\n# EOF\n",                                   // no number
      head + "# TYPE b gauge\n# HELP b c\nb 1\n" + head + "# EOF\n",   // in two pieces
      "# TYPE a gauge\n# UNIT a bytes\n# HELP a b\na 1\n# EOF\n",      // a unit that the name does not have
      "# TYPE a_total counter\n# HELP a_total b\na_total 1\n# EOF\n",  // a sample's name
      "# TYPE a histogram\n# HELP a b\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_count 1\n# EOF\n",
      "# TYPE a histogram\n# HELP a b\na_bucket{le=\"+Inf\"} 1\na_count 2\n# EOF\n",
  };
  for (const std::string& text : wrong_ones)
    EXPECT_THROW((void)read_openmetrics(text), std::runtime_error) << text;
}

TEST(MetricsText, a_run_is_told_in_bytes_and_seconds) {
  const OpenMetrics read = read_back(some_run());
  EXPECT_EQ(read.value("spillway_build_info", {{"version", "0.2.0"}}), 1);
  EXPECT_EQ(read.value("spillway_run_memory_cap_bytes"), 4294967296.0);
  EXPECT_EQ(read.value("spillway_run_resident_bytes"), 4294963200.0);
  EXPECT_EQ(read.value("spillway_run_needs_bytes"), 18253611008.0);
  EXPECT_EQ(read.value("spillway_run_spilled_bytes_total"), 13e9);
  EXPECT_EQ(read.value("spillway_run_read_bytes_total"), 41e9);
  EXPECT_EQ(read.value("spillway_run_misses_total"), 3.1e6);
  EXPECT_EQ(read.value("spillway_run_waited_seconds_total"), 41.5);
  EXPECT_EQ(read.value("spillway_run_processor_seconds_total"), 59);
  EXPECT_EQ(read.value("spillway_run_processes"), 2);
  EXPECT_EQ(read.value("spillway_run_processes_left_out"), 0);
  for (const OpenMetrics::Family& family : read.families) {
    EXPECT_EQ(family.unit == "bytes", family.name.ends_with("_bytes")) << family.name;
    EXPECT_EQ(family.unit == "seconds", family.name.ends_with("_seconds")) << family.name;
  }
}

TEST(MetricsText, every_counter_is_there_with_its_own_number) {
  const OpenMetrics read = read_back(some_run());
  const Labels sort = {{"pid", "41"}, {"program", "sort"}};
  size_t counters = 0;
  for (const OpenMetrics::Family& family : read.families)
    counters += family.type == "counter" && family.name.starts_with("spillway_process_");
  EXPECT_EQ(counters, telemetry::kCounterCount);
  const auto number = [](telemetry::Counter counter) { return 41000.0 + static_cast<double>(counter); };
  using telemetry::Counter;
  EXPECT_EQ(read.value("spillway_process_direct_misses_total", sort), number(Counter::direct_misses));
  EXPECT_EQ(read.value("spillway_process_store_read_bytes_total", sort), number(Counter::store_read_bytes));
  EXPECT_EQ(read.value("spillway_process_managed_allocated_bytes_total", sort),
            number(Counter::managed_bytes_allocated));
  EXPECT_EQ(read.value("spillway_process_dirtied_bytes_total", sort), number(Counter::bytes_dirtied));
  EXPECT_DOUBLE_EQ(read.value("spillway_process_fill_wait_seconds_total", sort),
                   number(Counter::fill_wait_ns) / 1e9);
  EXPECT_EQ(read.family("spillway_process_spilled_blocks")->help,
            "of spillway_process_writebacks: blocks of the program's own memory, written to the spill store");
}

TEST(MetricsText, a_histogram_has_buckets_at_powers_of_two) {
  const OpenMetrics read = read_back(some_run());
  const auto bucket = [&](const char* le) {
    return read.value("spillway_process_miss_duration_seconds_bucket", {{"pid", "41"}, {"le", le}});
  };
  EXPECT_EQ(bucket("2.56e-07"), 5);
  EXPECT_EQ(bucket("8.192e-06"), 5);
  EXPECT_EQ(bucket("1.6384e-05"), 25);
  EXPECT_EQ(bucket("68.719476736"), 25);
  EXPECT_EQ(bucket("+Inf"), 26);
  // From 2^8 to 2^36 ns, and what is above.
  EXPECT_EQ(read.family("spillway_process_miss_duration_seconds")->samples.size(), 2 * (29 + 1 + 2));
  const double sum = read.value("spillway_process_miss_duration_seconds_sum", {{"pid", "41"}});
  EXPECT_NEAR(sum, 68.719476736 + 20 * 8.2e-6 + 5 * 128e-9, 20 * 8.2e-6 / 16);
  EXPECT_EQ(read.value("spillway_process_miss_worst_seconds", {{"pid", "41"}}), 70);
}

TEST(MetricsText, names_may_be_any_bytes) {
  const Labels labels = {{"pid", "42"}, {"program", kAwkwardName}};
  EXPECT_EQ(read_back(some_run()).value("spillway_process_frames", labels), 1000);
  const std::string replacement = "\xef\xbf\xbd";
  const std::vector<std::pair<std::string, std::string>> names = {
      {"caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80"},
      {"caf\xe9!", "caf" + replacement + "!"},
      {"\xc0\xaf", replacement + replacement},                    // longer than it has to be
      {"\xed\xa0\x80", replacement + replacement + replacement},  // half of a pair
      {"cut \xe2\x82", "cut " + replacement + replacement},
      {std::string("a\0b\r\x1b", 5), "a" + replacement + "b" + replacement + replacement},
      {std::string(255, 'x') + "\xc3\xa9", std::string(255, 'x')},  // no half of a character
      {"", ""},
  };
  for (const auto& [name, shown] : names) {
    RunNow run;
    run.processes = {some_process(7, name)};
    EXPECT_EQ(read_back(run).family("spillway_process")->samples.front().label("program"), shown) << name;
  }
}

TEST(MetricsText, what_is_not_known_is_not_told) {
  const OpenMetrics nothing = read_back(RunNow{});
  for (const char* name : {"spillway_build", "spillway_run_memory_cap_bytes", "spillway_run_resident_bytes",
                           "spillway_run_needs_bytes", "spillway_process_frames"})
    EXPECT_EQ(nothing.family(name), nullptr) << name;
  EXPECT_EQ(nothing.value("spillway_run_misses_total"), 0);
  RunNow run = some_run();
  run.processes[0].resident_bytes = 0;
  EXPECT_EQ(read_back(run).family("spillway_process_resident_bytes")->samples.size(), 1u);
}

TEST(MetricsText, the_number_of_processes_is_bounded) {
  RunNow run;
  for (uint64_t pid = 1; pid <= kProcessesMax + 5; ++pid)
    run.processes.push_back(some_process(pid, "worker"));
  const OpenMetrics read = read_back(run);
  EXPECT_EQ(read.value("spillway_run_processes"), static_cast<double>(kProcessesMax + 5));
  EXPECT_EQ(read.value("spillway_run_processes_left_out"), 5);
  const OpenMetrics::Family* told = read.family("spillway_process");
  ASSERT_EQ(told->samples.size(), kProcessesMax);
  EXPECT_EQ(told->samples.front().label("pid"), "1");
}

TEST(MetricsText, a_process_that_is_there_twice_is_told_once) {
  RunNow run;
  run.processes = {some_process(1, "a"), some_process(1, "a"), some_process(1, "b")};
  EXPECT_EQ(read_back(run).family("spillway_process")->samples.size(), 2u);
}

TEST(PrometheusText, families_are_named_as_their_samples_are) {
  const std::string text = prometheus_text(metrics_text(some_run()));
  EXPECT_NE(text.find("# TYPE spillway_run_misses_total counter\n# HELP spillway_run_misses_total blocks"),
            text.npos);
  EXPECT_NE(text.find("# TYPE spillway_process_info gauge\n"), text.npos);
  EXPECT_NE(text.find("# TYPE spillway_process_miss_duration_seconds histogram\n"), text.npos);
  EXPECT_NE(text.find("\nspillway_run_misses_total 3100000\n"), text.npos);
  EXPECT_EQ(text.find("# UNIT"), text.npos);
  EXPECT_EQ(text.find("# EOF"), text.npos);
  EXPECT_EQ(prometheus_text("# TYPE a gauge\n# HELP a \\\"b\\\\\\n\\\"\n# EOF\n"),
            "# TYPE a gauge\n# HELP a \"b\\\\\\n\"\n");
}

TEST(Accept, openmetrics_is_given_to_who_asks_for_it) {
  EXPECT_TRUE(asks_for_openmetrics("application/openmetrics-text"));
  EXPECT_TRUE(asks_for_openmetrics("text/plain, Application/OpenMetrics-Text ; version=1.0.0 ; q=0.5"));
  EXPECT_FALSE(asks_for_openmetrics(""));
  EXPECT_FALSE(asks_for_openmetrics("*/*"));
  EXPECT_FALSE(asks_for_openmetrics("text/plain;version=0.0.4"));
  EXPECT_FALSE(asks_for_openmetrics("application/openmetrics-text;q=0"));
  EXPECT_FALSE(asks_for_openmetrics("application/openmetrics-text; q=0.00, text/plain"));
  EXPECT_FALSE(asks_for_openmetrics("application/openmetrics-text-x"));
  EXPECT_FALSE(asks_for_openmetrics(",;,;q=,"));
}

// docs/METRICS.md has a row a family, made of what the family says of itself.
TEST(Documentation, lists_every_metric) {
  std::ifstream file(SPW_SOURCE_DIR "/docs/METRICS.md");
  std::stringstream read;
  read << file.rdbuf();
  ASSERT_FALSE(read.str().empty()) << "cannot read docs/METRICS.md";
  std::string table;
  for (const OpenMetrics::Family& family : read_back(some_run()).families)
    table += "| `" + family.name + "` | " + family.type + " | " + (family.unit.empty() ? "" : family.unit) +
             " | " + family.help + " |\n";
  EXPECT_NE(read.str().find(table), std::string::npos) << "the table in docs/METRICS.md has to be:\n"
                                                       << table;
}

}  // namespace
}  // namespace spw::tool
