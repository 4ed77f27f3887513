// top/terminal.h by ncurses.
#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string_view>

#include "platform/file.h"
#include "top/crash.h"
#include "top/terminal.h"
#include "top/view.h"

namespace spw::tool::top {

namespace {

constexpr int kEscapeDelayMs = 50;  // after Esc, for the rest of a key's letters

// The pair of a style's colours is its number + 1.
struct Appearance {
  attr_t attributes;
  short colour;  // -1: the terminal's own
};
constexpr Appearance kLooks[kStyles] = {{A_NORMAL, -1},
                                        {A_DIM, -1},
                                        {A_BOLD, -1},
                                        {A_REVERSE, -1},
                                        {A_REVERSE, -1},
                                        {A_NORMAL, COLOR_CYAN},
                                        {A_NORMAL, COLOR_GREEN},
                                        {A_BOLD, COLOR_YELLOW},
                                        {A_BOLD, COLOR_RED},
                                        {A_NORMAL, COLOR_GREEN},
                                        {A_NORMAL, COLOR_BLUE}};

// A capability of the terminal's; "" where it lacks it.
std::string capability(const char* name) {
  const char* text = ::tigetstr(name);
  return text == nullptr || text == reinterpret_cast<const char*>(-1) ? "" : text;
}

// Without the pauses for old terminals: "$<5>".
std::string without_padding(std::string text) {
  for (size_t at = text.find("$<"); at != text.npos; at = text.find("$<", at))
    text.erase(at, std::min(text.find('>', at), text.size() - 1) - at + 1);
  return text;
}

bool wants_colours() {
  const char* no_colour = std::getenv("NO_COLOR");
  return ::has_colors() && (no_colour == nullptr || *no_colour == '\0');
}

Charset charset_of_locale() {
  const char* term = std::getenv("TERM");
  // The kernel's own console has few of the letters that graphs are made of.
  const bool is_console = term != nullptr && std::string_view(term).starts_with("linux");
  return !is_console && ::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0 ? Charset::kUtf8 : Charset::kAscii;
}

uint32_t key_of(int code, wint_t letter) {
  if (code != KEY_CODE_YES) {
    if (letter == '\r' || letter == '\n') return kKeyEnter;
    if (letter == 27 || letter == 127 || letter == 8) return kKeyBack;
    if (letter == 12) return kKeyRedraw;  // Ctrl-L
    return static_cast<uint32_t>(letter);
  }
  switch (letter) {
    case KEY_UP:
      return kKeyUp;
    case KEY_DOWN:
      return kKeyDown;
    case KEY_PPAGE:
      return kKeyPageUp;
    case KEY_NPAGE:
      return kKeyPageDown;
    case KEY_HOME:
      return kKeyHome;
    case KEY_END:
      return kKeyEnd;
    case KEY_ENTER:
      return kKeyEnter;
    case KEY_BACKSPACE:
      return kKeyBack;
    case KEY_F(1):
      return kKeyF1;
    default:
      return 0;
  }
}

// Signals come by a descriptor as long as this lives. Afterwards they do what they did: ncurses leaves handlers behind.
class TakenSignals {
 public:
  TakenSignals() {
    sigset_t taken;
    ::sigemptyset(&taken);
    for (size_t i = 0; i < std::size(kTaken); ++i) {
      ::sigaddset(&taken, kTaken[i]);
      ::sigaction(kTaken[i], nullptr, &actions_[i]);
    }
    ::sigprocmask(SIG_BLOCK, &taken, &mask_);
    descriptor_ = platform::File(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~TakenSignals() {
    for (size_t i = 0; i < std::size(kTaken); ++i) ::sigaction(kTaken[i], &actions_[i], nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  TakenSignals(const TakenSignals&) = delete;
  TakenSignals& operator=(const TakenSignals&) = delete;

  int descriptor() const { return descriptor_.fd(); }
  // 0: none has come.
  int next() {
    signalfd_siginfo info{};
    return ::read(descriptor(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  static constexpr int kTaken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP};
  struct sigaction actions_[std::size(kTaken)];
  sigset_t mask_;
  platform::File descriptor_;
};

class CursesTerminal final : public Terminal {
 public:
  CursesTerminal(SCREEN* screen, std::unique_ptr<TakenSignals> signals)
      : screen_(screen), signals_(std::move(signals)), charset_(charset_of_locale()) {
    ::set_escdelay(kEscapeDelayMs);
    ::cbreak();
    ::noecho();
    ::nonl();
    ::curs_set(0);
    ::keypad(::stdscr, TRUE);
    ::nodelay(::stdscr, TRUE);
    has_colours_ = wants_colours();
    if (!has_colours_) return;
    ::start_color();
    ::use_default_colors();
    for (unsigned i = 0; i < kStyles; ++i) ::init_pair(static_cast<short>(i + 1), kLooks[i].colour, -1);
  }
  ~CursesTerminal() override {
    ::endwin();
    ::delscreen(screen_);
    restore_terminal_by("");
  }

  Canvas canvas() const override { return Canvas(::getmaxx(::stdscr), ::getmaxy(::stdscr), charset_); }

  void show(const Canvas& canvas) override {
    ::werase(::stdscr);
    for (int line = 0; line < canvas.lines(); ++line) {
      std::wstring run;
      for (int column = 0, begin = 0; column <= canvas.columns(); ++column) {
        const bool is_end = column == canvas.columns();
        if (is_end || canvas.at(column, line).style != canvas.at(begin, line).style) {
          write_run(begin, line, run, canvas.at(begin, line).style);
          run.clear();
          begin = column;
        }
        if (!is_end && canvas.at(column, line).letter != 0)
          run += static_cast<wchar_t>(canvas.at(column, line).letter);
      }
    }
    ::wrefresh(::stdscr);
  }

  void draw_anew() override { ::clearok(::stdscr, TRUE); }

  Event wait(int timeout_ms) override {
    if (const Event key = read_key(); key.kind != Event::kNothing) return key;
    pollfd from[] = {{STDIN_FILENO, POLLIN, 0}, {signals_->descriptor(), POLLIN, 0}};
    if (::poll(from, 2, timeout_ms) <= 0) return {};
    if (from[1].revents != 0)
      if (const int signal = signals_->next(); signal != 0) return signalled(signal);
    if (from[0].revents == 0) return {};
    if (const Event key = read_key(); key.kind != Event::kNothing) return key;
    int waiting = 0;
    const bool is_gone = (from[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0 ||
                         ::ioctl(STDIN_FILENO, FIONREAD, &waiting) != 0;
    return is_gone ? Event{Event::kEnd, 0, SIGHUP} : Event{};
  }

 private:
  void write_run(int column, int line, const std::wstring& run, Style style) {
    const Appearance& look = kLooks[static_cast<size_t>(style)];
    const short pair =
        has_colours_ && look.colour >= 0 ? static_cast<short>(static_cast<unsigned>(style) + 1) : 0;
    ::wattr_set(::stdscr, look.attributes, pair, nullptr);
    ::mvwaddnwstr(::stdscr, line, column, run.c_str(), static_cast<int>(run.size()));
    ::wattr_set(::stdscr, A_NORMAL, 0, nullptr);
  }

  Event read_key() {
    wint_t letter = 0;
    const int code = ::wget_wch(::stdscr, &letter);
    if (code == ERR) return {};
    if (code == KEY_CODE_YES && letter == KEY_RESIZE) return {Event::kResized};
    return {Event::kKey, key_of(code, letter)};
  }

  Event signalled(int signal) {
    if (signal == SIGTSTP) {
      ::endwin();
      ::raise(SIGSTOP);  // goes on here
    } else if (signal != SIGWINCH) {
      return {Event::kEnd, 0, signal};
    }
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
      ::resizeterm(size.ws_row, size.ws_col);
    draw_anew();
    return {Event::kResized};
  }

  SCREEN* screen_;
  std::unique_ptr<TakenSignals> signals_;
  Charset charset_;
  bool has_colours_ = false;
};

}  // namespace

std::unique_ptr<Terminal> Terminal::open(std::string* why) {
  const char* term = std::getenv("TERM");
  if (term == nullptr || *term == '\0') {
    *why = "TERM is not set";
    return nullptr;
  }
  auto signals = std::make_unique<TakenSignals>();
  remember_terminal();
  SCREEN* const screen = ::newterm(nullptr, stdout, stdin);
  *why = "TERM=" + printable(term, Charset::kUtf8) + ": ";
  if (screen == nullptr) {
    *why += "no such terminal is known here";
  } else {
    ::set_term(screen);
    restore_terminal_by(without_padding(capability("sgr0") + capability("cnorm") + capability("rmcup")));
    if (!capability("cup").empty()) return std::make_unique<CursesTerminal>(screen, std::move(signals));
    ::endwin();
    ::delscreen(screen);
    *why += "it cannot place text";
  }
  restore_terminal_by("");
  return nullptr;
}

}  // namespace spw::tool::top
