#include "process/use_recorder.h"

#include <errno.h>

namespace spw::process {

Result<std::unique_ptr<UseRecorder>> UseRecorder::create(const std::string& file) {
  std::unique_ptr<UseRecorder> recorder(new UseRecorder(file));
  if (!recorder->file_)
    return Status::sentence(EINVAL,
                            "the trace cannot be written to " + file + "; name another file with --trace");
  return recorder;
}

void UseRecorder::used(BlockId block) {
  std::lock_guard lock(mutex_);
  repeats_ = block.value == last_ ? repeats_ + 1 : 0;
  last_ = block.value;
  if (repeats_ >= kRepeatsMax) return;
  buffered_.push_back(block.value);
  if (buffered_.size() == kBufferedMax) write_out();
}

void UseRecorder::write_out() {
  file_.write(reinterpret_cast<const char*>(buffered_.data()),
              static_cast<std::streamsize>(buffered_.size() * sizeof(uint64_t)));
  buffered_.clear();
}

Status UseRecorder::finish() {
  std::lock_guard lock(mutex_);
  write_out();
  if (file_.flush()) return Status::ok();
  return Status(EIO, "the trace in " + name_ + " is not whole: writing it failed");
}

}  // namespace spw::process
