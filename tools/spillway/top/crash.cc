#include "top/crash.h"

#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>

namespace spw::tool::top {

namespace {

// Read by handlers, written while none of the signals is expected.
char g_words[256] = {};
size_t g_words_bytes = 0;
struct termios g_settings{};
bool g_has_settings = false;

void put_right() {
  (void)!::write(STDOUT_FILENO, g_words, g_words_bytes);
  if (g_has_settings) ::tcsetattr(STDIN_FILENO, TCSANOW, &g_settings);
}

// Only what is allowed in a handler.
void die(int signal) {
  put_right();
  ::raise(signal);  // its handler was taken away when this one was called
}

void handle(int signal) {
  struct sigaction action{};
  action.sa_handler = die;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void remember_terminal() {
  g_has_settings = ::tcgetattr(STDIN_FILENO, &g_settings) == 0;
  for (const int signal : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGABRT}) handle(signal);
}

void restore_terminal_by(const std::string& words) {
  g_words_bytes = std::min(words.size(), sizeof g_words - 1);
  ::memcpy(g_words, words.data(), g_words_bytes);
  if (words.empty()) g_has_settings = false;
}

}  // namespace spw::tool::top
