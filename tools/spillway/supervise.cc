#include "supervise.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "messages.h"

namespace spw::tool {

namespace {

constexpr int kPassedOn[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
pid_t g_child = 0;

// Looks on until the child has ended, which the descriptor tells.
void look_on(const std::function<double()>& look) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, g_child, 0));
  for (double wait_s = 0; fd >= 0;) {
    pollfd ends{fd, POLLIN, 0};
    const int found = ::poll(&ends, 1, static_cast<int>(wait_s * 1000));
    if (found > 0 || (found < 0 && errno != EINTR)) break;
    if (found == 0) wait_s = look();
  }
  if (fd >= 0) ::close(fd);
}

}  // namespace

Ended run_and_wait(const std::function<int()>& child, const std::function<double()>& look) {
  const auto on_interrupt = std::signal(SIGINT, SIG_IGN), on_quit = std::signal(SIGQUIT, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  g_child = ::fork();
  if (g_child < 0) return {refuse(fmt::format("the program cannot be started: {}", std::strerror(errno))), 0};
  if (g_child == 0) {
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGQUIT, on_quit);
    ::_exit(child());
  }
  for (const int signal : kPassedOn) std::signal(signal, [](int sent) { ::kill(g_child, sent); });
  if (look) look_on(look);
  int status = 0;
  while (::waitpid(g_child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return {WEXITSTATUS(status), 0};
  return {128 + WTERMSIG(status), WTERMSIG(status)};
}

int end_as(const Ended& ended) {
  if (ended.signal == 0) return ended.code;
  std::signal(ended.signal, SIG_DFL);
  ::raise(ended.signal);
  return ended.code;  // of a signal that does not end this process
}

TemporaryDirectory::TemporaryDirectory(const std::string& prefix) {
  std::error_code error;
  name_ = std::filesystem::temp_directory_path(error) / (prefix + ".XXXXXX");
  is_there_ = !error && ::mkdtemp(name_.data()) != nullptr;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (is_there_) std::filesystem::remove_all(name_, ignored);
}

bool write_file(const std::string& name, const std::string& text) {
  std::ofstream file(name, std::ios::out | std::ios::trunc);
  file << text;
  return file.flush().good();
}

bool can_write(const std::string& name) {
  std::ofstream file(name, std::ios::out | std::ios::app);
  return file.good();
}

}  // namespace spw::tool
