#include "store/encrypted_store.h"

#include <gtest/gtest.h>

#include <fstream>

#include "liar.h"

namespace spw::store {
namespace {

class Encrypted : public ::testing::Test {
 protected:
  void SetUp() override {
    auto liar = std::make_unique<Liar>();
    liar_ = liar.get();
    auto store = EncryptedStore::around(std::move(liar), kMiB);
    if (!store && store.status().error() == ENOPKG) GTEST_SKIP() << store.status().message();
    ASSERT_TRUE(store) << store.status().message();
    store_ = std::move(*store);
  }
  Status transfer(Op op, uint64_t page, Contents& contents) {
    return transfer_page(*store_, op, page, contents);
  }

  Liar* liar_ = nullptr;
  std::unique_ptr<Store> store_;
};

TEST_F(Encrypted, the_device_has_nothing_of_it) {
  Contents written, got;
  std::memset(written.bytes, 'x', kUnit);
  ASSERT_TRUE(transfer(Op::kWrite, 5, written));
  uint64_t same = 0;
  for (const std::byte byte : liar_->pages[5].bytes) same += byte == std::byte{'x'};
  EXPECT_LT(same, 60u) << "16 of 4096 are, by chance";
  EXPECT_EQ(written.bytes[0], std::byte{'x'}) << "what is written stays as it is";
  ASSERT_TRUE(transfer(Op::kRead, 5, got));
  EXPECT_EQ(got, written);
}

TEST_F(Encrypted, the_same_contents_are_others_each_time_and_everywhere) {
  Contents written = {};
  ASSERT_TRUE(transfer(Op::kWrite, 1, written));
  const Contents first = liar_->pages[1];
  ASSERT_TRUE(transfer(Op::kWrite, 1, written));
  ASSERT_TRUE(transfer(Op::kWrite, 2, written));
  EXPECT_FALSE(liar_->pages[1] == first);
  EXPECT_FALSE(liar_->pages[1] == liar_->pages[2]);
}

TEST_F(Encrypted, no_corruption_goes_by) { expect_no_corruption_goes_by(*store_, *liar_); }

TEST_F(Encrypted, a_child_reads_what_its_parent_wrote_and_uses_other_nonces) {
  Contents written = {}, got;
  ASSERT_TRUE(transfer(Op::kWrite, 1, written));
  ASSERT_TRUE(transfer(Op::kWrite, 2, written));
  store_->in_child();
  ASSERT_TRUE(transfer(Op::kRead, 1, got));
  EXPECT_EQ(got, written);
  const Contents parents = liar_->pages[1];
  ASSERT_TRUE(transfer(Op::kWrite, 1, written));
  EXPECT_FALSE(liar_->pages[1] == parents);
}

// As the kernel says: dd, "do not include area into core dump"; lo, locked.
TEST(PageCipher, its_key_is_in_no_core_dump_and_not_swapped_out) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || SPW_SLOWED > 1
  GTEST_SKIP() << "sanitizers make nothing of mlock()";
#endif
  const auto guarded = [] {
    std::ifstream maps("/proc/self/smaps");
    int count = 0;
    for (std::string line; std::getline(maps, line);)
      count += line.starts_with("VmFlags:") && line.find(" dd") != line.npos && line.find(" lo") != line.npos;
    return count;
  };
  const int before = guarded();
  auto cipher = PageCipher::create();
  if (!cipher && cipher.status().error() == ENOPKG) GTEST_SKIP() << cipher.status().message();
  ASSERT_TRUE(cipher) << cipher.status().message();
  EXPECT_EQ(guarded(), before + 1);
}

TEST(PageCipher, another_tag_or_nonce_does_not_fit) {
  auto made = PageCipher::create();
  if (!made && made.status().error() == ENOPKG) GTEST_SKIP() << made.status().message();
  const PageCipher& cipher = **made;
  Contents clear = {}, sealed;
  const uint64_t tag = cipher.seal(7, clear.bytes, sealed.bytes);
  Contents opened = sealed;
  EXPECT_FALSE(cipher.open(8, tag, opened.bytes));
  opened = sealed;
  EXPECT_FALSE(cipher.open(7, tag ^ 1, opened.bytes));
  opened = sealed;
  EXPECT_TRUE(cipher.open(7, tag, opened.bytes));
  EXPECT_EQ(opened, clear);
}

}  // namespace
}  // namespace spw::store
