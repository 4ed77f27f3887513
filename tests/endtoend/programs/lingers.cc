// Writes to a file, says so, and waits to be killed, or changes its first bytes all the time until then.
//
//     lingers FILE [hot]
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>

int main(int count, char** arguments) {
  const std::string text(100'000, 'x');
  const int fd = open(arguments[1], O_RDWR | O_CREAT, 0600);
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return 1;
  if (write(1, "written\n", 8) != 8) return 1;
  if (count < 3)
    for (;;) pause();
  for (uint64_t i = 1;; ++i) {
    if (pwrite(fd, &i, sizeof i, 0) != sizeof i) return 1;
    usleep(100);
  }
}
