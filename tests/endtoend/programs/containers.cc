// Standard containers larger than the cap: containers NAME prints a checksum of what they held.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "print.h"

namespace {

uint64_t seed = 88172645463325252u;
uint64_t random_number() { return next_random(&seed); }

uint64_t sum_of(const std::string& text) {
  uint64_t sum = text.size();
  for (char c : text) sum = sum * 31 + static_cast<unsigned char>(c);
  return sum;
}

void vectors() {
  std::vector<uint64_t> numbers;  // grows by reallocation
  for (int i = 0; i < 1'500'000; ++i) numbers.push_back(random_number());
  uint64_t sum = 0;
  for (uint64_t n : numbers) sum = mix(sum, n);
  print_sum("push_back", sum);
  numbers.erase(numbers.begin() + 1000, numbers.begin() + 301'000);
  numbers.insert(numbers.begin() + 77, 5000, 42);
  sum = 0;
  for (uint64_t n : numbers) sum = mix(sum, n);
  print_sum("erase and insert", sum);
  std::vector<std::vector<int>> rows(2000);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].assign(i % 1500, static_cast<int>(i));
  std::reverse(rows.begin(), rows.end());
  sum = 0;
  for (const auto& row : rows) sum = mix(sum, std::accumulate(row.begin(), row.end(), uint64_t{row.size()}));
  print_sum("vectors in a vector", sum);
  std::vector<bool> bits(30'000'000);
  for (size_t i = 0; i < bits.size(); i += 977) bits[i] = true;
  bits.flip();
  print_sum("bits", static_cast<uint64_t>(std::count(bits.begin(), bits.end(), true)));
}

void deques_and_lists() {
  std::deque<uint64_t> both_ends;
  for (int i = 0; i < 600'000; ++i) {
    both_ends.push_back(random_number());
    both_ends.push_front(random_number());
    if (i % 3 == 0) both_ends.pop_front();
  }
  uint64_t sum = 0;
  for (uint64_t n : both_ends) sum = mix(sum, n);
  print_sum("deque", sum);
  // Lists and trees link their nodes in libstdc++.so: few and large nodes, as each costs a fault.
  std::list<std::array<uint64_t, 400>> chain;
  for (int i = 0; i < 4'000; ++i) chain.push_back({random_number() % 3'000});
  chain.sort();
  chain.unique();
  sum = chain.size();
  for (const auto& node : chain) sum = mix(sum, node[0] + node[399]);
  print_sum("list", sum);
  std::priority_queue<uint64_t> heap;
  for (int i = 0; i < 100'000; ++i) heap.push(random_number());
  sum = 0;
  while (!heap.empty()) sum = mix(sum, heap.top()), heap.pop();
  print_sum("priority queue", sum);
}

// Red-black trees are rebalanced by libstdc++.so, which was not recompiled.
void trees() {
  std::map<uint64_t, std::string> names;
  for (int i = 0; i < 8'000; ++i)
    names[random_number() % 9'000] = std::string(3'000 + i % 90, static_cast<char>('a' + i % 26));
  for (int i = 0; i < 2'000; ++i) names.erase(random_number() % 9'000);
  uint64_t sum = 0;
  for (const auto& [key, value] : names) sum = mix(sum, key + sum_of(value));
  print_sum("map", sum);
  std::multiset<int> many;
  for (int i = 0; i < 10'000; ++i) many.insert(static_cast<int>(random_number() % 100));
  sum = 0;
  for (int n : many) sum = mix(sum, static_cast<uint64_t>(n));
  print_sum("multiset", sum + many.count(7));
}

void hash_tables() {
  std::unordered_map<std::string, std::vector<int>> words;
  for (int i = 0; i < 60'000; ++i)
    words["a word of some length " + std::to_string(random_number() % 20'000)].push_back(i);
  words.rehash(200'000);
  uint64_t sum = 0;
  for (int i = 0; i < 20'000; ++i)
    if (auto found = words.find("a word of some length " + std::to_string(i)); found != words.end())
      for (int n : found->second) sum = mix(sum, static_cast<uint64_t>(n));
  print_sum("unordered_map", sum);
}

// Out of line, libstdc++.so grows, copies and compares strings itself.
void strings() {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text.append(std::to_string(i)).append(i % 7, ' ').push_back(',');
  print_sum("append", sum_of(text));
  for (int i = 0; i < 40; ++i) text.insert(text.size() / 2, "<inserted in the middle>");
  for (int i = 0; i < 20; ++i) text.erase(text.size() / 3, 1000);
  for (int i = 0; i < 20; ++i) text.replace(text.size() / 5, 100, std::string(4097, 'r'));
  print_sum("edit", sum_of(text));
  std::string copy = text;
  copy += text;
  copy.resize(copy.size() + 1'000'000, 'z');
  print_sum("copy", sum_of(copy) + (copy < text) + (copy.substr(0, text.size()) == text));
  print_sum("find", text.find("399999") + text.rfind("<inserted") + text.find_first_of("#~", 5) +
                        copy.find_last_not_of('z'));
  copy.shrink_to_fit();
  std::swap(copy, text);
  text.clear();
  print_sum("swap", sum_of(copy) + text.size());
}

struct Record {
  uint64_t key;
  char payload[92];
};

void algorithms() {
  std::vector<Record> records(120'000);
  for (auto& record : records) {
    record.key = random_number() % 50'000;
    std::memset(record.payload, static_cast<int>(record.key & 0x7f), sizeof record.payload);
  }
  auto by_key = [](const Record& a, const Record& b) { return a.key < b.key; };
  std::stable_sort(records.begin(), records.end(), by_key);  // takes a buffer as large again
  uint64_t sum = std::is_sorted(records.begin(), records.end(), by_key);
  for (const auto& record : records) sum = mix(sum, record.key + static_cast<uint64_t>(record.payload[91]));
  print_sum("stable_sort", sum);
  std::vector<uint64_t> numbers(1'200'000);
  std::generate(numbers.begin(), numbers.end(), random_number);
  std::nth_element(numbers.begin(), numbers.begin() + 600'000, numbers.end());
  print_sum("nth_element", numbers[600'000]);
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  std::rotate(numbers.begin(), numbers.begin() + 123'456, numbers.end());
  auto middle = std::partition(numbers.begin(), numbers.end(), [](uint64_t n) { return n & 1; });
  std::inplace_merge(numbers.begin(), numbers.begin() + 500, numbers.begin() + 1000);
  std::sort(numbers.begin(), middle);
  sum = static_cast<uint64_t>(middle - numbers.begin());
  for (uint64_t n : numbers) sum = mix(sum, n);
  print_sum("sort, rotate, partition", sum);
  std::partial_sum(numbers.begin(), numbers.end(), numbers.begin());
  print_sum("partial_sum", numbers.back());
}

struct Node {
  std::shared_ptr<Node> next;
  std::weak_ptr<Node> back;
  std::function<uint64_t()> value;
};

void smart_pointers() {
  std::shared_ptr<Node> head;
  for (uint64_t i = 0; i < 60'000; ++i) {
    auto node = std::make_shared<Node>();
    node->next = head;
    node->value = [i, a = i * 3, b = i * 5, c = i * 7] { return i ^ a ^ b ^ c; };
    if (head) head->back = node;
    head = std::move(node);
  }
  uint64_t sum = 0;
  for (Node* node = head.get(); node; node = node->next.get())
    sum = mix(sum, node->value() + !node->back.expired());
  print_sum("shared_ptr", sum);
  while (head) head = std::move(head->next);
}

struct Part {
  const char* name;
  void (*run)();
};
constexpr Part kParts[] = {{"vectors", vectors},
                           {"deques_and_lists", deques_and_lists},
                           {"trees", trees},
                           {"hash_tables", hash_tables},
                           {"strings", strings},
                           {"algorithms", algorithms},
                           {"smart_pointers", smart_pointers}};

}  // namespace

int main(int count, char** arguments) {
  for (const Part& part : kParts)
    if (count > 1 && std::strcmp(arguments[1], part.name) == 0) return part.run(), 0;
  return 1;
}
