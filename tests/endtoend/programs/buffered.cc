// Ordinary input and output on files that are buffered, more of it than the memory. Each part prints what it sees.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "parts.h"

namespace {

constexpr size_t kMega = size_t{1} << 20;

void say(const char* what, long result) {
  std::printf("%s %ld%s%s\n", what, result, result < 0 ? ": " : "", result < 0 ? strerror(errno) : "");
}

unsigned long sum_of(const char* path) {
  const int fd = open(path, O_RDONLY);
  unsigned long sum = 0, bytes = 0;
  std::vector<unsigned char> piece(65'536);
  for (ssize_t got; (got = read(fd, piece.data(), piece.size())) > 0;
       bytes += static_cast<unsigned long>(got))
    for (ssize_t i = 0; i < got; ++i) sum = sum * 31 + piece[static_cast<size_t>(i)];
  close(fd);
  return sum ^ bytes;
}

int calls(long) {
  const int fd = open("calls.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  say("write", write(fd, "0123456789", 10));
  char text[32] = {};
  say("pread", pread(fd, text, sizeof text, 4));
  std::printf("<%s>\n", text);
  iovec pieces[] = {{text, 3}, {text + 10, 0}, {text + 3, 3}};
  say("pwritev", pwritev(fd, pieces, 3, 5'000));
  struct stat info;
  say("fstat", fstat(fd, &info));
  std::printf("%ld bytes\n", static_cast<long>(info.st_size));
  stat("calls.dat", &info);
  std::printf("%ld bytes\n", static_cast<long>(info.st_size));
  say("data", lseek(fd, 0, SEEK_DATA));
  say("ftruncate", ftruncate(fd, 3'000));
  say("end", lseek(fd, 0, SEEK_END));
  say("read at the end", read(fd, text, sizeof text));
  const int copy = dup(fd), other = open("calls.dat", O_WRONLY | O_APPEND);
  say("append", write(other, "appended", 8));
  lseek(copy, 3'000, SEEK_SET);
  say("read by the copy's place", read(fd, text, 8));
  std::printf("<%.8s>\n", text);
  say("write to a reader", write(open("calls.dat", O_RDONLY), "x", 1));
  say("read of a writer", read(other, text, 1));
  say("posix_fallocate", posix_fallocate(fd, 0, 10'000));
  say("end", lseek(fd, 0, SEEK_END));
  say("truncate", truncate("calls.dat", 3'004));
  say("end", lseek(fd, 0, SEEK_END));
  say("fsync", fsync(fd));
  say("pwrite behind nothing", pwrite(fd, "x", 1, -1));
  const int out = open("carried.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  off_t from = 2'998;
  say("sendfile", sendfile(out, fd, &from, 100));
  lseek(fd, 0, SEEK_SET);
  say("copy_file_range", copy_file_range(fd, nullptr, out, nullptr, 5, 0));
  say("close", close(out));
  // What a full pipe does not take is still to be read.
  int full[2];
  say("pipe", pipe2(full, O_NONBLOCK));
  const std::vector<char> filling(static_cast<size_t>(fcntl(full[1], F_GETPIPE_SZ)));
  say("fill", write(full[1], filling.data(), filling.size()) > 0);
  say("sendfile to a full pipe", sendfile(full[1], fd, nullptr, 100));
  say("place", lseek(fd, 0, SEEK_CUR));
  say("close", close(full[0]) | close(full[1]));
  char* mapped = static_cast<char*>(mmap(nullptr, 4'096, PROT_READ, MAP_PRIVATE, fd, 0));
  std::printf("mapped <%.4s>\n", mapped + 3'000);
  say("dup2", dup2(fd, 100) == 100);
  say("close", close(fd) | close(copy) | close(other));
  say("write", write(100, "last", 4));
  say("close", close(100));
  say("closed", write(100, "last", 4));
  std::printf("%lx %lx\n", sum_of("calls.dat"), sum_of("carried.dat"));
  return 0;
}

int streams(long) {
  FILE* file = fopen("stream.dat", "w+");
  for (int i = 0; i < 100'000; ++i) std::fprintf(file, "line %d\n", i);
  std::printf("at %ld, fileno %d\n", std::ftell(file), fileno(file) > 2);
  std::fseek(file, 20, SEEK_SET);
  char line[100] = {};
  std::printf("%s", std::fgets(line, sizeof line, file));
  std::fputs("changed", file);
  std::rewind(file);
  long lines = 0, bytes = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    ++lines;
    bytes += static_cast<long>(strlen(line));
  }
  std::printf("%ld lines, %ld bytes, eof %d\n", lines, bytes, std::feof(file) != 0);
  say("fclose", std::fclose(file));
  file = fopen("stream.dat", "a");
  std::fputs("appended\n", file);
  say("fclose", std::fclose(file));
  file = fdopen(open("stream.dat", O_RDONLY), "r");
  say("fseek", std::fseek(file, -9, SEEK_END));
  std::printf("%s", std::fgets(line, sizeof line, file));
  std::fclose(file);
  {
    std::fstream stream("stream.dat", std::ios::in | std::ios::out);
    stream.seekg(7);
    std::string word;
    stream >> word;
    std::printf("%s\n", word.c_str());
    stream.seekp(0, std::ios::end);
    stream << "from a stream" << std::endl;
    stream.seekg(-14, std::ios::end);
    std::getline(stream, word);
    std::printf("%s\n", word.c_str());
  }
  say("fopen of nothing", fopen("/nowhere/x.dat", "r") == nullptr);
  std::printf("%lx\n", sum_of("stream.dat"));
  return 0;
}

// Where the kernel's descriptor, a stream or another name could part from what is buffered.
int corners(long) {
  const int fd = open("corners.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  const std::string text(20'000, 'x');
  say("write", write(fd, text.data(), text.size()));
  const int again = open("corners.dat", O_RDWR | O_TRUNC);
  say("end after O_TRUNC", lseek(fd, 0, SEEK_END));
  say("write", pwrite(again, "0123456789", 10, 0));
  say("fcntl", fcntl(again, F_SETFL, O_APPEND));
  say("append", write(again, "abc", 3));
  lseek(fd, 0, SEEK_SET);
  say("dprintf", dprintf(fd, "%d-", 42));
  FILE* stream = fdopen(dup(fd), "a");
  std::fputs("by a stream", stream);
  std::fclose(stream);
  stream = fopen("corners.dat", "a");
  say("ftell", std::ftell(stream));
  for (int i = 0; i < 2'000; ++i) std::fputs("pending ", stream);
  stream = freopen("corners2.dat", "w", stream);
  std::fputs("elsewhere", stream);
  std::fclose(stream);
  std::printf("%lx %lx\n", sum_of("corners.dat"), sum_of("corners2.dat"));
  say("rename", rename("corners.dat", "corners.old"));
  say("write", pwrite(fd, "renamed", 7, 100));
  char back[16] = {};
  const int renamed = open("corners.old", O_RDONLY);
  say("read by the other name", pread(renamed, back, 7, 100));
  std::printf("<%s>\n", back);
  close(renamed);
  char* mapped = static_cast<char*>(mmap(nullptr, kMega, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  std::printf("mapped <%.7s>\n", mapped + 100);
  memcpy(mapped + 200, "stored", 6);
  say("read of what was stored", pread(fd, back, 6, 200));
  say("write", pwrite(fd, "written", 7, 300));
  std::printf("<%.6s> <%.7s>\n", back, mapped + 300);
  munmap(mapped, kMega);
  close(fd);
  close(again);
  const int high = open("corners3.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  say("write", write(high, text.data(), text.size()));
  say("close_range", close_range(static_cast<unsigned>(high), ~0u, 0));
  int ends[2];
  say("pipe", pipe(ends));
  say("write to a pipe", write(ends[1], "piped", 5));
  say("read from it", read(ends[0], back, 5));
  const int out = open("corners4.dat", O_RDWR | O_CREAT | O_TRUNC, 0600), was = dup(1);
  say("write", write(out, "before ", 7));
  std::fflush(stdout);
  dup2(out, 1);
  std::printf("by stdout ");
  std::fflush(stdout);
  dup2(was, 1);
  say("after", write(out, "after", 5));
  for (int i = 0; i < 200; ++i) {  // writes are under way when the file is made shorter
    pwrite(out, text.data(), text.size(), 0);
    fdatasync(out);
    pwrite(out, text.data(), text.size(), 0);
    if (ftruncate(out, 1'000 + i) != 0) say("ftruncate", -1);
  }
  struct stat info;
  close(out);
  stat("corners4.dat", &info);
  std::printf("%ld bytes, %lx %lx\n", static_cast<long>(info.st_size), sum_of("corners3.dat"),
              sum_of("corners4.dat"));
  return 0;
}

// Four times the memory, by threads that each have a fourth of the pieces.
int threads(long) {
  constexpr size_t kPiece = 3'000, kPieces = 32 * kMega / kPiece / 4 * 4;
  const int fd = open("large.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  std::vector<std::thread> all;
  std::vector<long> wrong(4);
  for (size_t t = 0; t < 4; ++t)
    all.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<char> piece(kPiece), back(kPiece);
      std::vector<char> last(kPieces / 4, '\0');
      for (int i = 0; i < 6'000; ++i) {
        const size_t mine = random() % last.size(), at = (mine * 4 + t) * kPiece;
        if (last[mine] != '\0') {
          if (pread(fd, back.data(), kPiece, static_cast<off_t>(at)) != static_cast<ssize_t>(kPiece))
            ++wrong[t];
          for (char c : back) wrong[t] += c != last[mine];
        }
        std::fill(piece.begin(), piece.end(), last[mine] = static_cast<char>('a' + random() % 26));
        if (pwrite(fd, piece.data(), kPiece, static_cast<off_t>(at)) != static_cast<ssize_t>(kPiece))
          ++wrong[t];
      }
    });
  for (std::thread& thread : all) thread.join();
  std::printf("%ld wrong\n", wrong[0] + wrong[1] + wrong[2] + wrong[3]);
  say("fdatasync", fdatasync(fd));
  close(fd);
  std::printf("%lx\n", sum_of("large.dat"));
  return 0;
}

// How a program ends, or has others go on, with writes that nobody has synced. Who reads the file is another process.
int ends(long way) {
  const int fd = open("end.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
  const std::string text(100'000, static_cast<char>('a' + way));
  say("write", write(fd, text.data(), text.size()));
  FILE* stream = fopen("end2.dat", "w");
  std::fputs("from a stream", stream);
  std::fflush(stdout);
  char count[] = "wc -c end.dat end2.dat";
  char* words[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), count, nullptr};
  switch (way) {
    case 0:
      std::exit(3);
    case 1:
      std::fflush(stream);
      _exit(4);
    case 2:
      std::fflush(stream);
      execv("/bin/sh", words);
      return 1;
    case 3: {
      std::fflush(stream);
      std::printf("system %d\n", system(count));
      break;
    }
    case 4: {  // the child reads on from where the parent stands, and the parent finds what the child has written
      lseek(fd, 99'990, SEEK_SET);
      if (const pid_t child = fork(); child == 0) {
        char rest[32] = {};
        const ssize_t got = read(fd, rest, sizeof rest);
        dprintf(1, "child read %zd <%s>\n", got,
                rest);  // stdout's buffer is managed memory, which a child has not
        _exit(0);
      } else {
        int status;
        waitpid(child, &status, 0);
        std::printf("child %d\n", status);
      }
      break;
    }
  }
  return 0;
}

constexpr Part kParts[] = {
    {"calls", calls}, {"streams", streams}, {"corners", corners}, {"threads", threads}, {"ends", ends}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
