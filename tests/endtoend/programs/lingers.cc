// Writes to a file, says so, and waits to be killed.
//
//     lingers FILE
#include <fcntl.h>
#include <unistd.h>

#include <string>

int main(int, char** arguments) {
  const std::string text(100'000, 'x');
  const int fd = open(arguments[1], O_RDWR | O_CREAT, 0600);
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return 1;
  if (write(1, "written\n", 8) != 8) return 1;
  for (;;) pause();
}
