// What only a store on a server has to deal with: its limits, its errors, its silence and its death.
#include "store/nbd_store.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>

#include "store_fixture.h"

namespace spw::store {
namespace {

TEST(NbdAddress, is_read_from_its_name) {
  auto tcp = NbdAddress::parse("nbd:", "//store.example:1234/a%20b?timeout=5&connections=2");
  ASSERT_TRUE(tcp) << tcp.status().message();
  EXPECT_EQ(tcp->host, "store.example");
  EXPECT_EQ(tcp->port, "1234");
  EXPECT_EQ(tcp->export_name, "a b");
  EXPECT_EQ(tcp->timeout_seconds, 5u);
  EXPECT_EQ(tcp->connections, 2u);
  EXPECT_EQ(tcp->text, "nbd://store.example:1234/a%20b");
  auto plain = NbdAddress::parse("nbd:", "//10.0.0.1");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->port, "10809");
  EXPECT_EQ(plain->export_name, "");
  auto six = NbdAddress::parse("nbd:", "//[::1]:99/x");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->port, "99");
  auto local = NbdAddress::parse("nbd+unix:", "///disk?socket=/run/nbd%2Csock");
  ASSERT_TRUE(local);
  EXPECT_EQ(local->socket, "/run/nbd,sock");
  EXPECT_EQ(local->export_name, "disk");
}

TEST(NbdAddress, what_is_none_is_refused_in_one_line) {
  for (const char* rest :
       {"", "//", "host", "//host:0", "//host:99999", "//host:port", "//[::1", "//h?timeout=0",
        "//h?timeout=9999", "//h?socket=/x", "//h?tiemout=3", "//h/%zz", "//h?connections=99"}) {
    auto address = NbdAddress::parse("nbd:", rest);
    EXPECT_EQ(address.status().error(), EINVAL) << rest;
    EXPECT_EQ(address.status().message().find('\n'), std::string::npos);
  }
  EXPECT_EQ(NbdAddress::parse("nbd+unix:", "///x").status().error(), EINVAL);
  EXPECT_EQ(NbdAddress::parse("nbd+unix:", "//host/x?socket=/s").status().error(), EINVAL);
  EXPECT_EQ(NbdAddress::parse("nbd+unix:", "///x?socket=" + std::string(200, 'x')).status().error(), EINVAL);
}

class NbdStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!NbdServer::missing().empty()) GTEST_SKIP() << NbdServer::missing();
    directory_ = make_scratch_directory();
    server_ = std::make_unique<NbdServer>(directory_ + "/socket");
  }
  void TearDown() override {
    store_.reset();
    server_.reset();
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  // Starts the server with these arguments and opens its export.
  void serve(const std::vector<std::string>& arguments, const std::string& parameters = "") {
    ASSERT_TRUE(server_->start(arguments));
    ASSERT_NO_FATAL_FAILURE(open(server_->uri(parameters)));
  }
  void open(const std::string& uri) {
    auto opened = open_store(uri);
    ASSERT_TRUE(opened) << opened.status().message();
    store_ = std::move(*opened);
  }
  NbdStore& nbd() { return static_cast<NbdStore&>(*store_); }
  std::string make_image(uint64_t bytes) {
    std::string path = directory_ + "/image";
    Buffer contents(round_up(bytes, kUnit), 99);
    std::ofstream(path).write(reinterpret_cast<const char*>(contents.data()),
                              static_cast<std::streamsize>(bytes));
    return path;
  }
  int perform(Request request) { return store_->transfer(request).error(); }
  int write(uint64_t offset, uint64_t bytes, uint64_t seed) {
    return perform(transfer_of(Op::kWrite, offset, Buffer(bytes, seed)));
  }
  ::testing::AssertionResult holds(uint64_t offset, uint64_t bytes, uint64_t seed) {
    Buffer read(bytes);
    if (int error = perform(transfer_of(Op::kRead, offset, read)))
      return ::testing::AssertionFailure() << "errno " << error << " " << store_->describe();
    bool right = seed == 0 ? read.is_zero() : read == Buffer(bytes, seed);
    return right ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << "other bytes";
  }
  // The image's own contents.
  ::testing::AssertionResult holds_image(uint64_t offset, uint64_t bytes) {
    Buffer read(bytes), image(16 * kMiB, 99);
    if (int error = perform(transfer_of(Op::kRead, offset, read)))
      return ::testing::AssertionFailure() << "errno " << error << " " << store_->describe();
    return std::memcmp(read.data(), image.data() + offset, bytes) == 0
               ? ::testing::AssertionSuccess()
               : ::testing::AssertionFailure() << "other bytes";
  }

  std::string directory_;
  std::unique_ptr<NbdServer> server_;
  std::unique_ptr<Store> store_;
};

TEST_F(NbdStoreTest, several_connections_are_made_where_the_server_allows_them) {
  ASSERT_NO_FATAL_FAILURE(serve({"memory", "8M"}));
  EXPECT_EQ(nbd().connections(), kNbdConnectionsDefault);
  EXPECT_TRUE(store_->describe().ends_with("(4 connections)")) << store_->describe();
  ASSERT_NO_FATAL_FAILURE(open(server_->uri("&connections=2")));
  EXPECT_EQ(nbd().connections(), 2u);
  server_->kill();
  ASSERT_NO_FATAL_FAILURE(serve({"--filter=multi-conn", "memory", "8M", "multi-conn-mode=disable"}));
  EXPECT_EQ(nbd().connections(), 1u);
  EXPECT_EQ(write(kMiB, 64 * kKiB, 1), 0);
  EXPECT_TRUE(holds(kMiB, 64 * kKiB, 1));
}

TEST_F(NbdStoreTest, a_server_is_reached_over_tcp_by_host_port_and_export) {
  int probe = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof any;
  ASSERT_EQ(::bind(probe, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::getsockname(probe, reinterpret_cast<sockaddr*>(&any), &length), 0);
  ::close(probe);
  std::string port = std::to_string(ntohs(any.sin_port));
  if (!server_->start_tcp(port, {"memory", "8M"})) GTEST_SKIP() << "no server over TCP here";
  ASSERT_NO_FATAL_FAILURE(open("nbd://127.0.0.1:" + port + "/any"));
  EXPECT_EQ(write(kMiB, kMiB, 1), 0);
  EXPECT_TRUE(holds(kMiB, kMiB, 1));
}

TEST_F(NbdStoreTest, a_size_that_is_no_multiple_of_anything_is_kept_to) {
  constexpr uint64_t kBytes = kMiB + 1234;
  std::string image = make_image(kBytes);
  ASSERT_NO_FATAL_FAILURE(serve({"file", image}));
  EXPECT_EQ(store_->size_bytes(), kBytes);
  EXPECT_EQ(write(kMiB - kUnit, 4 * kUnit, 1), 0);
  Buffer read(4 * kUnit), written(4 * kUnit, 1);
  EXPECT_EQ(perform(transfer_of(Op::kRead, kMiB - kUnit, read)), 0);
  EXPECT_EQ(std::memcmp(read.data(), written.data(), kUnit + 1234), 0);
  EXPECT_TRUE(read.is_zero(kUnit + 1234));
  EXPECT_EQ(perform(discard_of(kMiB, kUnit)), 0);
  EXPECT_EQ(perform(transfer_of(Op::kRead, kMiB, read)), 0);
  EXPECT_TRUE(read.is_zero());
  EXPECT_EQ(perform(sync_of()), 0);
  EXPECT_EQ(std::filesystem::file_size(image), kBytes);
}

TEST_F(NbdStoreTest, block_sizes_the_server_insists_on_are_kept_to) {
  ASSERT_NO_FATAL_FAILURE(
      serve({"--filter=blocksize-policy", "memory", "8M", "blocksize-minimum=16K", "blocksize-preferred=16K",
             "blocksize-maximum=64K", "blocksize-error-policy=error"}));
  EXPECT_EQ(store_->alignment_bytes(), 16 * kKiB);
  Buffer written(2 * kMiB, 1), read(2 * kMiB);
  auto aligned = [](Op op, const Buffer& buffer) {  // more than one request takes
    Request request = transfer_of(op, kMiB, buffer);
    auto address = round_up(reinterpret_cast<uintptr_t>(buffer.data()), 16 * kKiB);
    request.segments[0] = {reinterpret_cast<void*>(address), kMiB};
    return request;
  };
  Request write_all = aligned(Op::kWrite, written), read_all = aligned(Op::kRead, read);
  EXPECT_EQ(perform(write_all), 0);
  EXPECT_EQ(perform(read_all), 0);
  EXPECT_EQ(std::memcmp(write_all.segments[0].iov_base, read_all.segments[0].iov_base, kMiB), 0);
  EXPECT_EQ(write(kUnit, kUnit, 1), EINVAL);
}

TEST_F(NbdStoreTest, a_server_without_zeroing_or_flushes_works) {
  std::string image = make_image(8 * kMiB);
  ASSERT_NO_FATAL_FAILURE(
      serve({"--filter=nozero", "eval", "get_size=echo 8388608",
             "pread=dd if=" + image + " skip=$4 count=$3 iflag=skip_bytes,count_bytes status=none",
             "pwrite=dd of=" + image + " seek=$4 oflag=seek_bytes conv=notrunc status=none"}));
  EXPECT_EQ(write(0, 4 * kUnit, 1), 0);
  EXPECT_EQ(perform(discard_of(0, 4 * kUnit)), 0);
  EXPECT_TRUE(holds(0, 4 * kUnit, 0));
  EXPECT_EQ(perform(sync_of()), 0);
}

TEST_F(NbdStoreTest, any_number_of_clients_read_a_read_only_export_and_none_writes) {
  ASSERT_NO_FATAL_FAILURE(serve({"-r", "file", make_image(2 * kMiB)}));
  EXPECT_TRUE(nbd().is_read_only());
  std::vector<std::unique_ptr<Store>> clients;
  for (int i = 0; i < 6; ++i) {
    auto opened = open_store(server_->uri());
    ASSERT_TRUE(opened) << opened.status().message();
    clients.push_back(std::move(*opened));
  }
  Buffer image(2 * kMiB, 99), read(2 * kMiB);
  for (auto& client : clients) {
    Request request = transfer_of(Op::kRead, 0, read);
    EXPECT_TRUE(client->transfer(request));
    EXPECT_EQ(read, image);
  }
  EXPECT_EQ(write(0, kUnit, 1), EROFS);
  EXPECT_EQ(perform(discard_of(0, kUnit)), EROFS);
  EXPECT_EQ(perform(sync_of()), 0);
}

TEST_F(NbdStoreTest, the_servers_errors_are_the_requests_and_pass_when_they_do) {
  std::string trigger = directory_ + "/fail";
  ASSERT_NO_FATAL_FAILURE(serve({"--filter=error", "memory", "8M", "error-pread=EIO", "error-pread-rate=100%",
                                 "error-pwrite=ENOSPC", "error-pwrite-rate=100%", "error-file=" + trigger}));
  EXPECT_EQ(write(0, kUnit, 1), 0);
  std::ofstream(trigger.c_str());
  EXPECT_EQ(write(0, kUnit, 2), ENOSPC);
  Buffer buffer(kUnit);
  Request read = transfer_of(Op::kRead, 0, buffer);
  Status status = store_->transfer(read);
  EXPECT_EQ(status.error(), EIO);
  EXPECT_NE(status.message().find("nbd+unix:///?socket="), std::string::npos) << status.message();
  std::filesystem::remove(trigger);
  EXPECT_TRUE(holds(0, kUnit, 1)) << "a refused write has left the old data";
}

TEST_F(NbdStoreTest, a_slow_server_is_waited_for) {
  ASSERT_NO_FATAL_FAILURE(serve({"--filter=delay", "memory", "8M", "rdelay=1200ms"}, "&timeout=3"));
  EXPECT_EQ(write(0, kUnit, 1), 0);
  EXPECT_TRUE(holds(0, kUnit, 1));
}

TEST_F(NbdStoreTest, a_server_that_does_not_answer_is_given_up_after_the_timeout) {
  ASSERT_NO_FATAL_FAILURE(serve({"memory", "8M"}, "&timeout=1"));
  auto other = open_store("memory:1M");
  ASSERT_TRUE(other);
  EXPECT_EQ(write(0, kUnit, 1), 0);
  server_->stop();
  Buffer buffer(kUnit);
  Request read = transfer_of(Op::kRead, 0, buffer);
  Status status = store_->transfer(read);
  EXPECT_EQ(status.error(), ETIMEDOUT);
  EXPECT_NE(status.message().find("has not answered for 1 s"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("see that the server runs"), std::string::npos) << status.message();
  server_->go_on();
  EXPECT_EQ(write(0, kUnit, 2), ETIMEDOUT) << "it stays lost";
  Request elsewhere = transfer_of(Op::kWrite, 0, buffer);
  EXPECT_TRUE((*other)->transfer(elsewhere));
}

TEST_F(NbdStoreTest, a_server_that_dies_with_unsynced_writes_is_an_error_that_lasts) {
  std::string image = make_image(8 * kMiB);
  ASSERT_NO_FATAL_FAILURE(serve({"file", image}, "&timeout=2"));
  EXPECT_EQ(write(0, kUnit, 1), 0);
  server_->kill();
  auto queue = store_->open_queue(8);
  ASSERT_TRUE(queue);
  std::vector<Buffer> buffers;
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 32; ++i) {
    buffers.emplace_back(kUnit, i + 1);
    requests.push_back(transfer_of(i % 2 ? Op::kRead : Op::kWrite, i * kUnit, buffers.back()));
  }
  std::vector<Request*> pointers;
  for (Request& request : requests) pointers.push_back(&request);
  for (int error : StoreTest::drive(**queue, pointers)) EXPECT_EQ(error, ENOTCONN);
  ASSERT_TRUE(server_->start({"file", image}));
  EXPECT_EQ(write(0, kUnit, 2), ENOTCONN) << "the server that is back may have lost what was written";
  EXPECT_NE(store_->describe().find("may be lost"), std::string::npos) << store_->describe();
}

TEST_F(NbdStoreTest, reads_go_on_when_the_server_comes_back) {
  std::string image = make_image(8 * kMiB);
  ASSERT_NO_FATAL_FAILURE(serve({"file", image}));
  EXPECT_TRUE(holds_image(kMiB, kUnit));
  server_->kill();
  ASSERT_TRUE(server_->start({"file", image}));
  for (uint64_t i = 0; i < 16; ++i) EXPECT_TRUE(holds_image(i * 64 * kKiB, 64 * kKiB)) << i;
  EXPECT_EQ(write(kMiB, kUnit, 1), 0);
  EXPECT_EQ(perform(sync_of()), 0);
  server_->kill();
  ASSERT_TRUE(server_->start({"file", image}));
  EXPECT_TRUE(holds(kMiB, kUnit, 1)) << "what was synced is safe to go on from";
}

TEST_F(NbdStoreTest, a_server_that_comes_back_with_another_size_is_not_gone_on_with) {
  ASSERT_NO_FATAL_FAILURE(serve({"-r", "file", make_image(8 * kMiB)}, "&timeout=2"));
  server_->kill();
  ASSERT_TRUE(server_->start({"-r", "file", make_image(4 * kMiB)}));
  Buffer buffer(kUnit);
  EXPECT_EQ(perform(transfer_of(Op::kRead, 0, buffer)), ENOTCONN);
  EXPECT_NE(store_->describe().find("another one now"), std::string::npos) << store_->describe();
}

TEST_F(NbdStoreTest, reads_from_a_server_that_stays_away_fail_within_the_timeout) {
  ASSERT_NO_FATAL_FAILURE(serve({"-r", "file", make_image(8 * kMiB)}, "&timeout=1"));
  server_->kill();
  Buffer buffer(kUnit);
  EXPECT_EQ(perform(transfer_of(Op::kRead, 0, buffer)), ENOTCONN);
  EXPECT_NE(store_->describe().find("cannot be made again"), std::string::npos) << store_->describe();
}

TEST_F(NbdStoreTest, a_server_that_is_not_there_or_says_nothing_is_an_error_of_opening) {
  Status nobody = open_store(server_->uri()).status();
  EXPECT_NE(nobody.error(), 0);
  EXPECT_NE(nobody.message().find("see that the server runs there"), std::string::npos) << nobody.message();
  EXPECT_EQ(nobody.message().find('\n'), std::string::npos);
  ASSERT_TRUE(server_->start({"memory", "8M"}));
  server_->stop();
  EXPECT_EQ(open_store(server_->uri("&timeout=1")).status().error(), ETIMEDOUT);
}

// A key that both sides have, and one that the server does not know.
TEST_F(NbdStoreTest, over_tls_or_not_at_all) {
  const auto key_file = [this](const std::string& name, char digit) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << "spillway:" << std::string(64, digit) << "\n";
    return path;
  };
  const std::string known = key_file("known", '5'), other = key_file("other", '6');
  ASSERT_TRUE(server_->start({"--tls=require", "--tls-psk=" + known, "memory", "8M"}));
  const auto tls = [this](const std::string& key) {
    return "nbds+unix:///?socket=" + directory_ + "/socket&tls-username=spillway&tls-psk-file=" + key;
  };
  auto opened = open_store(tls(known));
  if (!opened && opened.status().error() == ENOTSUP) GTEST_SKIP() << opened.status().message();
  ASSERT_TRUE(opened) << opened.status().message();
  Buffer written(kUnit, 5), got(kUnit);
  Request write = transfer_of(Op::kWrite, 0, written), read = transfer_of(Op::kRead, 0, got);
  EXPECT_TRUE((*opened)->transfer(write));
  EXPECT_TRUE((*opened)->transfer(read));
  EXPECT_EQ(got, written);
  for (const std::string& wrong : {tls(other), tls(directory_ + "/none"), server_->uri()}) {
    const Status refused = open_store(wrong).status();
    EXPECT_NE(refused.error(), 0) << wrong;
    EXPECT_EQ(refused.message().find('\n'), std::string::npos) << refused.message();
  }
  opened->reset();
  server_->kill();
  ASSERT_TRUE(server_->start({"memory", "8M"}));
  EXPECT_NE(open_store(tls(known)).status().error(), 0) << "a server without TLS";
  EXPECT_EQ(open_store(server_->uri("&tls-username=a")).status().error(), EINVAL);
}

TEST_F(NbdStoreTest, qemu_nbd_serves_too) {
  if (!NbdServer::missing("qemu-nbd").empty()) GTEST_SKIP() << NbdServer::missing("qemu-nbd");
  ASSERT_TRUE(server_->start_qemu({"-f", "raw", "-e", "8", make_image(8 * kMiB)}));
  ASSERT_NO_FATAL_FAILURE(open(server_->uri()));
  EXPECT_TRUE(holds_image(kMiB, kMiB));
  EXPECT_EQ(write(2 * kMiB - kUnit, 3 * kUnit, 1), 0);
  EXPECT_EQ(perform(discard_of(2 * kMiB, kUnit)), 0);
  EXPECT_EQ(perform(sync_of()), 0);
  EXPECT_TRUE(holds(2 * kMiB, kUnit, 0));
}

}  // namespace
}  // namespace spw::store
