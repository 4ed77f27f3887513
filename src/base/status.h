// The outcome of an operation that the outside world can make fail: fine, or an errno with a sentence of context.
//
// A Status that is fine allocates nothing. It is [[nodiscard]]; bugs are SPW_CHECK's instead.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

namespace spw {

class [[nodiscard]] Status {
 public:
  Status() = default;
  // `error`: a positive errno. `context`: what failed and where, in one clause without a full stop.
  Status(int error, std::string context)
      : state_(std::make_shared<State>(State{error, std::move(context), false})) {}

  static Status ok() { return {}; }
  // For what this code found out by itself, not from a call that failed: `sentence` says everything, and the errno,
  // which callers tell errors apart by, adds nothing to it.
  static Status sentence(int error, std::string sentence) {
    Status status;
    status.state_ = std::make_shared<State>(State{error, std::move(sentence), true});
    return status;
  }

  bool is_ok() const { return state_ == nullptr; }
  explicit operator bool() const { return is_ok(); }
  int error() const { return state_ ? state_->error : 0; }
  std::string_view context() const { return state_ ? std::string_view(state_->context) : std::string_view(); }
  // "cannot open the spill file in /mnt: No space left on device"; a sentence() by itself.
  std::string message() const;

 private:
  struct State {
    int error;
    std::string context;
    bool is_sentence;
  };
  std::shared_ptr<const State> state_;
};

// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool is_ok() const { return status_.is_ok(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }

 private:
  Status status_;
  T value_{};
};

}  // namespace spw
