// Persistent regions by way of the public API, on files of both kinds: in memory (pmem) and on a disk (block).
#include "spillway/durable.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "spillway/spillway.h"

namespace {

struct Node {
  Node* next;
  uint64_t value;
};
struct List {
  Node* head;
  uint64_t count;
};

template <class T>
void store(T& to, T value) {
  ASSERT_EQ(spw_durable_will_store(&to, sizeof to), 0) << spw_error_message();
  to = value;
}

class DurableTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const bool in_memory = GetParam() == std::string("pmem");
    const std::string directory = in_memory ? "/dev/shm" : testing::TempDir();
    path_ = directory + "/durable_test." + std::to_string(getpid()) + "." + GetParam();
    std::filesystem::remove(path_);
    options_.size = sizeof options_;
    options_.capacity_bytes = 64 << 20;
    options_.domain = GetParam();
  }
  void TearDown() override {
    if (region_ != nullptr) {
      EXPECT_EQ(spw_durable_close(region_), 0) << spw_error_message();
    }
    std::filesystem::remove(path_);
  }
  void open() { ASSERT_EQ(spw_durable_open(path_.c_str(), &options_, &region_), 0) << spw_error_message(); }
  void close() {
    ASSERT_EQ(spw_durable_close(region_), 0) << spw_error_message();
    region_ = nullptr;
  }
  void reopen() {
    close();
    open();
  }
  List* make_list() {
    spw_durable_begin();
    auto* list = static_cast<List*>(spw_durable_alloc(region_, sizeof(List)));
    EXPECT_NE(list, nullptr) << spw_error_message();
    store(list->head, static_cast<Node*>(nullptr));
    store(list->count, uint64_t{0});
    EXPECT_EQ(spw_durable_set_root(region_, "list", list), 0) << spw_error_message();
    EXPECT_EQ(spw_durable_end(), 0) << spw_error_message();
    return list;
  }
  List* list() { return static_cast<List*>(spw_durable_root(region_, "list")); }
  void push(List* list, uint64_t value) {
    auto* node = static_cast<Node*>(spw_durable_alloc(region_, sizeof(Node)));
    ASSERT_NE(node, nullptr) << spw_error_message();
    store(node->next, list->head);
    store(node->value, value);
    store(list->head, node);
    store(list->count, list->count + 1);
  }
  spw_durable_statistics statistics() {
    spw_durable_statistics statistics;
    EXPECT_EQ(spw_durable_get_statistics(region_, &statistics), 0);
    return statistics;
  }

  std::string path_;
  spw_durable_options options_{};
  spw_durable* region_ = nullptr;
};

// Run by a_process_that_ends_inside_of_a_section_leaves_nothing_of_it, in a process of its own.
TEST(DurableChild, ends_inside_of_a_section) {
  const char* path = std::getenv("DURABLE_TEST_FILE");
  if (path == nullptr) GTEST_SKIP() << "it is a part of another test";
  spw_durable* region = nullptr;
  ASSERT_EQ(spw_durable_open(path, nullptr, &region), 0) << spw_error_message();
  auto* list = static_cast<List*>(spw_durable_root(region, "list"));
  spw_durable_begin();
  store(list->head->value, uint64_t{7});
  store(list->head, static_cast<Node*>(nullptr));
  store(list->count, uint64_t{0});
  _exit(42);
}

INSTANTIATE_TEST_SUITE_P(Domains, DurableTest, testing::Values("pmem", "block"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(DurableTest, what_a_section_stored_is_there_when_the_region_is_opened_again) {
  open();
  List* made = make_list();
  for (uint64_t i = 0; i < 20; ++i) {
    spw_durable_begin();
    push(made, i);
    ASSERT_EQ(spw_durable_end(), 0) << spw_error_message();
  }
  reopen();
  ASSERT_EQ(list(), made) << "at another address";
  EXPECT_EQ(list()->count, 20u);
  uint64_t expected = 20;
  for (Node* node = list()->head; node != nullptr; node = node->next) EXPECT_EQ(node->value, --expected);
  EXPECT_EQ(expected, 0u);
}

TEST_P(DurableTest, a_section_that_is_undone_leaves_nothing) {
  open();
  List* made = make_list();
  spw_durable_begin();
  push(made, 1);
  ASSERT_EQ(spw_durable_end(), 0);
  Node* first = made->head;
  spw_durable_begin();
  push(made, 2);
  Node* second = made->head;
  EXPECT_EQ(spw_durable_free(first), 0) << spw_error_message();
  ASSERT_EQ(spw_durable_undo(), 0) << spw_error_message();
  EXPECT_EQ(made->head, first);
  EXPECT_EQ(made->count, 1u);
  ASSERT_EQ(spw_durable_end(), 0);
  EXPECT_EQ(spw_durable_free(second), -EINVAL) << "was allocated by what was undone";
  EXPECT_EQ(spw_durable_free(first), 0) << spw_error_message();
}

TEST_P(DurableTest, a_process_that_ends_inside_of_a_section_leaves_nothing_of_it) {
  open();
  List* made = make_list();
  spw_durable_begin();
  push(made, 1);
  ASSERT_EQ(spw_durable_end(), 0);
  close();
  const pid_t child = fork();
  if (child == 0) {
    setenv("DURABLE_TEST_FILE", path_.c_str(), 1);
    execl("/proc/self/exe", "child", "--gtest_filter=DurableChild.*", nullptr);
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 42);
  open();
  EXPECT_EQ(list()->count, 1u);
  EXPECT_EQ(list()->head->value, 1u);
  // On a disk nothing of the section was written, not even its log.
  EXPECT_EQ(statistics().undone, GetParam() == std::string("pmem") ? 1u : 0u);
}

TEST_P(DurableTest, objects_of_all_sizes_are_aligned_apart_and_found_again) {
  open();
  std::vector<std::pair<unsigned char*, size_t>> objects;
  for (size_t bytes : {1u, 16u, 17u, 48u, 64u, 100u, 4096u, 16384u, 16385u, 70000u, 1000000u})
    for (int i = 0; i < 3; ++i) {
      auto* object = static_cast<unsigned char*>(spw_durable_alloc(region_, bytes));
      ASSERT_NE(object, nullptr) << bytes << ": " << spw_error_message();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(object) % (bytes % 64 == 0 ? 64 : 16), 0u) << bytes;
      spw_durable_begin();
      ASSERT_EQ(spw_durable_will_store(object, bytes), 0) << spw_error_message();
      std::memset(object, static_cast<int>(objects.size() + 1), bytes);
      ASSERT_EQ(spw_durable_end(), 0);
      objects.emplace_back(object, bytes);
    }
  reopen();
  for (size_t i = 0; i < objects.size(); ++i)
    for (size_t byte = 0; byte < objects[i].second; ++byte) ASSERT_EQ(objects[i].first[byte], i + 1);
  for (const auto& object : objects) EXPECT_EQ(spw_durable_free(object.first), 0) << spw_error_message();
  for (const auto& object : objects) EXPECT_EQ(spw_durable_free(object.first), -EINVAL);
}

TEST_P(DurableTest, what_was_freed_is_used_again_and_a_region_does_not_grow_by_it) {
  open();
  for (int i = 0; i < 2000; ++i) {
    void* object = spw_durable_alloc(region_, i % 2 == 0 ? 8000 : 100000);
    ASSERT_NE(object, nullptr) << spw_error_message();
    ASSERT_EQ(spw_durable_free(object), 0) << spw_error_message();
    if (GetParam() == std::string("block") && i == 200) break;  // each is several transfers
  }
  EXPECT_LT(std::filesystem::file_size(path_), 20u << 20);
}

TEST_P(DurableTest, a_full_region_says_so_and_goes_on_with_what_is_freed) {
  options_.capacity_bytes = 8 << 20;
  open();
  std::vector<void*> objects;
  while (void* object = spw_durable_alloc(region_, 200000)) objects.push_back(object);
  EXPECT_NE(std::string(spw_error_message()).find("full"), std::string::npos) << spw_error_message();
  ASSERT_GT(objects.size(), 4u);
  ASSERT_EQ(spw_durable_free(objects.back()), 0);
  EXPECT_NE(spw_durable_alloc(region_, 200000), nullptr) << spw_error_message();
}

TEST_P(DurableTest, a_section_longer_than_a_log_segment_is_whole_or_undone) {
  open();
  constexpr size_t kWords = 50000;
  auto* words = static_cast<uint64_t*>(spw_durable_alloc(region_, kWords * 8));
  ASSERT_NE(words, nullptr);
  spw_durable_begin();
  for (size_t i = 0; i < kWords; ++i) store(words[i], uint64_t{1});
  ASSERT_EQ(spw_durable_end(), 0);
  spw_durable_begin();
  for (size_t i = 0; i < kWords; ++i) store(words[i], uint64_t{2});
  ASSERT_EQ(spw_durable_undo(), 0);
  ASSERT_EQ(spw_durable_end(), 0);
  reopen();
  for (size_t i = 0; i < kWords; ++i) ASSERT_EQ(words[i], 1u) << i;
}

TEST_P(DurableTest, locks_make_sections) {
  open();
  List* made = make_list();
  pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
  const uint64_t before = statistics().sections;
  pthread_mutex_lock(&first);
  push(made, 1);
  pthread_mutex_lock(&second);
  pthread_mutex_unlock(&first);
  EXPECT_EQ(statistics().sections, before) << "ended by a lock that was not the last";
  EXPECT_EQ(spw_durable_undo(), -EBUSY);
  push(made, 2);
  pthread_mutex_unlock(&second);
  EXPECT_EQ(statistics().sections, before + 1);
  EXPECT_EQ(spw_durable_end(), -EPERM);
  reopen();
  EXPECT_EQ(list()->count, 2u);
}

TEST_P(DurableTest, threads_push_under_a_lock) {
  open();
  List* made = make_list();
  constexpr int kThreads = 4;
  const int each = GetParam() == std::string("pmem") ? 2000 : 20;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        pthread_mutex_lock(&mutex);
        push(made, static_cast<uint64_t>(t));
        pthread_mutex_unlock(&mutex);
      }
    });
  for (std::thread& thread : threads) thread.join();
  reopen();
  EXPECT_EQ(list()->count, static_cast<uint64_t>(kThreads * each));
  uint64_t length = 0;
  for (Node* node = list()->head; node != nullptr; node = node->next) ++length;
  EXPECT_EQ(length, list()->count);
}

TEST_P(DurableTest, roots_are_found_replaced_and_removed) {
  open();
  void* object = spw_durable_alloc(region_, 64);
  EXPECT_EQ(spw_durable_root(region_, "none"), nullptr);
  EXPECT_EQ(spw_durable_set_root(region_, "one", object), 0);
  EXPECT_EQ(spw_durable_set_root(region_, std::string(48, 'x').c_str(), object), -EINVAL);
  EXPECT_EQ(spw_durable_set_root(region_, "", object), -EINVAL);
  int elsewhere = 0;
  EXPECT_EQ(spw_durable_set_root(region_, "two", &elsewhere), -EINVAL);
  reopen();
  EXPECT_EQ(spw_durable_root(region_, "one"), object);
  EXPECT_EQ(spw_durable_set_root(region_, "one", nullptr), 0);
  EXPECT_EQ(spw_durable_root(region_, "one"), nullptr);
  for (int i = 0; i < 256; ++i)
    ASSERT_EQ(spw_durable_set_root(region_, ("r" + std::to_string(i)).c_str(), object), 0)
        << spw_error_message();
  EXPECT_EQ(spw_durable_set_root(region_, "one more", object), -ENOSPC);
}

TEST_P(DurableTest, what_cannot_be_opened_says_why) {
  open();
  spw_durable* second = nullptr;
  EXPECT_EQ(spw_durable_open(path_.c_str(), &options_, &second), -EWOULDBLOCK) << spw_error_message();
  close();
  EXPECT_EQ(spw_durable_close(region_), -EINVAL);
  options_.flags = SPW_DURABLE_MUST_EXIST;
  EXPECT_EQ(spw_durable_open((path_ + ".none").c_str(), &options_, &second), -ENOENT);
  std::ofstream(path_) << std::string(100000, 'x');
  EXPECT_EQ(spw_durable_open(path_.c_str(), &options_, &second), -EILSEQ) << spw_error_message();
  std::filesystem::remove(path_);
  options_.flags = 0;
  options_.technique = "quick";
  EXPECT_EQ(spw_durable_open(path_.c_str(), &options_, &second), -EINVAL);
  options_.technique = nullptr;
  options_.domain = "disk";
  EXPECT_EQ(spw_durable_open(path_.c_str(), &options_, &second), -EINVAL);
}

TEST_P(DurableTest, an_address_that_is_taken_is_an_error_that_names_it) {
  open();
  void* at = spw_durable_alloc(region_, 16);
  const auto base = reinterpret_cast<uintptr_t>(at) & ~((uintptr_t{1} << 30) - 1);
  close();
  void* other = mmap(reinterpret_cast<void*>(base), 4096, PROT_READ,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(other, reinterpret_cast<void*>(base));
  spw_durable* region = nullptr;
  EXPECT_EQ(spw_durable_open(path_.c_str(), &options_, &region), -EEXIST);
  EXPECT_NE(std::string(spw_error_message()).find("0x"), std::string::npos) << spw_error_message();
  munmap(other, 4096);
}

TEST_P(DurableTest, a_damaged_header_or_slot_changes_nothing) {
  open();
  make_list();
  close();
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(24);
  file.put('\x55');
  file.close();
  spw_durable* region = nullptr;
  EXPECT_EQ(spw_durable_open(path_.c_str(), &options_, &region), -EILSEQ);
  EXPECT_NE(std::string(spw_error_message()).find("damaged"), std::string::npos) << spw_error_message();
}

TEST_P(DurableTest, sizes_that_cannot_be_are_refused_and_files_of_others_left_alone) {
  options_.capacity_bytes = 1 << 20;
  EXPECT_EQ(spw_durable_open(path_.c_str(), &options_, &region_), -EINVAL) << spw_error_message();
  options_.capacity_bytes = 64 << 20;
  // It begins with zeros, as what is left of an interrupted creation does.
  std::ofstream(path_, std::ios::binary) << std::string(100000, '\0') << "something of somebody's";
  const auto size = std::filesystem::file_size(path_);
  EXPECT_EQ(spw_durable_open(path_.c_str(), &options_, &region_), -EILSEQ) << spw_error_message();
  EXPECT_EQ(std::filesystem::file_size(path_), size);
  std::ofstream(path_, std::ios::binary) << std::string(100000, '\0');
  open();
  make_list();
}

TEST_P(DurableTest, locks_that_are_held_while_a_region_is_opened_or_closed_do_not_matter) {
  pthread_mutex_t before = PTHREAD_MUTEX_INITIALIZER, within = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&before);
  open();
  List* made = make_list();
  pthread_mutex_lock(&within);
  push(made, 1);
  pthread_mutex_unlock(&before);
  const uint64_t sections = statistics().sections;
  push(made, 2);
  pthread_mutex_unlock(&within);
  EXPECT_EQ(statistics().sections, sections + 1);
  std::thread other([&] { pthread_mutex_lock(&before); });
  other.join();
  reopen();
  EXPECT_EQ(list()->count, 2u);
}

TEST_P(DurableTest, a_forked_child_is_told_and_lets_go_of_the_file) {
  open();
  make_list();
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int begin = spw_durable_begin();
    char byte = spw_durable_root(region_, "list") == nullptr && begin == -ECHILD ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  reopen();  // while the child lives
  ASSERT_EQ(write(done[1], "x", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_NE(list(), nullptr);
}

// Half of the file goes while it is open; then the program, or the runtime, touches what has gone.
TEST_P(DurableTest, a_file_that_becomes_shorter_ends_the_program_with_a_line_that_names_it) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own: a forked child has no regions
  constexpr size_t kBytes = 4 << 20;
  const auto shorten = [this](auto touch) {
    open();
    auto* object = static_cast<char*>(spw_durable_alloc(region_, kBytes));
    if (object == nullptr || spw_durable_sync() != 0) _exit(3);
    std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
    std::filesystem::remove(path_);
    touch(object + kBytes - 8);
    _exit(4);
  };
  const auto ends = testing::ExitedWithCode(74);
  const char* const line =
      "^spillway: cannot reach [^ ]*durable_test[^ ]* at [0-9]+, an open persistent region: [^\n]*\n$";
  EXPECT_EXIT(shorten([](char* at) { *const_cast<volatile char*>(at) = 1; }), ends, line);
  EXPECT_EXIT(shorten([](char* at) {
                spw_durable_begin();
                (void)spw_durable_will_store(at, 8);  // logs what stood there
              }),
              ends, line);
  struct sigaction own{};
  own.sa_handler = [](int) { _exit(9); };
  EXPECT_EXIT(
      {
        sigaction(SIGBUS, &own, nullptr);
        shorten([](char* at) { *const_cast<volatile char*>(at) = 1; });
      },
      testing::ExitedWithCode(9), "^$");
  // As the kernel says that memory has gone bad, which only it may say of another process.
  EXPECT_EXIT(shorten([](char* at) {
                siginfo_t info{};
                info.si_signo = SIGBUS;
                info.si_code = BUS_MCEERR_AR;
                info.si_addr = at;
                syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGBUS, &info);
              }),
              ends, line);
}

TEST_P(DurableTest, a_region_of_another_version_or_with_a_flipped_bit_is_refused_with_a_line) {
  open();
  make_list();
  close();
  const auto change = [this](off_t at, char bits) {
    const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    char byte = 0;
    EXPECT_EQ(pread(fd, &byte, 1, at), 1);
    byte = static_cast<char>(byte ^ bits);
    EXPECT_EQ(pwrite(fd, &byte, 1, at), 1);
    ::close(fd);
  };
  const auto refusal = [this] {
    EXPECT_EQ(spw_durable_open(path_.c_str(), &options_, &region_), -EILSEQ);
    return std::string(spw_error_message());
  };
  change(8, 3);  // 2 becomes 1
  EXPECT_NE(refusal().find("its format is version 1, and this is 2"), std::string::npos)
      << spw_error_message();
  change(8, 3);
  change(4096 + 3, 1);
  EXPECT_NE(refusal().find("root 0 is damaged"), std::string::npos) << spw_error_message();
  change(4096 + 3, 1);
  region_ = nullptr;
  open();
  EXPECT_NE(list(), nullptr);
}

TEST_P(DurableTest, techniques_flush_as_they_say) {
  if (GetParam() != std::string("pmem")) GTEST_SKIP() << "the counts are of lines of 64 bytes";
  const auto ratio = [this](const char* technique) {
    std::filesystem::remove(path_);
    options_.technique = technique;
    open();
    auto* array = static_cast<int*>(spw_durable_alloc(region_, 64 * 25));
    spw_durable_begin();
    for (int round = 0; round < 100; ++round)
      for (int i = 0; i < 400; ++i) store(array[i], i);
    EXPECT_EQ(spw_durable_end(), 0);
    const spw_durable_statistics after = statistics();
    EXPECT_EQ(after.stores, 40000u);
    close();
    return static_cast<double>(after.lines_flushed) / static_cast<double>(after.stores);
  };
  EXPECT_EQ(ratio("er"), 1);
  EXPECT_EQ(ratio("la"), 25 / 40000.0);
  EXPECT_EQ(ratio("at"), 0.0625);
  EXPECT_EQ(ratio("sc:26"), 25 / 40000.0);
  EXPECT_EQ(ratio("best"), 0);
}

}  // namespace
