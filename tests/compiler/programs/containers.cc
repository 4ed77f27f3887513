// The standard library as programs use it: containers, algorithms, strings, exceptions, virtual calls, threads.
#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "check.h"

namespace {

struct Record {
  char key[10];
  char value[90];
};

void sorting() {
  uint64_t h = 1;
  std::vector<uint64_t> v(20000);
  for (auto& x : v) x = random_u64() >> 20;
  std::sort(v.begin(), v.end());
  std::vector<Record> records(1500);
  for (auto& r : records)
    for (char& c : r.key) c = static_cast<char>(random_u64());
  for (auto& r : records) std::fill(std::begin(r.value), std::end(r.value), r.key[0]);
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return std::lexicographical_compare(a.key, a.key + 10, b.key, b.key + 10);
  });
  std::stable_sort(v.begin(), v.begin() + 5000, std::greater<>());
  std::nth_element(v.begin(), v.begin() + 700, v.end());
  for (auto x : v) h = mix(h, x);
  for (auto& r : records) HASH_BYTES(h, &r, sizeof r);
  REPORT("sorting", h);
}

void maps() {
  uint64_t h = 2;
  std::map<int, std::string> m;
  std::unordered_map<std::string, int> u;
  std::set<uint64_t> s;
  for (int i = 0; i < 2000; ++i) {
    const int k = static_cast<int>(random_u64() % 700);
    m[k] += "x" + std::to_string(i);
    ++u[std::to_string(k) + " a key too long for the small buffer"];
    s.insert(random_u64() % 3000);
    if (i % 3 == 0) m.erase(k / 2);
  }
  for (auto& [k, text] : m) {
    h = mix(h, static_cast<uint64_t>(k));
    HASH_BYTES(h, text.data(), text.size());
  }
  uint64_t total = 0;
  for (auto& [k, n] : u) total += std::hash<size_t>()(k.size()) * static_cast<uint64_t>(n);
  for (auto x : s) h = mix(h, x);
  REPORT("maps", h + total);
}

void sequences() {
  uint64_t h = 3;
  std::vector<bool> bits(30000);
  for (size_t i = 0; i < bits.size(); i += 1 + random_u64() % 5) bits[i] = !bits[i];
  std::deque<std::string> d;
  std::list<std::unique_ptr<int>> l;
  std::priority_queue<int> q;
  for (int i = 0; i < 2000; ++i) {
    d.push_back(std::string(static_cast<size_t>(i % 50), static_cast<char>('a' + i % 26)));
    if (i % 2) d.pop_front();
    l.push_back(std::make_unique<int>(i));
    q.push(static_cast<int>(random_u64() % 1000));
  }
  l.sort([](auto& a, auto& b) { return *a % 100 < *b % 100; });
  for (size_t i = 0; i < bits.size(); ++i) h = mix(h, bits[i]);
  h = mix(h, static_cast<uint64_t>(std::count(bits.begin(), bits.end(), true)));
  for (auto& t : d) HASH_BYTES(h, t.data(), t.size());
  for (auto& p : l) h = mix(h, static_cast<uint64_t>(*p));
  for (; !q.empty(); q.pop()) h = mix(h, static_cast<uint64_t>(q.top()));
  std::vector<double> w(7000);
  std::iota(w.begin(), w.end(), 0.5);
  h = mix(h, static_cast<uint64_t>(std::inner_product(w.begin(), w.end(), w.rbegin(), 0.0)));
  std::vector<std::vector<int>> nested;
  for (int i = 0; i < 300; ++i) nested.emplace_back(static_cast<size_t>(i), i);
  for (auto& n : nested) h = mix(h, static_cast<uint64_t>(std::accumulate(n.begin(), n.end(), 0)));
  REPORT("sequences", h);
}

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Square : Shape {
  double side;
  explicit Square(double s) : side(s) {}
  double area() const override { return side * side; }
};
struct Box : virtual Shape {
  double a, b;
  Box(double x, double y) : a(x), b(y) {}
  double area() const override { return a * b; }
};

void dispatch() {
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < 500; ++i)
    shapes.push_back(i % 2 ? std::unique_ptr<Shape>(new Square(i)) : std::unique_ptr<Shape>(new Box(i, 2)));
  double sum = 0;
  for (auto& s : shapes) sum += s->area();
  std::vector<std::function<int(int)>> functions;
  for (int i = 0; i < 100; ++i)
    functions.emplace_back([i, extra = std::string(static_cast<size_t>(i), 'f')](int x) {
      return x * i + static_cast<int>(extra.size());
    });
  for (auto& f : functions) sum += f(3);
  int boxes = 0;
  for (auto& s : shapes) boxes += dynamic_cast<Box*>(s.get()) != nullptr;
  REPORT("dispatch", static_cast<uint64_t>(sum) * 1000 + static_cast<uint64_t>(boxes));
}

struct Failure : std::runtime_error {
  int where;
  Failure(int w, const std::string& text) : std::runtime_error(text), where(w) {}
};
int risky(std::vector<int>& v, int i) {
  auto held = std::make_unique<std::vector<int>>(v.begin(), v.begin() + 10);
  if (i % 3 == 0) throw Failure(i, "multiple of three");
  if (i % 7 == 0) throw i;
  return v.at(static_cast<size_t>(i * 11));
}
void exceptions() {
  uint64_t h = 4;
  std::vector<int> v(1000);
  std::iota(v.begin(), v.end(), 0);
  for (int i = 0; i < 200; ++i) {
    try {
      h = mix(h, static_cast<uint64_t>(risky(v, i)));
    } catch (const Failure& f) {
      h = mix(h, static_cast<uint64_t>(f.where) + std::string(f.what()).size());
    } catch (int x) {
      h = mix(h, static_cast<uint64_t>(x));
    } catch (const std::out_of_range&) {
      v[static_cast<size_t>(i)] += 1;
      h = mix(h, 1);
    }
  }
  REPORT("exceptions", h);
}

void threads() {
  std::vector<std::atomic<long>> counters(3000);
  std::vector<long> own(4 * 3000);
  std::vector<std::thread> team;
  for (int t = 0; t < 4; ++t)
    team.emplace_back([&, t] {
      for (size_t i = 0; i < 3000; ++i) {
        counters[i * 7 % 3000].fetch_add(t + 1);
        own[i * 4 + static_cast<size_t>(t)] = counters[i].load() >= 0 ? t : -1;
      }
    });
  for (auto& t : team) t.join();
  uint64_t h = 5;
  for (auto& c : counters) h = mix(h, static_cast<uint64_t>(c.load()));
  for (auto x : own) h = mix(h, static_cast<uint64_t>(x));
  REPORT("threads", h);
}

}  // namespace

int main() {
  sorting();
  maps();
  sequences();
  dispatch();
  exceptions();
  threads();
}
