// What only stores on images of a Ceph cluster do. What they share with the others: conformance_test.
#include "store/rbd_store.h"

#include "store/rbd/spill_image_name.h"
#include "store_fixture.h"

namespace spw::store {
namespace {

TEST(RbdAddress, has_a_pool_an_image_and_parameters) {
  auto address = RbdAddress::parse("a%2Fb/c?conf=/etc/x.conf&id=me&timeout=7&mode=read&overwrite=yes");
  ASSERT_TRUE(address) << address.status().message();
  EXPECT_EQ(address->pool, "a/b");
  EXPECT_EQ(address->image, "c");
  EXPECT_EQ(address->conf, "/etc/x.conf");
  EXPECT_EQ(address->id, "me");
  EXPECT_EQ(address->timeout_seconds, 7u);
  EXPECT_TRUE(address->read_only);
  EXPECT_EQ(address->overwrite, Overwrite::kYes);
  EXPECT_EQ(address->text, "rbd:a%2Fb/c");
  auto plain = RbdAddress::parse("a/b");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->id, "admin");
  EXPECT_EQ(plain->timeout_seconds, kRbdTimeoutSecondsDefault);
  EXPECT_FALSE(plain->read_only);
}

TEST(RbdAddress, a_pool_alone_is_where_an_image_is_made) {
  auto address = RbdAddress::parse("a?size=3G&id=me");
  ASSERT_TRUE(address) << address.status().message();
  EXPECT_EQ(address->pool, "a");
  EXPECT_EQ(address->image, "");
  EXPECT_EQ(address->size_bytes, 3 * kGiB);
  EXPECT_EQ(address->text, "rbd:a");
  EXPECT_EQ(address->whole, "rbd:a?size=3G&id=me");
  const int error = open_rbd(*address).status().error();  // ENOPKG: of a build that has no rbd stores
  EXPECT_TRUE(error == EINVAL || error == ENOPKG) << "to spill to only: " << error;
}

TEST(RbdAddress, anything_else_is_a_mistake) {
  for (const char* name : {"", "/", "a/", "/b", "a?mode=read", "a?overwrite=yes", "a?size=0", "a/b?size=1G",
                           "a/b/c", "a/b@c", "a/b?mode=write", "a/b?timeout=0", "a/b?timeout=x",
                           "a/b?id=", "a/b?id=client.x", "a/b?overwrite=perhaps", "a/b?other=1", "%/b"})
    EXPECT_EQ(RbdAddress::parse(name).status().error(), EINVAL) << name;
}

TEST(SpillImageName, is_what_its_parts_say_and_nothing_else_is_one) {
  const SpillImageName name{0x1f, 4123};
  EXPECT_EQ(name.text(), "spillway.spill.000000000000001f.4123");
  const auto parsed = SpillImageName::parse(name.text());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->scope, name.scope);
  EXPECT_EQ(parsed->client, name.client);
  for (const char* other :
       {"", "image", "spillway.spill.", "spillway.spill.1f.4123", "spillway.spill.000000000000001f.",
        "spillway.spill.000000000000001F.4123", "spillway.spill.000000000000001f.04123",
        "spillway.spill.000000000000001f.4123x", "spillway.spill.000000000000001f.-1",
        "spillway.spill.000000000000001f.99999999999999999999", "x.spillway.spill.000000000000001f.4123"})
    EXPECT_FALSE(SpillImageName::parse(other)) << other;
}

class RbdStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Ceph::here().missing().empty()) GTEST_SKIP() << Ceph::here().missing();
  }
  static std::unique_ptr<Store> opened(const std::string& uri) {
    auto store = open_store(uri);
    EXPECT_TRUE(store) << store.status().message();
    return store ? std::move(*store) : nullptr;
  }
  static int transfer(Store& store, Request request) { return store.transfer(request).error(); }
};

TEST_F(RbdStoreTest, a_size_that_is_no_multiple_of_anything_is_kept_to) {
  constexpr uint64_t kOdd = 2 * kUnit + 100;
  auto store = opened(Ceph::here().make_image(kOdd));
  ASSERT_TRUE(store);
  EXPECT_EQ(store->size_bytes(), kOdd);
  Buffer written(2 * kUnit, 1), read(2 * kUnit);
  EXPECT_EQ(transfer(*store, transfer_of(Op::kWrite, kUnit, written)), 0);
  EXPECT_EQ(transfer(*store, transfer_of(Op::kRead, kUnit, read)), 0);
  EXPECT_EQ(std::memcmp(written.data(), read.data(), kUnit + 100), 0);
  EXPECT_TRUE(read.is_zero(kUnit + 100));
}

TEST_F(RbdStoreTest, more_than_may_be_under_way_waits_and_is_done) {
  constexpr size_t kRequests = 12;
  constexpr uint64_t kBytes = 2 * kMiB;
  auto store = opened(Ceph::here().make_image(kRequests * kBytes));
  ASSERT_TRUE(store);
  auto queue = store->open_queue(kRequests);
  ASSERT_TRUE(queue);
  for (const Op op : {Op::kWrite, Op::kRead}) {
    std::vector<Buffer> buffers;
    std::vector<Request> requests;
    std::vector<Request*> pointers;
    for (size_t i = 0; i < kRequests; ++i) {
      buffers.emplace_back(kBytes, op == Op::kWrite ? i + 1 : 0);
      requests.push_back(transfer_of(op, i * kBytes, buffers.back()));
    }
    for (Request& request : requests) pointers.push_back(&request);
    for (const int error : StoreTest::drive(**queue, pointers)) EXPECT_EQ(error, 0);
    for (size_t i = 0; op == Op::kRead && i < kRequests; ++i)
      EXPECT_TRUE(buffers[i] == Buffer(kBytes, i + 1)) << i;
  }
}

TEST_F(RbdStoreTest, one_client_writes_and_any_number_read) {
  const std::string uri = Ceph::here().make_image(kStoreBytes);
  auto writer = opened(uri);
  ASSERT_TRUE(writer);
  EXPECT_EQ(open_store(uri).status().error(), EBUSY);
  Buffer written(kUnit, 1), read(kUnit);
  EXPECT_EQ(transfer(*writer, transfer_of(Op::kWrite, 0, written)), 0);
  auto first = opened(uri + "&mode=read"), second = opened(uri + "&mode=read");
  ASSERT_TRUE(first && second);
  for (Store* reader : {first.get(), second.get()}) {
    EXPECT_EQ(transfer(*reader, transfer_of(Op::kRead, 0, read)), 0);
    EXPECT_TRUE(read == written);
    EXPECT_EQ(transfer(*reader, transfer_of(Op::kWrite, 0, written)), EROFS);
    EXPECT_EQ(transfer(*reader, discard_of(0, kUnit)), EROFS);
  }
  writer.reset();
  EXPECT_TRUE(opened(uri)) << "the lock is free again";
}

TEST_F(RbdStoreTest, a_cluster_that_stalls_is_an_error_in_time_and_one_that_recovers_is_gone_on_with) {
  auto store = opened(Ceph::here().make_image(kStoreBytes) + "&timeout=2");
  ASSERT_TRUE(store);
  Buffer written(kUnit, 1), read(kUnit);
  EXPECT_EQ(transfer(*store, transfer_of(Op::kWrite, 0, written)), 0);
  for (const char* osd : {"0", "1", "2"}) ASSERT_EQ(Ceph::here().tell(std::string("stall osd.") + osd), "ok");
  const uint64_t start_ns = platform::monotonic_ns();
  Request request = transfer_of(Op::kRead, 0, read);
  const Status status = store->transfer(request);
  const uint64_t took_ns = platform::monotonic_ns() - start_ns;
  for (const char* osd : {"0", "1", "2"}) ASSERT_EQ(Ceph::here().tell(std::string("go_on osd.") + osd), "ok");
  EXPECT_EQ(status.error(), ETIMEDOUT);
  EXPECT_NE(status.message().find("has not answered for 2 s"), std::string::npos) << status.message();
  EXPECT_GE(took_ns, 1'500'000'000u);
  EXPECT_LT(took_ns, 10'000'000'000u);
  ASSERT_EQ(Ceph::here().tell("wait_until_up 3"), "ok");
  EXPECT_EQ(transfer(*store, transfer_of(Op::kRead, 0, read)), 0);
  EXPECT_TRUE(read == written);
}

TEST_F(RbdStoreTest, an_image_that_is_made_has_the_size_that_is_asked_for_and_is_gone_with_its_store) {
  auto address = RbdAddress::parse(Ceph::here().pool_uri("&size=96M").substr(4));
  ASSERT_TRUE(address) << address.status().message();
  std::string image;
  auto store = open_rbd_to_spill(*address, nullptr, [&](const RbdAddress& of, const std::string& name) {
    EXPECT_EQ(of.whole, address->whole);
    image = name;
    return false;
  });
  ASSERT_TRUE(store) << store.status().message();
  EXPECT_TRUE(SpillImageName::parse(image)) << image;
  EXPECT_EQ((*store)->size_bytes(), 96 * kMiB);
  EXPECT_NE((*store)->describe().find("rbd:rbd/" + image + " ("), std::string::npos) << (*store)->describe();
  Buffer written(kUnit, 1), read(kUnit);
  EXPECT_EQ(transfer(**store, transfer_of(Op::kRead, 0, read)), 0);
  EXPECT_TRUE(read.is_zero());
  EXPECT_EQ(transfer(**store, transfer_of(Op::kWrite, 0, written)), 0);
  EXPECT_EQ(transfer(**store, transfer_of(Op::kRead, 0, read)), 0);
  EXPECT_TRUE(read == written);
  auto found = remove_dead_spill_images(*address);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().image, image);
  EXPECT_EQ(found->front().outcome, SpillImageFound::Outcome::kInUse) << found->front().why;
  store->reset();
  found = remove_dead_spill_images(*address);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->empty()) << found->front().image;
}

TEST_F(RbdStoreTest, any_number_of_images_are_made_in_one_pool) {
  std::vector<std::unique_ptr<Store>> stores;
  for (unsigned i = 0; i < 3; ++i) {
    auto store = open_store(Ceph::here().pool_uri("&size=64M"), {.spill = true});
    ASSERT_TRUE(store) << store.status().message();
    stores.push_back(std::move(*store));
    Buffer written(kUnit, i + 1);
    EXPECT_EQ(transfer(*stores.back(), transfer_of(Op::kWrite, 0, written)), 0);
  }
  for (unsigned i = 0; i < 3; ++i) {
    Buffer read(kUnit);
    EXPECT_EQ(transfer(*stores[i], transfer_of(Op::kRead, 0, read)), 0);
    EXPECT_TRUE(read == Buffer(kUnit, i + 1)) << i;
  }
}

TEST_F(RbdStoreTest, an_image_of_which_nothing_is_but_its_name_is_removed) {
  auto address = RbdAddress::parse(Ceph::here().pool_uri().substr(4));
  ASSERT_TRUE(address);
  const std::string empty = SpillImageName{17, 1}.text(), full = SpillImageName{17, 2}.text();
  ASSERT_EQ(Ceph::here().tell("make_image " + empty + " 0"), "ok");
  ASSERT_EQ(Ceph::here().tell("make_image " + full + " 4096"), "ok");
  auto found = remove_dead_spill_images(*address);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  for (const SpillImageFound& each : *found)
    EXPECT_EQ(each.outcome,
              each.image == empty ? SpillImageFound::Outcome::kRemoved : SpillImageFound::Outcome::kForeign)
        << each.image << " " << each.why;
  ASSERT_EQ(Ceph::here().tell("remove_image " + full), "ok");
}

}  // namespace
}  // namespace spw::store
