// A line between two networks on which every packet takes a while: for kernels without netem.
//
//   delayed_line DEVICE DEVICE DELAY_US
//       makes two TAP devices of these names, prints "ready", and passes what comes in at one out at the other, so
//       much later, until it is killed. The devices are gone with it
//
// Packets are as large as the kernel hands them to a network card that cuts them up itself (TSO), so that they are few.
// A packet beyond kPacketsMax on its way is lost, as in a switch. One thread.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

namespace {

constexpr size_t kPacketsMax = 10'000;         // each way
constexpr size_t kPacketBytesMax = 80 * 1024;  // with its headers
constexpr uint64_t kNsPerSecond = 1'000'000'000;

struct Packet {
  uint64_t due_ns;
  std::vector<char> bytes;
};

// One way: from where to where, and what is between.
struct Way {
  int from, to;
  std::deque<Packet> packets;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "delayed_line: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

uint64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

int open_device(const char* name) {
  const int device = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) fail("/dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(device, TUNSETIFF, &request) != 0) fail(name);
  if (::ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) fail("offload");
  return device;
}

void take(Way& way, uint64_t delay_ns, std::vector<char>& buffer) {
  for (;;) {
    const ssize_t bytes = ::read(way.from, buffer.data(), buffer.size());
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR || errno == EIO))
      return;  // EIO: the device is not up
    if (bytes < 0) fail("read");
    if (way.packets.size() == kPacketsMax) continue;
    way.packets.push_back({now_ns() + delay_ns, {buffer.begin(), buffer.begin() + bytes}});
  }
}

void deliver(Way& way) {
  while (!way.packets.empty() && way.packets.front().due_ns <= now_ns()) {
    const std::vector<char>& bytes = way.packets.front().bytes;
    // One that the other side does not take is lost.
    if (::write(way.to, bytes.data(), bytes.size()) < 0 && errno != EAGAIN && errno != EIO &&
        errno != ENOBUFS)
      fail("write");
    way.packets.pop_front();
  }
}

// Until a packet comes in, or one is due.
void sleep_for_packets(const Way (&ways)[2]) {
  uint64_t due_ns = UINT64_MAX;
  for (const Way& way : ways)
    if (!way.packets.empty()) due_ns = std::min(due_ns, way.packets.front().due_ns);
  const uint64_t now = now_ns(), wait_ns = due_ns > now ? due_ns - now : 0;
  const timespec timeout{static_cast<time_t>(wait_ns / kNsPerSecond),
                         static_cast<long>(wait_ns % kNsPerSecond)};
  pollfd devices[] = {{ways[0].from, POLLIN, 0}, {ways[1].from, POLLIN, 0}};
  if (::ppoll(devices, 2, due_ns == UINT64_MAX ? nullptr : &timeout, nullptr) < 0 && errno != EINTR)
    fail("poll");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s DEVICE DEVICE DELAY_US\n", argv[0]);
    return 2;
  }
  ::prctl(PR_SET_TIMERSLACK, 1);
  const uint64_t delay_ns = std::strtoull(argv[3], nullptr, 10) * 1000;
  const int one = open_device(argv[1]), other = open_device(argv[2]);
  Way ways[] = {{one, other, {}}, {other, one, {}}};
  std::puts("ready");
  std::fflush(stdout);
  std::vector<char> buffer(kPacketBytesMax);
  for (;;) {
    sleep_for_packets(ways);
    for (Way& way : ways) {
      take(way, delay_ns, buffer);
      deliver(way);
    }
  }
}
