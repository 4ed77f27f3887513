// tree_rows() of top/processes.h, and what is read of a run.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "top/processes.h"

namespace spw::tool::top {
namespace {

Process process(uint64_t id, uint64_t parent, double misses_s = 0, uint64_t resident = 0, uint64_t held = 0) {
  Process made;
  made.id = id;
  made.parent = parent;
  made.misses_s = misses_s;
  made.resident_bytes = resident;
  made.held_bytes = held;
  made.share = process::TreeShare{1, 100, 0, true, 0, held, false};
  made.has_page = true;
  made.started = id;
  return made;
}

std::vector<std::string> shown(const std::vector<Process>& processes, ProcessSort sort,
                               bool is_utf8 = false) {
  std::vector<std::string> lines;
  for (const TreeRow& row : tree_rows(processes, sort, is_utf8))
    lines.push_back(row.branch + std::to_string(processes[row.process].id));
  return lines;
}

using Lines = std::vector<std::string>;

TEST(TreeRows, place_each_below_its_parent) {
  const std::vector<Process> processes = {process(5, 2), process(2, 1), process(3, 2), process(4, 3)};
  EXPECT_EQ(shown(processes, ProcessSort::kNumber), (Lines{"2", "|- 3", "|  `- 4", "`- 5"}));
  EXPECT_EQ(shown(processes, ProcessSort::kNumber, true), (Lines{"2", "├─ 3", "│  └─ 4", "└─ 5"}));
}

TEST(TreeRows, order_children_by_what_is_asked) {
  const std::vector<Process> processes = {process(1, 0), process(2, 1, 5, 10, 30), process(3, 1, 9, 20, 10),
                                          process(4, 1, 7, 30, 20)};
  EXPECT_EQ(shown(processes, ProcessSort::kMisses), (Lines{"1", "|- 3", "|- 4", "`- 2"}));
  EXPECT_EQ(shown(processes, ProcessSort::kResident), (Lines{"1", "|- 4", "|- 3", "`- 2"}));
  EXPECT_EQ(shown(processes, ProcessSort::kShare), (Lines{"1", "|- 2", "|- 4", "`- 3"}));
  EXPECT_EQ(shown(processes, ProcessSort::kNumber), (Lines{"1", "|- 2", "|- 3", "`- 4"}));
}

TEST(TreeRows, have_every_process_once_even_if_parents_go_round) {
  const std::vector<Process> processes = {process(1, 2), process(2, 1), process(3, 3), process(4, 99)};
  EXPECT_EQ(shown(processes, ProcessSort::kNumber), (Lines{"3", "4", "1", "`- 2"}));
  EXPECT_TRUE(shown({}, ProcessSort::kMisses).empty());
}

TEST(TreeRows, of_a_long_chain_are_as_many) {
  std::vector<Process> processes;
  for (uint64_t i = 1; i <= 1000; ++i) processes.push_back(process(i, i - 1));
  EXPECT_EQ(tree_rows(processes, ProcessSort::kMisses, true).size(), 1000u);
}

TEST(ARun, is_shown_by_the_first_of_its_processes_that_can_be_watched) {
  top::Run run;
  EXPECT_EQ(run.first(), nullptr);
  run.processes = {process(7, 5, 3, 0, 40), process(6, 5, 4, 0, 50), process(5, 1)};
  run.processes.back().has_page = false;
  ASSERT_NE(run.first(), nullptr);
  EXPECT_EQ(run.first()->id, 6u);
  EXPECT_EQ(run.misses_s(), 7);
  EXPECT_EQ(run.held_bytes(), 90u);
  EXPECT_DOUBLE_EQ(*run.processes[0].cap_share(), 0.4);
  EXPECT_EQ(run_of({run}, 7)->processes.size(), 3u);
  EXPECT_EQ(run_of({run}, 8), nullptr);
}

TEST(AProcess, runs_as_long_as_it_is_the_one_that_was_started) {
  const auto self = static_cast<uint64_t>(::getpid());
  const uint64_t started = start_of(self);
  EXPECT_NE(started, 0u);
  EXPECT_TRUE(is_running(self, started));
  EXPECT_FALSE(is_running(self, started + 1)) << "another one of the same number";
  EXPECT_FALSE(is_running(UINT32_MAX, started));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  while (start_of(static_cast<uint64_t>(child)) != 0) ::usleep(1000);
  EXPECT_EQ(::kill(child, 0), 0) << "a zombie is there, and does not run";
}

}  // namespace
}  // namespace spw::tool::top
