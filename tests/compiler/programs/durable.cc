// Stores to persistent memory of every kind that programs write. Compiled without announcements it uses plain memory
// and only prints what it computed; compiled with them, the fake runtime checks after each step that what changed had
// been announced, and where the number of bytes is known, that no others were.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

extern "C" {
__attribute__((weak)) void* fake_durable_open(size_t bytes);
__attribute__((weak)) void fake_durable_check(const char* what, long exactly);
}

namespace {

constexpr size_t kBytes = size_t{1} << 20;
constexpr long kUnknown = -1;

unsigned char* region;
size_t allocated;

void check(const char* what, long exactly) {
  if (fake_durable_check) fake_durable_check(what, exactly);
}
void done(const char* what, long exactly = kUnknown) {
  check(what, exactly);
  uint64_t h = 1;
  HASH_BYTES(h, region, allocated);
  REPORT(what, h);
}
// The same of what has pointers in it, which differ from run to run.
template <typename Range>
void done_with(const char* what, const Range& numbers) {
  check(what, kUnknown);
  uint64_t h = 1;
  for (const auto& number : numbers) h = mix(h, static_cast<uint64_t>(number));
  REPORT(what, h);
}

// Never inlined, or the optimiser would see where the memory comes from.
template <typename T>
[[gnu::noinline]] T* take(size_t count) {
  const size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
  if (allocated + bytes > kBytes) abort();
  T* place = reinterpret_cast<T*>(region + allocated);
  allocated += bytes;
  return place;
}

template <typename T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <typename U>
  Allocator(const Allocator<U>&) {}
  T* allocate(size_t count) { return take<T>(count); }
  void deallocate(T*, size_t) {}
  bool operator==(const Allocator&) const { return true; }
};

struct Record {
  int64_t key;
  int32_t count;
  int16_t flags;
  char name[18];
  double weights[4];
};

[[gnu::noinline]] void set_scalars(char* c, short* s, int* i, long* l, float* f, double* d, long double* e) {
  *c = 1;
  *s = 2;
  *i = 3;
  *l = 4;
  *f = 5;
  *d = 6;
  *e = 7;
}
void scalars() {
  set_scalars(take<char>(1), take<short>(1), take<int>(1), take<long>(1), take<float>(1), take<double>(1),
              take<long double>(1));
  done("scalars", 1 + 2 + 4 + 8 + 4 + 8 + 10);
}

[[gnu::noinline]] void set_fields(Record* r, int64_t key) {
  r->count = 1;
  r->key = key;
  r->flags = 7;
}
[[gnu::noinline]] void set_fields_downwards(Record* r) {
  r->weights[3] = 1;
  r->weights[2] = 2;
  r->weights[1] = 3;
}
[[gnu::noinline]] Record make_record(int64_t key) { return {key, 2, 3, "a record", {1, 2, 3, 4}}; }
[[gnu::noinline]] void take_by_value(Record r, Record* to) {
  r.count *= 2;
  *to = r;
}
void structures() {
  Record* r = take<Record>(4);
  set_fields(r, 99);
  done("fields", 8 + 4 + 2);
  set_fields_downwards(r);
  done("fields downwards", 24);
  r[1] = *r;
  done("assignment");
  r[2] = make_record(5);
  done("a result");
  take_by_value(r[2], &r[3]);
  done("an argument by value");
  std::swap(r[0], r[3]);
  done("swapped");
}

[[gnu::noinline]] void add(int* p, const int* q, size_t n) {
  for (size_t i = 0; i < n; ++i) p[i] += q[i];
}
[[gnu::noinline]] void set_where(int* p, const int* q, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (q[i] & 1) p[i] = q[i];
}
[[gnu::noinline]] void set_doubles_where(double* p, const int* q, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (q[i] % 3 == 0) p[i] = q[i];
}
[[gnu::noinline]] void scatter(double* p, const int* index, size_t n) {
  for (size_t i = 0; i < n; ++i) p[index[i]] = static_cast<double>(i) + 1;
}
[[gnu::noinline]] void strided(int* p, size_t n) {
  for (size_t i = 0; i < n; ++i) p[3 * i] = static_cast<int>(i) + 1;
}
[[gnu::noinline]] void filter(int* p, const int* q, size_t n) {
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i)
    if (q[i] % 5 == 0) p[kept++] = q[i] + 1;
}
[[gnu::noinline]] void pairs(double* p, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    p[2 * i] = static_cast<double>(i) + 0.5;
    p[2 * i + 1] = static_cast<double>(i) + 0.25;
  }
}
void loops() {
  constexpr size_t n = 1003;
  std::vector<int> q(n);
  long odd = 0, threes = 0, fives = 0;
  for (size_t i = 0; i < n; ++i) {
    q[i] = static_cast<int>(random_u64() % 1000) + 1;
    odd += q[i] & 1;
    threes += q[i] % 3 == 0;
    fives += q[i] % 5 == 0;
  }
  int* p = take<int>(3 * n);
  double* d = take<double>(2 * n);
  add(p, q.data(), n);
  done("vectors", 4 * n);
  set_where(p, q.data(), n);
  done("some lanes", 4 * odd);
  set_doubles_where(d, q.data(), n);
  done("some wide lanes", 8 * threes);
  std::vector<int> index(n);
  for (size_t i = 0; i < n; ++i) index[i] = static_cast<int>(i * 7 % n);
  scatter(d, index.data(), n);
  done("scattered", 8 * n);
  strided(p, n);
  done("strided", 4 * n);
  filter(p, q.data(), n);
  done("filtered", 4 * fives);
  pairs(d, n);
  done("pairs", 16 * n);
}

// Neighbours in the buffer whose memory is elsewhere.
void outside() {
  std::vector<int> plain(100, 1);
  add(plain.data(), plain.data(), plain.size());
  set_where(plain.data(), plain.data(), plain.size());
  int automatic[10];
  add(automatic, plain.data(), 10);
  done("outside", 0);
}

[[gnu::noinline]] void copy(void* to, const void* from, size_t n) { memcpy(to, from, n); }
[[gnu::noinline]] void move(void* to, const void* from, size_t n) { memmove(to, from, n); }
[[gnu::noinline]] void fill(void* to, int c, size_t n) { memset(to, c, n); }
[[gnu::noinline]] void copy_24(void* to, const void* from) { memcpy(to, from, 24); }
[[gnu::noinline]] int compare(const void* a, const void* b) {
  return *static_cast<const unsigned char*>(a) - *static_cast<const unsigned char*>(b);
}
void memory() {
  char* p = take<char>(6000);
  const std::string from(5000, 'f');
  copy(p + 3, from.data(), 4321);
  done("memcpy", 4321);
  move(p + 1, p + 50, 3000);
  done("memmove", 3000);
  fill(p + 100, 'm', 777);
  done("memset", 777);
  copy_24(p + 5, "twenty-four characters.");
  done("memcpy of 24", 24);
  copy(p, from.data(), 0);
  copy(nullptr, nullptr, 0);
  done("memcpy of 0", 0);
  strcpy(p + 10, from.substr(0, random_u64() % 7 + 90).c_str());
  done("strcpy");
  strncpy(p, from.substr(0, 20).c_str(), 40 + random_u64() % 2);
  done("strncpy");
  strcat(p, from.substr(0, random_u64() % 7 + 9).c_str());
  done("strcat");
  strncat(p, from.substr(0, random_u64() % 7 + 9).c_str(), 5);
  done("strncat");
  for (int i = 0; i < 500; ++i) p[i] = static_cast<char>(random_u64());
  done("bytes", 500);
  qsort(p, 500, 1, compare);
  done("qsort", 500);
}

[[gnu::noinline]] void update(std::atomic<long>* a, std::atomic<int>* b, std::atomic<short>* c) {
  a->fetch_add(3);
  a->fetch_xor(0xff00);
  long expected = 0;
  if (!a->compare_exchange_strong(expected, 9)) a->exchange(expected + 1);
  b->store(5, std::memory_order_release);
  int known = 5;
  b->compare_exchange_weak(known, 6);
  c->fetch_or(8, std::memory_order_relaxed);
  __asm__ volatile("lock incl %0" : "+m"(*reinterpret_cast<int*>(b)));
}
void atomics() {
  auto* a = take<std::atomic<long>>(1);
  auto* b = take<std::atomic<int>>(1);
  auto* c = take<std::atomic<short>>(1);
  update(a, b, c);
  done("atomics", 8 + 4 + 2);
  auto* counters = take<std::atomic<long>>(64);
  std::vector<std::thread> team;
  for (int t = 0; t < 4; ++t)
    team.emplace_back([=] {
      for (size_t i = 0; i < 2000; ++i) counters[i * 7 % 64].fetch_add(t + 1);
    });
  for (auto& thread : team) thread.join();
  done("threads", 8 * 64);
}

void containers() {
  using Text = std::basic_string<char, std::char_traits<char>, Allocator<char>>;
  auto* v = new (take<std::vector<int, Allocator<int>>>(1)) std::vector<int, Allocator<int>>;
  for (int i = 0; i < 3000; ++i) v->push_back(i * i);
  done_with("vector grows", *v);
  v->insert(v->begin() + 5, 10, 77);
  v->erase(v->begin() + 100, v->begin() + 150);
  std::sort(v->begin(), v->end(), [](int a, int b) { return a % 1000 < b % 1000; });
  done_with("vector changes", *v);
  auto* texts = new (take<std::vector<Text, Allocator<Text>>>(1)) std::vector<Text, Allocator<Text>>;
  for (int i = 0; i < 50; ++i) texts->emplace_back(static_cast<size_t>(i), static_cast<char>('a' + i % 26));
  for (Text& text : *texts) text += "and more";
  done_with("texts", texts->back());
  auto* m = new (take<std::map<int, int, std::less<>, Allocator<std::pair<const int, int>>>>(1))
      std::map<int, int, std::less<>, Allocator<std::pair<const int, int>>>;
  for (int i = 0; i < 500; ++i) (*m)[i * 37 % 501] = i;
  for (int i = 0; i < 500; i += 3) m->erase(i);
  std::vector<int> values;
  for (const auto& [key, value] : *m) values.push_back(key * 1000 + value);
  done_with("map", values);
  auto* l = new (take<std::list<long, Allocator<long>>>(1)) std::list<long, Allocator<long>>;
  for (int i = 0; i < 200; ++i) l->push_back(i * 31 % 97);
  l->sort();
  l->reverse();
  done_with("list", *l);
}

}  // namespace

int main() {
  region = static_cast<unsigned char*>(fake_durable_open ? fake_durable_open(kBytes) : calloc(kBytes, 1));
  scalars();
  structures();
  loops();
  outside();
  memory();
  atomics();
  containers();
}
