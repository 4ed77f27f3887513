#include "platform/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "platform/proc_text.h"

namespace spw::platform {
namespace {

class Cgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "/spw_cgroup.XXXXXX";
    mount_ = ::mkdtemp(path.data());
  }
  void TearDown() override { std::filesystem::remove_all(mount_); }
  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(mount_ + file).parent_path());
    std::ofstream(mount_ + file) << text;
  }
  std::string mount_;
};

TEST_F(Cgroup, v2_takes_the_smallest_limit_up_to_the_root) {
  put("/a/memory.max", "1000\n");
  put("/a/b/memory.max", "max\n");
  put("/a/b/c/memory.max", "5000\n");
  EXPECT_EQ(cgroup_memory_limit_bytes("0::/a/b/c\n", mount_), 1000u);
  EXPECT_EQ(cgroup_memory_limit_bytes("0::/a/b\n", mount_), 1000u);
  EXPECT_EQ(cgroup_memory_limit_bytes("0::/\n", mount_), std::nullopt);
}

TEST_F(Cgroup, in_a_container_the_root_limit_counts_though_the_path_is_not_there) {
  put("/memory.max", "700\n");
  EXPECT_EQ(cgroup_memory_limit_bytes("0::/outside/of/it\n", mount_), 700u);
}

TEST_F(Cgroup, v1_reads_the_memory_controller_and_knows_its_no_limit) {
  put("/memory/job/memory.limit_in_bytes", "2048\n");
  put("/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const char* lines = "5:cpu,cpuacct:/job\n4:memory:/job\n1:name=systemd:/job\n";
  EXPECT_EQ(cgroup_memory_limit_bytes(lines, mount_), 2048u);
  EXPECT_EQ(cgroup_memory_limit_bytes("4:memory:/\n", mount_), std::nullopt);
  EXPECT_EQ(cgroup_memory_limit_bytes("4:notmemory:/job\n", mount_), std::nullopt);
}

TEST_F(Cgroup, what_all_processes_of_a_group_use_is_not_available) {
  put("/a/memory.max", "1000\n");
  put("/a/memory.current", "700\n");
  put("/a/memory.stat", "anon 600\ninactive_file 60\nactive_file 40\n");
  put("/a/b/memory.max", "500\n");
  put("/a/b/memory.current", "10\n");
  EXPECT_EQ(cgroup_memory_available_bytes("0::/a/b\n", mount_), 360u) << "the group above has less left";
  put("/a/b/memory.current", "450\n");
  EXPECT_EQ(cgroup_memory_available_bytes("0::/a/b\n", mount_), 50u);
  put("/a/b/memory.current", "600\n");
  EXPECT_EQ(cgroup_memory_available_bytes("0::/a/b\n", mount_), 0u);
  EXPECT_EQ(cgroup_memory_available_bytes("0::/\n", mount_), std::nullopt);
}

TEST_F(Cgroup, v1_counts_the_groups_below_too) {
  put("/memory/job/memory.limit_in_bytes", "2048\n");
  put("/memory/job/memory.usage_in_bytes", "1000\n");
  put("/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  EXPECT_EQ(cgroup_memory_available_bytes("4:memory:/job\n", mount_), 1548u);
}

TEST(Machine, has_processors_and_memory) {
  EXPECT_GE(cpu_count(), 1u);
  auto total = memory_total_bytes();
  auto available = memory_available_bytes();
  ASSERT_TRUE(total && available);
  EXPECT_GT(*available, 0u);
  EXPECT_LE(*available, *total);
}

TEST(ProcText, fields_are_found_by_their_whole_line) {
  const char* text = "MemTotal:       10 kB\nMemAvailable:   7 kB\nBad: x kB\nPages: 5\n";
  EXPECT_EQ(kib_field(text, "MemAvailable:"), 7u * 1024);
  EXPECT_EQ(kib_field(text, "Bad:"), std::nullopt);
  EXPECT_EQ(kib_field(text, "Pages:"), std::nullopt);
  EXPECT_EQ(kib_field(text, "Missing:"), std::nullopt);
}

TEST(ProcText, numbers_are_found_by_their_whole_name) {
  const char* text = "inactive_file_all 1\ninactive_file 2\nfile x\n";
  EXPECT_EQ(number_field(text, "inactive_file"), 2u);
  EXPECT_EQ(number_field(text, "file"), std::nullopt);
  EXPECT_EQ(number_field(text, "active_file"), std::nullopt);
}

}  // namespace
}  // namespace spw::platform
