// Which buffered files other processes have open, too: they see what was written once it is flushed, and change what is
// cached. So a file is buffered only if nobody else has it open, and is given back as soon as somebody opens it.
//
// Strict for programs that lock what they share (fcntl, lockf, flock), since the tables below hold at each lock:
//   before a lock is given up, all that is dirty has been flushed: who gets it next reads it from the kernel;
//   when a lock was got, look() has given back each file that somebody opened meanwhile: what is read next is the
//       kernel's, which has what they wrote;
//   where nobody can say who opens a file (kUnsure), a program that uses locks has it from the kernel; and a file that
//       it has locked, once a child has been forked that has it open, too.
// For others a thread looks, which sees an open() some time after it.
//
// Threads: any. Locks: one look at a time (looking_), above all locks of files; mutex_ below them.
// Limits: what a process was handed open, without an open() of its own, nobody sees; that it may have been is known
//   where the program did it by functions of libc (handed_out()).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "base/atomic.h"
#include "files/buffered_file.h"
#include "platform/opens_watch.h"
#include "platform/thread.h"
#include "platform/wake_fd.h"

namespace spw::files {

class OtherOpeners {
 public:
  enum class Claim : uint8_t { kAlone, kUnsure, kOthers };
  // Gives the file back to the kernel; why, for a message.
  using GiveBack = std::function<void(const FileKey&, const char* why)>;

  explicit OtherOpeners(GiveBack give_back) : give_back_(std::move(give_back)) {}
  ~OtherOpeners();

  // Of a file that this process is about to buffer, open by `fd` alone; `is_new`: since a moment ago. From now on it is
  // watched.
  Claim claim(int fd, const FileKey& key, bool is_new);
  // `fd`: a descriptor of the file.
  void forget(int fd, const FileKey& key);
  // The program has a lock of that file: what has changed hands is given back.
  void lock_taken(const FileKey& key);
  bool are_locks_used() const { return are_locks_used_.load_acquire(); }
  // Processes may have been given what the program has open: its children, or whoever it sends descriptors to.
  void handed_out() { hand_outs_.fetch_add_acq_rel(1); }
  // How often that was.
  uint64_t hand_outs() const { return hand_outs_.load_acquire(); }
  // The program is about to have a child that goes on with its open files.
  void before_fork() { forks_.fetch_add_acq_rel(1); }
  // Nobody else has had the file open since claim(), which said kAlone. False also where that is not known now.
  bool is_alone(const FileKey& key);

 private:
  static constexpr uint64_t kWaitNs = 3'600'000'000'000;
  // Between looks: the kernel tells of the process's own opens, too, and each would wake the thread.
  static constexpr uint64_t kPauseNs = 1'000'000;
  struct Watched {
    uint64_t number;
    bool is_alone;
    uint64_t hand_outs, forks;  // when it was claimed
    bool is_locked = false;     // or was
  };

  bool start();
  void look();
  void run();

  const GiveBack give_back_;
  Atomic<bool> are_locks_used_{false}, stopping_{false};
  Atomic<uint64_t> hand_outs_{0}, forks_{0};
  std::mutex looking_;
  Atomic<uint64_t> looker_{0};  // the thread that has it
  std::mutex mutex_;            // guards what follows, but for the objects' own
  bool has_started_ = false;
  std::unique_ptr<platform::OpensWatch> watch_;
  platform::WakeFd wake_;
  std::map<FileKey, Watched> watched_;
  std::set<FileKey> unsure_;
  std::map<uint64_t, FileKey> by_number_;
  uint64_t next_number_ = 1;
  platform::Thread thread_;
};

}  // namespace spw::files
