// An nbdkit or qemu-nbd of a test's own on a Unix socket, gone with the object or with this process.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "platform/time.h"

namespace spw::store {

class NbdServer {
 public:
  explicit NbdServer(std::string socket) : socket_(std::move(socket)) {}
  ~NbdServer() { kill(); }

  // "" or why there is none here.
  static std::string missing(const std::string& program = "nbdkit") {
    std::string command = "command -v " + program + " >/dev/null 2>&1";
    return std::system(command.c_str()) == 0 ? "" : program + " is not installed";
  }

  // nbdkit with these arguments, such as "--filter=error", "memory", "size=8M".
  bool start(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"nbdkit", "-f", "-U", socket_, "-P", pid_file()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run(all);
  }
  bool start_tcp(const std::string& port, const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"nbdkit", "-f", "-i", "127.0.0.1", "-p", port, "-P", pid_file()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run(all);
  }
  // qemu-nbd with these arguments, the image last.
  bool start_qemu(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"qemu-nbd", "-t", "-k", socket_, "--pid-file", pid_file()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run(all);
  }

  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
    std::error_code error;
    std::filesystem::remove(socket_, error);
    std::filesystem::remove(pid_file(), error);
  }
  // Neither answers nor ends, until go_on().
  void stop() {
    ::kill(child_, SIGSTOP);
    ::waitpid(child_, nullptr, WUNTRACED);
  }
  void go_on() { ::kill(child_, SIGCONT); }

  std::string uri(const std::string& parameters = "") const {
    return "nbd+unix:///?socket=" + socket_ + parameters;
  }

 private:
  // The server writes it when it listens.
  std::string pid_file() const { return socket_ + ".pid"; }

  bool run(const std::vector<std::string>& arguments) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    constexpr int kTries = 2000;
    for (int i = 0; i < kTries && child_ > 0; ++i) {
      if (std::filesystem::exists(pid_file())) return true;
      if (::waitpid(child_, nullptr, WNOHANG) == child_) break;
      platform::sleep_ns(5'000'000);
    }
    return false;
  }

  std::string socket_;
  pid_t child_ = -1;
};

}  // namespace spw::store
