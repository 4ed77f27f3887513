// Memory that is still used by a destructor that exit() calls.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

struct Late {
  std::vector<uint64_t> words;
  ~Late() {
    uint64_t wrong = 0;
    for (size_t i = 0; i < words.size(); ++i) wrong += words[i] != i;
    std::printf("wrong %llu\n", static_cast<unsigned long long>(wrong));
  }
};
Late g_late;

}  // namespace

int main(int, char** arguments) {
  g_late.words.resize(std::strtoull(arguments[1], nullptr, 10) << 17);  // MiB
  for (size_t i = 0; i < g_late.words.size(); ++i) g_late.words[i] = i;
  return 0;
}
