#include "store/open_store.h"

#include "store_fixture.h"

namespace spw::store {
namespace {

TEST(OpenStore, knows_every_scheme) {
  std::string directory = make_scratch_directory();
  std::string path = directory + "/data";
  platform::File file(::open(path.c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_TRUE(platform::set_file_size(file, kMiB));
  auto memory = open_store("memory:2M");
  ASSERT_TRUE(memory);
  EXPECT_EQ((*memory)->size_bytes(), 2 * kMiB);
  EXPECT_EQ((*memory)->describe(), "memory:2.0 MiB");
  auto whole = open_store("file:" + path, {.engine = IoEngineKind::kThreads});
  ASSERT_TRUE(whole) << whole.status().message();
  EXPECT_EQ((*whole)->size_bytes(), kMiB);
  EXPECT_TRUE((*whole)->describe().starts_with("file:" + path + " (threads")) << (*whole)->describe();
  for (const std::string& uri : {"spill:" + directory, directory}) {
    auto spill = open_store(uri);
    ASSERT_TRUE(spill) << spill.status().message();
    EXPECT_TRUE((*spill)->describe().starts_with("spill:" + directory)) << (*spill)->describe();
  }
  {
    auto sparse = open_store("sparse:" + directory + "/s?segment=1M&size=4M");
    ASSERT_TRUE(sparse) << sparse.status().message();
    EXPECT_EQ((*sparse)->size_bytes(), 4 * kMiB);
    EXPECT_TRUE((*sparse)->describe().starts_with("sparse:" + directory + "/s (segments of 1.0 MiB, "))
        << (*sparse)->describe();
  }
  EXPECT_TRUE(open_store("sparse:" + directory + "/s?mode=read"));
  EXPECT_EQ(open_store("sparse:" + directory + "/s?mode=create&size=4M").status().error(), EEXIST);
  EXPECT_TRUE(open_store("sparse:" + directory + "/s", {.spill = true})) << "spilling ignores what is there";
  std::filesystem::remove_all(directory);
}

TEST(OpenStore, says_what_it_cannot_make_of_a_name) {
  for (const char* uri :
       {"", "memory:", "memory:much", "memory:0", "tape:/dev/st0", "/no/such/place", "/etc/passwd",
        "sparse:", "sparse:/tmp?size=much", "sparse:/tmp?size=", "sparse:/tmp?size", "sparse:/tmp?sise=1G",
        "sparse:/tmp?size=1G&size=2G", "nbd:host", "nbd://", "nbd+unix:///x",
        "sparse:/tmp?size=1G&mode=append", "sparse:/tmp?size=%4", "nbd://host/a%00b"}) {
    auto store = open_store(uri);
    ASSERT_FALSE(store) << uri;
    EXPECT_EQ(store.status().error(), EINVAL) << uri;
  }
  EXPECT_EQ(open_store("spill:/no/such/place").status().error(), ENOENT);
  EXPECT_EQ(open_store("file:/no/such/file").status().error(), ENOENT);
}

TEST(OpenStore, stripes_of_stripes_have_a_depth) {
  const auto nested = [](size_t depth) {
    std::string name;
    for (size_t i = 0; i < depth; ++i) name += "striped:";
    return name + "memory:2M";
  };
  const Status four = open_store(nested(4)).status();
  EXPECT_EQ(four.message().find("depth"), std::string::npos) << four.message();
  for (const size_t depth : {5, 100'000}) {
    const Status status = open_store(nested(depth)).status();
    EXPECT_EQ(status.error(), EINVAL);
    EXPECT_NE(status.message().find("depth of 4"), std::string::npos) << status.message();
  }
}

TEST(OpenStore, hands_its_faults_on) {
  auto faults = FaultPlan::parse("read:1:EIO");
  ASSERT_TRUE(faults);
  auto store = open_store("memory:1M", {.faults = faults->get()});
  ASSERT_TRUE(store);
  Buffer buffer(kUnit);
  Request read = transfer_of(Op::kRead, 0, buffer);
  EXPECT_EQ((*store)->transfer(read).error(), EIO);
}

}  // namespace
}  // namespace spw::store
