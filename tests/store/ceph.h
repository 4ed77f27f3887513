// A Ceph cluster of a test program's own (ceph_cluster.py), begun by the first test that asks for it and gone with this
// process.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace spw::store {

class Ceph {
 public:
  // The one of this process.
  static Ceph& here() {
    static Ceph one;
    return one;
  }

  // "" or why there is none.
  const std::string& missing() const { return missing_; }
  // A command of CephCluster and its arguments; "ok", or what went wrong.
  std::string tell(const std::string& command) {
    std::fprintf(to_, "%s\n", command.c_str());
    std::fflush(to_);
    return answer();
  }
  // The URI of a new image of so many bytes; "" when there is none.
  std::string make_image(uint64_t bytes) {
    const std::string name = "image" + std::to_string(++images_);
    return tell("make_image " + name + " " + std::to_string(bytes)) == "ok" ? uri(name) : "";
  }
  // Of the pool, to spill to an image that is made.
  std::string pool_uri(const std::string& parameters = "") const {
    return "rbd:rbd?conf=" + place_ + "/ceph.conf" + parameters;
  }
  std::string uri(const std::string& image, const std::string& parameters = "") const {
    return "rbd:rbd/" + image + "?conf=" + place_ + "/ceph.conf" + parameters;
  }

 private:
  Ceph() {
    // A socket's path is 107 bytes at most, so it is not where other tests have their files.
    place_ = std::string("/tmp/spw_ceph.XXXXXX");
    int to[2], from[2];
    if (::mkdtemp(place_.data()) == nullptr || ::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
      missing_ = "no place for a cluster";
      return;
    }
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(to[0], 0);
      ::dup2(from[1], 1);
      ::execl("/usr/bin/python3", "python3", SPW_CEPH_CLUSTER, place_.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = ::fdopen(to[1], "w");
    from_ = ::fdopen(from[0], "r");
    if (const std::string said = answer(); said != "ready")
      missing_ = said.starts_with("missing: ") ? said.substr(9) : "the cluster does not start: " + said;
  }
  ~Ceph() {
    if (to_ != nullptr) std::fclose(to_);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
    if (from_ != nullptr) std::fclose(from_);
    std::error_code error;
    std::filesystem::remove_all(place_, error);
  }

  std::string answer() {
    char line[1024];
    if (std::fgets(line, sizeof line, from_) == nullptr) return "it is gone";
    std::string said = line;
    return said.substr(0, said.find('\n'));
  }

  std::string place_, missing_;
  pid_t child_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
  unsigned images_ = 0;
};

}  // namespace spw::store
