// top/terminal.h where the tool is built without ncurses.
#include "top/terminal.h"

namespace spw::tool::top {

std::unique_ptr<Terminal> Terminal::open(std::string* why) {
  *why = "this spillway was built without ncurses";
  return nullptr;
}

}  // namespace spw::tool::top
