#include "lookup_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

namespace spw::tool {

namespace {

constexpr size_t kFileBytesMax = 4096;
constexpr size_t kTextBytesMax = 3 * (LookupProcess::kNameBytesMax + 1);
constexpr size_t kMessageBytesMax = std::max(sizeof(uint64_t) + kFileBytesMax, kTextBytesMax);
constexpr int kWhereSocketIs = 3;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;  // and has terabytes of addresses
#elif defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

bool send_message(int socket, std::string_view message) {
  ssize_t sent = 0;
  while ((sent = ::send(socket, message.data(), message.size(), MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent == static_cast<ssize_t>(message.size());
}

// Nothing: the other side is gone.
std::optional<std::string> receive_message(int socket) {
  std::array<char, kMessageBytesMax> bytes;
  ssize_t received = 0;
  while ((received = ::recv(socket, bytes.data(), bytes.size(), 0)) < 0 && errno == EINTR) {
  }
  if (received <= 0) return {};
  return std::string(bytes.data(), static_cast<size_t>(received));
}

void limit(int resource, uint64_t most) {
  const rlimit value{most, most};
  (void)::setrlimit(static_cast<__rlimit_resource_t>(resource), &value);
}

// The child's whole life. A question: the offset, then the file's name. An answer: three texts, each ended by a zero.
[[noreturn]] void answer_questions(int socket) {
  // Nothing of the parent's reaches it but questions: no files, no Ctrl-C, no handlers.
  if (::dup2(socket, kWhereSocketIs) < 0) ::_exit(1);
  (void)::syscall(SYS_close_range, kWhereSocketIs + 1, ~0U, 0);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, signal == SIGINT ? SIG_IGN : SIG_DFL);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, LookupProcess::kProcessorSecondsMax);
  if (!kIsSanitized) limit(RLIMIT_AS, LookupProcess::kAddressBytesMax);
  ::unsetenv("DEBUGINFOD_URLS");
  CodeLookup lookup;
  while (const auto question = receive_message(kWhereSocketIs)) {
    uint64_t offset = 0;
    std::memcpy(&offset, question->data(), std::min(sizeof offset, question->size()));
    const CodePlace place = lookup.look_up(question->substr(sizeof offset), offset);
    std::string answer;
    for (const std::string& text : {place.function, place.inside, place.source})
      answer += text.substr(0, std::min(text.find('\0'), LookupProcess::kNameBytesMax)) + '\0';
    if (!send_message(kWhereSocketIs, answer)) break;
  }
  ::_exit(0);
}

// Bytes of the UTF-8 character that `text` begins with; 0: it is none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const auto goes_on = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  // 0xc2 before less than 0xa0: control characters, too.
  if (first >= 0xc2 && first <= 0xdf) return goes_on(1) && (first > 0xc2 || second >= 0xa0) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool is_short = first == 0xe0 && second < 0xa0, is_surrogate = first == 0xed && second >= 0xa0;
    return goes_on(1) && goes_on(2) && !is_short && !is_surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool is_short = first == 0xf0 && second < 0x90, is_beyond = first == 0xf4 && second >= 0x90;
    return goes_on(1) && goes_on(2) && goes_on(3) && !is_short && !is_beyond ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string printable(const std::string& text) {
  std::string result;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t bytes = character_bytes(rest);
    result += bytes > 0 ? rest.substr(0, bytes) : std::string_view("?");
    rest.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return result;
}

LookupProcess::~LookupProcess() { stop(); }

bool LookupProcess::start() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return false;
  platform::File ours(sockets[0]);
  const platform::File theirs(sockets[1]);
  process_ = ::fork();
  if (process_ == 0) answer_questions(theirs.fd());
  if (process_ < 0) process_ = 0;
  socket_ = std::move(ours);
  return process_ != 0;
}

void LookupProcess::stop() {
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
  socket_ = {};
}

bool LookupProcess::ask(const std::string& file, uint64_t offset, CodePlace* place) {
  if (process_ == 0 && !start()) return false;
  std::string question(sizeof offset, '\0');
  std::memcpy(question.data(), &offset, sizeof offset);
  if (!send_message(socket_.fd(), question + file)) return false;
  pollfd waiting{socket_.fd(), POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, kAnswerMsMax)) < 0 && errno == EINTR) {
  }
  if (ready <= 0) return false;
  const auto answer = receive_message(socket_.fd());
  if (!answer) return false;
  size_t at = 0;
  for (std::string* text : {&place->function, &place->inside, &place->source}) {
    const size_t end = std::min(answer->find('\0', at), answer->size());
    *text = printable(answer->substr(at, end - at));
    at = std::min(end + 1, answer->size());
  }
  return true;
}

CodePlace LookupProcess::look_up(const std::string& file, uint64_t offset) {
  CodePlace place;
  if (file.size() > kFileBytesMax || hopeless_.contains(file)) return place;
  // A process that has answered a lot may be at its limits: a file has ended it when it ends a new one, too.
  for (const bool is_last : {process_ == 0, true}) {
    if (ask(file, offset, &place)) return place;
    stop();
    if (is_last) break;
  }
  hopeless_.insert(file);
  return place;
}

}  // namespace spw::tool
