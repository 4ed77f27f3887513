#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <thread>

#include "fake_access.h"
#include "libc/io/bounce.h"
#include "libc/io/transfers.h"

namespace spw::libc {
namespace {

using testing::FakeManagedSpace;
using testing::Twin;

constexpr size_t kBytes = 600000;

struct TransfersTest : ::testing::Test {
  TransfersTest() {
    file = fileno(tmpfile());
    a.randomise(rng);
  }
  FakeManagedSpace space;
  Rng rng{1};
  Twin a{space, kBytes}, b{space, kBytes};
  int file;
};

TEST_F(TransfersTest, whole_files_go_out_and_come_back) {
  ASSERT_EQ(write_fd(file, a.managed() + 5, kBytes - 5), static_cast<ssize_t>(kBytes - 5));
  lseek(file, 0, SEEK_SET);
  ASSERT_EQ(read_fd(file, b.managed() + 5, kBytes - 5), static_cast<ssize_t>(kBytes - 5));
  std::copy(a.plain() + 5, a.plain() + kBytes, b.plain() + 5);
  b.expect_same();
  EXPECT_EQ(read_fd(file, b.managed(), 100), 0);
}

TEST_F(TransfersTest, positioned_transfers_agree_with_libc) {
  ASSERT_EQ(pwrite(file, a.plain(), kBytes, 0), static_cast<ssize_t>(kBytes));
  for (int round = 0; round < 200; ++round) {
    size_t at = rng.below(kBytes), n = rng.below(uint64_t{1} << rng.below(20)) % (kBytes - at);
    auto offset = static_cast<off_t>(rng.below(kBytes + 1000));
    if (rng.below(2)) {
      ASSERT_EQ(pread_fd(file, b.managed() + at, n, offset), pread(file, b.plain() + at, n, offset));
    } else {
      ASSERT_EQ(pwrite_fd(file, a.managed() + at, n, offset), static_cast<ssize_t>(n));
    }
  }
  b.expect_same();
}

TEST_F(TransfersTest, a_short_read_touches_nothing_behind_what_came) {
  ASSERT_EQ(pwrite(file, a.plain(), 5000, 0), 5000);
  b.randomise(rng);
  EXPECT_EQ(pread_fd(file, b.managed() + 100, 200000, 0), 5000);
  std::copy(a.plain(), a.plain() + 5000, b.plain() + 100);
  b.expect_same();
}

TEST_F(TransfersTest, scattered_transfers_mix_kinds_of_memory) {
  iovec out[3] = {{a.managed() + 100, 150000}, {a.plain() + 300000, 7}, {a.managed() + 200000, 50000}};
  ASSERT_EQ(writev_fd(file, out, 3), 200007);
  lseek(file, 0, SEEK_SET);
  iovec in[2] = {{b.managed() + 9, 170000}, {b.managed() + 200000, 100000}};
  ASSERT_EQ(readv_fd(file, in, 2), 200007);
  std::vector<char> all;
  for (const iovec& piece : {iovec{a.plain() + 100, 150000}, out[1], iovec{a.plain() + 200000, 50000}})
    all.insert(all.end(), static_cast<char*>(piece.iov_base),
               static_cast<char*>(piece.iov_base) + piece.iov_len);
  std::copy(all.begin(), all.begin() + 170000, b.plain() + 9);
  std::copy(all.begin() + 170000, all.end(), b.plain() + 200000);
  b.expect_same();
  ASSERT_EQ(preadv_fd(file, in, 2, 50000), 150007);
  ASSERT_EQ(pwritev_fd(file, out, 3, 10), 200007);
  EXPECT_EQ(readv_fd(file, in, -1), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(TransfersTest, a_list_of_pieces_may_be_managed_itself) {
  iovec list[2] = {{a.managed(), 1000}, {a.managed() + 1000, 1000}};
  auto* managed_list = reinterpret_cast<iovec*>(b.managed() + 4088);
  std::copy_n(reinterpret_cast<char*>(list), sizeof(list), b.plain() + 4088);
  b.put();
  EXPECT_EQ(writev_fd(file, managed_list, 2), 2000);
}

TEST_F(TransfersTest, a_pipe_returns_what_is_there_and_never_blocks_with_data_in_hand) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
  ASSERT_EQ(write_fd(ends[1], a.managed(), kBounceBytes), static_cast<ssize_t>(kBounceBytes));
  // Exactly one full piece is there; a second read would block for ever.
  EXPECT_EQ(read_fd(ends[0], b.managed(), kBytes), static_cast<ssize_t>(kBounceBytes));
  ASSERT_EQ(write_fd(ends[1], a.managed(), 2 * kBounceBytes + 5), static_cast<ssize_t>(2 * kBounceBytes + 5));
  EXPECT_EQ(read_fd(ends[0], b.managed(), kBytes), static_cast<ssize_t>(2 * kBounceBytes + 5));
  std::copy_n(a.plain(), 2 * kBounceBytes + 5, b.plain());
  b.expect_same();
  close(ends[1]);
  EXPECT_EQ(read_fd(ends[0], b.managed(), 10), 0);
  close(ends[0]);
  EXPECT_EQ(read_fd(ends[0], b.managed(), 10), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(TransfersTest, a_blocking_pipe_takes_all_of_a_large_write) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::vector<char> got;
  std::thread reader([&] {
    char piece[4096];
    for (ssize_t n; (n = ::read(ends[0], piece, sizeof(piece))) > 0;) got.insert(got.end(), piece, piece + n);
  });
  EXPECT_EQ(write_fd(ends[1], a.managed(), kBytes), static_cast<ssize_t>(kBytes));
  close(ends[1]);
  reader.join();
  EXPECT_TRUE(std::equal(got.begin(), got.end(), a.plain(), a.plain() + kBytes));
  close(ends[0]);
}

TEST_F(TransfersTest, a_full_nonblocking_pipe_reports_what_it_took_and_then_eagain) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  ssize_t took = write_fd(ends[1], a.managed(), kBytes);
  EXPECT_GT(took, 0);
  EXPECT_LT(took, static_cast<ssize_t>(kBytes));
  EXPECT_EQ(write_fd(ends[1], a.managed(), kBytes), -1);
  EXPECT_EQ(errno, EAGAIN);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(TransfersTest, datagrams_are_never_cut) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
  int room = 1 << 20;
  setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
  const size_t large = 150000;
  ssize_t sent = send_to(ends[0], a.managed(), large, 0, nullptr, 0);
  if (sent < 0 && errno == EMSGSIZE) GTEST_SKIP() << "net.core.wmem_max is too small for a large datagram";
  ASSERT_EQ(sent, static_cast<ssize_t>(large));
  ASSERT_EQ(write_fd(ends[0], a.managed(), 100), 100);
  ASSERT_EQ(receive(ends[1], b.managed(), kBytes, 0, nullptr, nullptr), static_cast<ssize_t>(large));
  ASSERT_EQ(read_fd(ends[1], b.managed() + large, kBytes - large), 100);
  std::copy_n(a.plain(), large, b.plain());
  std::copy_n(a.plain(), 100, b.plain() + large);
  b.expect_same();
  EXPECT_EQ(
      send_to(ends[0], space.heap->allocate(2 * kBounceBytesMax).address, 2 * kBounceBytesMax, 0, nullptr, 0),
      -1);
  EXPECT_EQ(errno, EMSGSIZE);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(TransfersTest, waitall_waits_and_peek_takes_nothing) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  std::thread sender([&] {
    for (size_t at = 0; at < kBytes; at += 10000) send_to(ends[0], a.managed() + at, 10000, 0, nullptr, 0);
  });
  EXPECT_GT(receive(ends[1], b.managed(), 1000, MSG_PEEK, nullptr, nullptr), 0);
  EXPECT_EQ(receive(ends[1], b.managed(), kBytes, MSG_WAITALL, nullptr, nullptr),
            static_cast<ssize_t>(kBytes));
  sender.join();
  std::copy_n(a.plain(), kBytes, b.plain());
  b.expect_same();
  close(ends[0]);
  close(ends[1]);
}

TEST_F(TransfersTest, addresses_may_be_managed) {
  int receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(receiver, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    GTEST_SKIP() << "no loopback";
  socklen_t bytes = sizeof(address);
  getsockname(receiver, reinterpret_cast<sockaddr*>(&address), &bytes);
  std::copy_n(reinterpret_cast<char*>(&address), bytes, b.plain() + 4090);
  b.put();
  auto* to = reinterpret_cast<sockaddr*>(b.managed() + 4090);
  ASSERT_EQ(send_to(sender, a.managed() + 4000, 300, 0, to, bytes), 300);
  *reinterpret_cast<socklen_t*>(b.plain() + 8192) = sizeof(address);
  b.put();
  auto* from_bytes = reinterpret_cast<socklen_t*>(b.managed() + 8192);
  ASSERT_EQ(
      receive(receiver, b.managed(), 1000, 0, reinterpret_cast<sockaddr*>(b.managed() + 5000), from_bytes),
      300);
  auto contents = b.contents();
  EXPECT_EQ(*reinterpret_cast<socklen_t*>(contents.data() + 8192), sizeof(address));
  sockaddr_in from;
  std::copy_n(contents.data() + 5000, sizeof(from), reinterpret_cast<char*>(&from));
  EXPECT_EQ(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  close(receiver);
  close(sender);
}

TEST_F(TransfersTest, messages_may_be_managed_in_every_part) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  // Sends a descriptor along, with header, pieces, control data and payload all in managed memory.
  iovec pieces[2] = {{a.managed() + 10, 5000}, {a.managed() + 90000, 300}};
  union {
    cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control{};
  control.header.cmsg_len = CMSG_LEN(sizeof(int));
  control.header.cmsg_level = SOL_SOCKET;
  control.header.cmsg_type = SCM_RIGHTS;
  *reinterpret_cast<int*>(CMSG_DATA(&control.header)) = file;
  msghdr message{};
  message.msg_iov = reinterpret_cast<iovec*>(b.managed() + 4096 - 8);
  message.msg_iovlen = 2;
  message.msg_control = b.managed() + 8192 - 8;
  message.msg_controllen = sizeof(control);
  std::copy_n(reinterpret_cast<char*>(pieces), sizeof(pieces), b.plain() + 4096 - 8);
  std::copy_n(control.bytes, sizeof(control), b.plain() + 8192 - 8);
  std::copy_n(reinterpret_cast<char*>(&message), sizeof(message), b.plain() + 12288 - 16);
  b.put();
  auto* managed_message = reinterpret_cast<msghdr*>(b.managed() + 12288 - 16);
  ASSERT_EQ(send_message(ends[0], managed_message, 0), 5300);
  pieces[0] = {b.managed() + 100000, 5000};
  pieces[1] = {b.managed() + 200000, 5000};
  std::copy_n(reinterpret_cast<char*>(pieces), sizeof(pieces), b.plain() + 4096 - 8);
  b.put();
  ASSERT_EQ(receive_message(ends[1], managed_message, 0), 5300);
  auto contents = b.contents();
  EXPECT_TRUE(std::equal(a.plain() + 10, a.plain() + 5010, contents.data() + 100000));
  EXPECT_TRUE(std::equal(a.plain() + 90000, a.plain() + 90300, contents.data() + 200000));
  std::copy_n(contents.data() + 8192 - 8, sizeof(control), control.bytes);
  int received = *reinterpret_cast<int*>(CMSG_DATA(&control.header));
  EXPECT_NE(received, file);
  EXPECT_NE(fcntl(received, F_GETFD), -1);
  for (int fd : {received, ends[0], ends[1]}) close(fd);
}

TEST_F(TransfersTest, random_bytes_fill_all_of_it) {
  EXPECT_EQ(__spw_getrandom_v1(b.managed(), 300000, 0), 300000);
  auto contents = b.contents();
  EXPECT_LT(std::count(contents.begin(), contents.begin() + 300000, 0), 3000);
}

TEST_F(TransfersTest, more_threads_than_pooled_buffers_all_get_one) {
  ASSERT_EQ(pwrite(file, a.plain(), kBytes, 0), static_cast<ssize_t>(kBytes));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2 * kBounceBuffers; ++t)
    threads.emplace_back([&, t] {
      size_t at = t * 10000;
      EXPECT_EQ(pread_fd(file, b.managed() + at, 10000, static_cast<off_t>(at)), 10000);
    });
  for (auto& thread : threads) thread.join();
  std::copy_n(a.plain(), 2 * kBounceBuffers * 10000, b.plain());
  b.expect_same();
}

}  // namespace
}  // namespace spw::libc
