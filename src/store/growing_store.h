// Stores whose size their user sets: a file, or several as one, that
// a program makes longer and shorter while it is cached.
//
// size_bytes() is what set_size() said last. The file itself reaches it by
// writes, and has it exactly after resize_file() or settle_size(); what is read
// behind the file's own end, or written_end() says was never written, are zeros.
//
// Threads: requests any, as with every store; the functions here one at a time, except for stamp() and sync_file().
#pragma once

#include <memory>
#include <span>

#include "platform/file.h"
#include "store/engine/progress.h"
#include "store/store.h"

namespace spw::store {

class GrowingStore : public Store {
 public:
  // The file itself follows with writes. No request for what lies behind a lesser size is under way, but for the block
  // that holds the new end; and it is not made longer again before that one is over.
  virtual void set_size(uint64_t bytes) = 0;
  // The same, and the file itself: what it gains is a hole.
  virtual Status resize_file(uint64_t bytes) = 0;
  // The file itself is at least as long as set_size() said last; one
  // that somebody else has made longer stays. No set_size() meanwhile.
  virtual Status settle_size() = 0;
  // Its size is that of devices and cannot be changed: the two functions before do nothing or fail.
  virtual bool has_fixed_size() const { return false; }
  // What is about to be asked of it. A store may begin without its files, and be without them again after
  // close_files(): it opens what it lacks for that, of what `fd` has open. Of a file that cannot be written it opens
  // what reads, and is_writable() says so.
  //   kReads      reads
  //   kWrites     writes, which may go by the kernel's memory as long as nothing else was asked for; sizes, syncs
  //   kTransfers  both, around the kernel's memory where that works
  // EBADF: `fd` is of another file, or of none. Other errors are those of open(2).
  enum class Use : uint8_t { kReads = 1, kWrites = 2, kTransfers = 3 };
  virtual Status open_for(Use /*use*/, int /*fd*/) { return {}; }
  virtual bool opens_when_needed() const { return false; }
  virtual bool is_writable() const { return true; }
  // Without its files for a while, of which blocks stay cached: stop() has every new request fail; once none is under
  // way, close_files() gives up the descriptors. reopen(): what `files` have open, one for each file, is this one, and
  // nobody has changed it; they are taken over.
  virtual void stop() = 0;
  virtual void close_files() = 0;
  virtual Status reopen(std::span<platform::File> files) = 0;
  virtual Result<platform::FileStamp> stamp() const = 0;
  // Writes go to the kernel's memory instead of the disk, from one call until another ends it; calls nest.
  virtual void write_to_kernel(bool begins) = 0;
  // What has been written is durable; `whole`: all of the file's metadata, too.
  virtual Status sync_file(bool whole) = 0;
  virtual bool is_direct() const = 0;
  // A descriptor of its file; -1: it has several, or none now.
  virtual int fd() const { return -1; }
};

// The sizes of one growing store. Those of stores that are gone are used again, never freed (Store::written_end).
struct GiveBackGrowth {
  void operator()(Growth* growth) const;
};
using OwnGrowth = std::unique_ptr<Growth, GiveBackGrowth>;
OwnGrowth take_growth(uint64_t size_bytes);

}  // namespace spw::store
