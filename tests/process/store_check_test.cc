#include "process/store_check.h"

#include <gtest/gtest.h>

namespace spw::process {
namespace {

TEST(StoreCheck, says_what_is_wrong_with_a_filesystem) {
  for (const char* good : {"ext4", "xfs", "btrfs", "zfs", "overlay", "fuseblk", "vfat", ""})
    EXPECT_EQ(drawback_of(good), "") << good;
  for (const char* memory : {"tmpfs", "ramfs"})
    EXPECT_NE(drawback_of(memory).find(std::string("is on a ") + memory + ", which is memory itself"),
              std::string::npos);
  for (const char* network : {"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "fuse.sshfs"})
    EXPECT_NE(drawback_of(network).find(std::string("is on a network filesystem (") + network + ")"),
              std::string::npos);
}

TEST(StoreCheck, names_the_directory_and_what_to_do) {
  StoreFacts facts;
  facts.place = "/mnt/far";
  EXPECT_EQ(drawback_line(facts), "");
  facts.drawback = drawback_of("nfs4");
  const std::string line = drawback_line(facts);
  EXPECT_TRUE(line.starts_with("the store directory /mnt/far is on a network filesystem (nfs4)")) << line;
  EXPECT_TRUE(line.ends_with("; name one on a local disk with --store")) << line;
}

TEST(StoreCheck, finds_a_place_in_memory) {
  const StoreFacts facts = check_store("/dev/shm");
  if (!facts.refusal.empty()) GTEST_SKIP() << "/dev/shm: " << facts.refusal;
  EXPECT_TRUE(facts.drawback.starts_with("is on a tmpfs")) << facts.drawback;
}

}  // namespace
}  // namespace spw::process
