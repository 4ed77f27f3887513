// Streams, stdio and descriptors with managed buffers. Every part works in the current directory.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

constexpr size_t kBytes = 12u << 20;

std::vector<char> random_bytes(size_t count, uint64_t seed) {
  std::vector<char> bytes(count);
  for (size_t i = 0; i + 8 <= count; i += 8) {
    uint64_t n = next_random(&seed);
    std::memcpy(&bytes[i], &n, 8);
  }
  return bytes;
}

uint64_t sum_of(const char* bytes, size_t count) {
  uint64_t sum = count;
  for (size_t i = 0; i < count; ++i) sum = sum * 31 + static_cast<unsigned char>(bytes[i]);
  return sum;
}

int print_managed(long) {
  std::string text(10'000, 'x');
  auto* name = strdup("a managed name");
  auto* wide = static_cast<int*>(std::malloc(sizeof(int)));
  auto* number = static_cast<double*>(std::malloc(sizeof(double)));
  std::printf("%s %.5s %-10s|%zu%n\n", name, text.c_str(), name, text.size(), wide);
  std::printf("written %d\n", *wide);
  char* buffer = static_cast<char*>(std::malloc(20'000));
  int length = std::snprintf(buffer, 20'000, "%s/%s/%d", text.c_str(), name, 77);
  std::printf("%d %s\n", length, buffer + 9'990);
  std::sprintf(buffer, "%s=%08.3f", name, 3.25);
  std::puts(buffer);
  std::printf("%d %d\n", std::sscanf("12 34.5 word", "%d %lf %s", wide, number, buffer), *wide);
  std::printf("%.2f %s\n", *number, buffer);
  std::strcpy(buffer, "  99.75e1tail");
  char** end = static_cast<char**>(std::malloc(sizeof(char*)));
  double value = std::strtod(buffer, end);
  std::printf("%.3f [%s]\n", value, *end);
  std::strcpy(buffer, "7fffffffffffffffz");
  long long integer = std::strtoll(buffer, end, 16);
  std::printf("%lld [%s] %d\n", integer, *end, std::atoi("  42"));
  char* printed = nullptr;
  length = asprintf(&printed, "%s and %s", name, text.substr(0, 5).c_str());
  std::printf("%d %s\n", length, printed);
  std::free(printed);
  std::fputs(name, stdout);
  std::fputc('\n', stdout);
  fprintf(stdout, "%*s|%-*s|\n", 20, name, 20, name);
  fwrite(text.data(), 1, 40, stdout);
  std::putchar('\n');
  return 0;
}

int streams(long) {
  auto bytes = random_bytes(kBytes, 3);
  {
    std::ofstream out("bytes", std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::vector<char> back(bytes.size());
  std::ifstream in("bytes", std::ios::binary);
  in.read(back.data(), static_cast<std::streamsize>(back.size()));
  std::printf("read %lld, same %d\n", static_cast<long long>(in.gcount()), back == bytes);
  {
    std::ofstream out("lines");
    for (int i = 0; i < 100'000; ++i) out << i << ' ' << i * 0.5 << " word" << i % 13 << '\n';
  }
  std::ifstream lines("lines");
  std::string line;
  uint64_t sum = 0;
  while (std::getline(lines, line)) sum = mix(sum, sum_of(line.data(), line.size()));
  print_sum("getline", sum);
  std::ifstream words("lines");
  int n;
  double d;
  sum = 0;
  while (words >> n >> d >> line) sum = mix(sum, static_cast<uint64_t>(n + d * 2) + line.size());
  print_sum("extract", sum);
  std::stringstream text;
  for (int i = 0; i < 200'000; ++i) text << std::hex << i << ',' << std::setw(9) << std::setfill('0') << i;
  std::string built = text.str();
  print_sum("stringstream", sum_of(built.data(), built.size()));
  std::cout << built.substr(1'000'000, 30) << std::endl;
  std::istringstream parts(built);
  int count = 0;
  while (std::getline(parts, line, ',')) ++count;
  std::printf("parts %d\n", count);
  return 0;
}

int stdio(long) {
  auto bytes = random_bytes(kBytes, 5);
  FILE* file = std::fopen("bytes", "wb");
  std::printf("wrote %zu\n", std::fwrite(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  std::vector<char> back(bytes.size() + 100);
  file = std::fopen("bytes", "rb");
  size_t got = std::fread(back.data(), 7, back.size() / 7, file);  // ends inside an element
  std::printf("read %zu, at the end %d, same %d\n", got, std::feof(file) != 0,
              std::memcmp(back.data(), bytes.data(), bytes.size()) == 0);
  std::fclose(file);
  file = std::fopen("lines", "w");
  std::vector<char> stream_buffer(1 << 16);  // a managed buffer for the stream itself
  std::setvbuf(file, stream_buffer.data(), _IOFBF, stream_buffer.size());
  for (int i = 0; i < 60'000; ++i) std::fprintf(file, "line %d %s\n", i, std::string(i % 50, 'y').c_str());
  std::fclose(file);
  file = std::fopen("lines", "r");
  char* line = static_cast<char*>(std::malloc(200));
  uint64_t sum = 0;
  while (std::fgets(line, 200, file)) sum = mix(sum, sum_of(line, std::strlen(line)));
  print_sum("fgets", sum);
  std::rewind(file);
  char** grown = static_cast<char**>(std::calloc(1, sizeof(char*)));
  size_t* room = static_cast<size_t*>(std::calloc(1, sizeof(size_t)));
  sum = 0;
  for (ssize_t n; (n = getline(grown, room, file)) > 0;)
    sum = mix(sum, sum_of(*grown, static_cast<size_t>(n)));
  print_sum("getline", sum);
  std::rewind(file);
  *room = 16;
  std::free(*grown);
  *grown = static_cast<char*>(std::malloc(*room));  // managed, and libc has to grow it
  sum = 0;
  for (ssize_t n; (n = getdelim(grown, room, ' ', file)) > 0;)
    sum = mix(sum, sum_of(*grown, static_cast<size_t>(n)));
  print_sum("getdelim", sum);
  std::rewind(file);
  int i, matched = 0;
  char word[100];
  while (std::fscanf(file, "line %d%99[^\n]\n", &i, word) == 2) matched += i;
  std::printf("fscanf %d\n", matched);
  std::fclose(file);
  char* memory = nullptr;
  size_t size = 0;
  file = open_memstream(&memory, &size);
  for (i = 0; i < 100'000; ++i) std::fprintf(file, "%d;", i);
  std::fclose(file);
  std::printf("memstream %zu %.20s\n", size, memory);
  std::free(memory);
  file = fmemopen(bytes.data(), 100'000, "r");
  std::printf("fmemopen %zu\n", std::fread(back.data(), 1, 200'000, file));
  std::fclose(file);
  return 0;
}

ssize_t read_all(int fd, char* to, size_t count) {
  size_t done = 0;
  while (done < count) {
    ssize_t n = read(fd, to + done, count - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

int descriptors(long) {
  auto bytes = random_bytes(kBytes, 9);
  std::vector<char> back(bytes.size());
  int fd = open("bytes", O_RDWR | O_CREAT | O_TRUNC, 0600);
  size_t done = 0;
  while (done < kBytes) done += static_cast<size_t>(write(fd, bytes.data() + done, kBytes - done));
  lseek(fd, 0, SEEK_SET);
  std::printf("read %zd same %d\n", read_all(fd, back.data(), kBytes), back == bytes);
  std::fill(back.begin(), back.end(), 0);
  std::printf("pread %zd\n", pread(fd, back.data() + 4090, 12, 4090));
  std::printf("same %d\n", std::memcmp(back.data() + 4090, bytes.data() + 4090, 12) == 0);
  // The vector of pieces is managed too.
  std::vector<iovec> pieces;
  size_t at = 0;
  for (int i = 0; i < 200; ++i)
    pieces.push_back({back.data() + at, static_cast<size_t>(i * 37)}), at += i * 37;
  lseek(fd, 0, SEEK_SET);
  std::printf("readv %zd same %d\n", readv(fd, pieces.data(), 200),
              std::memcmp(back.data(), bytes.data(), at) == 0);
  std::printf("writev %zd\n", writev(fd, pieces.data(), 200));
  std::printf("preadv %zd pwritev %zd\n", preadv(fd, pieces.data() + 50, 20, 999),
              pwritev(fd, pieces.data(), 100, 5));
  close(fd);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  std::fill(back.begin(), back.end(), 0);
  std::thread writer([&] {
    for (size_t sent = 0; sent < kBytes;)
      sent += static_cast<size_t>(write(ends[1], bytes.data() + sent, kBytes - sent));
    close(ends[1]);
  });
  std::printf("pipe %zd same %d\n", read_all(ends[0], back.data(), kBytes), back == bytes);
  writer.join();
  close(ends[0]);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  std::fill(back.begin(), back.end(), 0);
  std::thread sender([&] {
    for (size_t sent = 0; sent < kBytes;)
      sent += static_cast<size_t>(send(ends[1], bytes.data() + sent, kBytes - sent, 0));
    auto* message = static_cast<msghdr*>(std::calloc(1, sizeof(msghdr)));
    iovec part{bytes.data(), 1000};
    message->msg_iov = &part;
    message->msg_iovlen = 1;
    sendmsg(ends[1], message, 0);
    close(ends[1]);
  });
  done = 0;
  while (done < kBytes) {
    ssize_t n = recv(ends[0], back.data() + done, kBytes - done, 0);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  std::printf("socket %zu same %d\n", done, back == bytes);
  msghdr message{};
  iovec part{back.data() + 4000, 1000};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ssize_t received = recvmsg(ends[0], &message, MSG_WAITALL);
  std::printf("message %zd same %d\n", received, std::memcmp(back.data() + 4000, bytes.data(), 1000) == 0);
  sender.join();
  std::printf("bad descriptor %zd\n", read(-1, back.data(), 10));
  return 0;
}

constexpr Part kParts[] = {
    {"print", print_managed}, {"streams", streams}, {"stdio", stdio}, {"descriptors", descriptors}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
