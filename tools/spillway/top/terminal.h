// A terminal in full: a canvas goes to it, keys and signals come from it. By ncurses; built without that there is none.
//
// Invariant: while a Terminal lives, the signals that end, stop or resize it are blocked and come as events; when it is
// gone the terminal is as before. Bugs' signals: top/crash.h.
// Threads: one. Limits: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "top/canvas.h"

namespace spw::tool::top {

struct Event {
  enum Kind : uint8_t { kNothing, kKey, kResized, kEnd };
  Kind kind = kNothing;
  uint32_t key = 0;  // a letter, or Key of top/view.h
  int signal = 0;    // kEnd: which one; SIGHUP, too, where the terminal has gone
};

class Terminal {
 public:
  // nullptr: `why` says why not. Standard input and output have to be terminals.
  static std::unique_ptr<Terminal> open(std::string* why);
  virtual ~Terminal() = default;

  // An empty one of its size.
  virtual Canvas canvas() const = 0;
  // Only what has changed is sent.
  virtual void show(const Canvas& canvas) = 0;
  virtual void draw_anew() = 0;
  virtual Event wait(int timeout_ms) = 0;
};

}  // namespace spw::tool::top
