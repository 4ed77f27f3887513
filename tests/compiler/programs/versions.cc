// Control flow that leaves a function by other ways than its end, out of loops that run long enough to change between
// the versions of their function: exceptions with clean-ups and handlers in loops, setjmp and longjmp, computed gotos,
// and many values that live through nested loops; and every way to count to a bound.
#include <csetjmp>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"

namespace {

#define NOINLINE __attribute__((noinline))

NOINLINE long risky(long* p, long i) {
  p[i % 512] += i;
  if (p[i % 512] % 7 == 3) throw p[i % 512];
  if (i % 1001 == 0) throw std::runtime_error("every 1001st");
  return p[(i * 7) % 512];
}

struct Counted {
  explicit Counted(long* c) : count(c) { ++*count; }
  ~Counted() { *count += 3; }
  long* count;
};

void exceptions() {
  std::unique_ptr<long[]> p(new long[512]());
  std::unique_ptr<long> count(new long(0));
  uint64_t h = 1;
  for (long i = 0; i < 4010; ++i) {
    try {
      Counted counted(count.get());
      h = mix(h, static_cast<uint64_t>(risky(p.get(), i)));
    } catch (long value) {
      h = mix(h, static_cast<uint64_t>(value) * 5);
    } catch (const std::exception& e) {
      h = mix(h, static_cast<uint64_t>(std::string(e.what()).size()));
    }
  }
  REPORT("exceptions", h + static_cast<uint64_t>(*count));
}

jmp_buf place;
NOINLINE void leave_when(long* p, long i) {
  p[i & 255] ^= i;
  if (p[i & 255] % 97 == 5) longjmp(place, static_cast<int>(i & 63) + 1);
}

NOINLINE void jumps() {
  long* p = new long[256]();
  volatile long i = 0;
  volatile uint64_t h = 2;
  const int from = setjmp(place);
  if (from) h = mix(h, static_cast<uint64_t>(from));
  while (i < 10000) {
    i = i + 1;
    leave_when(p, i);
    h = mix(h, static_cast<uint64_t>(p[i & 255]));
  }
  REPORT("jumps", h);
  delete[] p;
}

// A small machine: dispatch by computed goto.
NOINLINE uint64_t machine(const unsigned char* code, long* stack, long steps) {
  static const void* const kLabels[] = {&&push, &&add, &&swap, &&mix_top};
  long top = 0, pc = 0, n = 0;
  stack[0] = 1;
  goto* kLabels[code[0] & 3];
#define NEXT                  \
  if (++n == steps) goto end; \
  pc = (pc + 1) % 1024;       \
  goto* kLabels[code[pc] & 3]
push:
  top = (top + 1) % 64;
  stack[top] = n;
  NEXT;
add:
  stack[(top + 63) % 64] += stack[top];
  NEXT;
swap:
  std::swap(stack[top], stack[(top + 5) % 64]);
  NEXT;
mix_top:
  stack[top] = static_cast<long>(mix(static_cast<uint64_t>(stack[top]), 7));
  NEXT;
end:
  uint64_t h = 3;
  for (int i = 0; i < 64; ++i) h = mix(h, static_cast<uint64_t>(stack[i]));
  return h;
}

void computed_gotos() {
  std::vector<unsigned char> code(1024);
  for (auto& c : code) c = static_cast<unsigned char>(random_u64());
  std::vector<long> stack(64);
  REPORT("computed gotos", machine(code.data(), stack.data(), 100000));
}

// Values of all kinds, live through three loops and used after each.
NOINLINE uint64_t many_values(const int* a, const double* d, long* out, int n) {
  long s0 = 1, s1 = 2, last = 0, most = -1;
  double x = 0.5, y = 0;
  for (int i = 0; i < n; ++i) {
    long row = s0 ^ i;
    for (int j = 0; j < n; ++j) {
      row += a[i * n + j];
      if (a[i * n + j] == 77) {
        last = j;
        if ((s1 += row) % 11 == 0) break;
      }
      long k = a[i * n + j];
      for (int t = 0; k > 3 && t < 30; ++t) {
        k = a[k % n] / 2 + k / 4 - 1;
        y += d[static_cast<size_t>(k < 0 ? 0 : k % n)];
      }
      most = std::max(most, k);
      out[(i + j) % n] += k + last;
    }
    x += d[i] * static_cast<double>(row % 5);
    s0 = row + most;
  }
  return mix(
      mix(mix(static_cast<uint64_t>(s0), static_cast<uint64_t>(s1)), static_cast<uint64_t>(x * 16 + y)),
      static_cast<uint64_t>(last + most));
}

void nests() {
  const int n = 150;
  std::vector<int> a(n * n);
  std::vector<double> d(n);
  std::vector<long> out(n);
  for (auto& v : a) v = static_cast<int>(random_u64() % 1000);
  for (auto& v : d) v = static_cast<double>(random_u64() % 64) / 8;
  uint64_t h = 4;
  for (int round = 0; round < 6; ++round) h = mix(h, many_values(a.data(), d.data(), out.data(), n));
  HASH_BYTES(h, out.data(), n * sizeof(long));
  REPORT("nests", h);
}

// Loops that count to a bound by every step and kind of counter, with
// vectors in them, long enough for chunks of both versions.
NOINLINE uint64_t long_loops(uint32_t* w, uint16_t* u, double* d, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) w[i] = w[i] * 3 + static_cast<uint32_t>(i);
  for (size_t i = n; i-- > 0;) u[i] = static_cast<uint16_t>(u[i] + w[i]);
  for (size_t i = 0; i + 3 < n; i += 4) s += w[i] ^ u[i + 3];
  for (uint32_t *p = w, *end = w + n; p != end; ++p) s += *p >> 3;
  for (uint32_t i = 0; i < n; ++i) d[i] = d[i] * 0.5 + w[i];
  for (size_t i = 1; i + 1 < n; ++i) d[i] = d[i - 1] * 0.25 + d[i + 1];
  double total = 0;
  for (size_t i = 0; i < n; ++i) total += d[i];
  for (size_t i = 0; i < n; ++i)
    if (w[i] % 1000003 == 17) {
      s += i;
      break;
    }
  return mix(s, static_cast<uint64_t>(total));
}

void counted_loops() {
  for (const size_t n : {size_t{1}, size_t{15}, size_t{4097}, size_t{70001}}) {
    std::unique_ptr<uint32_t[]> w(new uint32_t[n]());
    std::unique_ptr<uint16_t[]> u(new uint16_t[n]());
    std::unique_ptr<double[]> d(new double[n]());
    uint64_t h = n;
    for (int round = 0; round < 4; ++round) h = mix(h, long_loops(w.get(), u.get(), d.get(), n));
    HASH_BYTES(h, w.get(), n * sizeof w[0]);
    HASH_BYTES(h, u.get(), n * sizeof u[0]);
    HASH_BYTES(h, d.get(), n * sizeof d[0]);
    REPORT("counted loops", h);
  }
}

// Loops that end when a counter has passed a bound, also where the first iteration passes it, where the counter wraps
// round first, and where it never would: then the limit ends them. What they count is used behind them, or not.
template <bool kUsesCounter, typename Counter, typename Step>
NOINLINE uint64_t pass_bound(uint32_t* w, Counter from, Counter bound, long limit, Step step) {
  Counter i = from;
  uint32_t at = 1;
  long count = 0;
  _Pragma("clang loop unroll(disable) vectorize(disable)") do {
    at = w[at % 1024] += at * 5 + 1;
    if (++count == limit) break;
  }
  while (step(i, bound));
  return mix(at, kUsesCounter ? mix(static_cast<uint64_t>(i), static_cast<uint64_t>(count)) : 0);
}

template <typename Counter>
Counter moved(Counter i, int by) {
  return static_cast<Counter>(static_cast<uint64_t>(i) + static_cast<uint64_t>(by));
}

template <typename Counter>
uint64_t pass_bounds(uint32_t* w, std::initializer_list<Counter> places) {
  uint64_t h = 1;
  for (const Counter from : places)
    for (const Counter bound : places)
      for (const long limit : {1l, 700l, 5000l}) {
        const auto run = [&](auto step) {
          h = mix(h, pass_bound<true, Counter>(w, from, bound, limit, step));
          h = mix(h, pass_bound<false, Counter>(w, from, bound, limit, step));
        };
        run([](Counter& i, Counter n) { return (i = moved(i, 3)) < n; });
        run([](Counter& i, Counter n) { return (i = moved(i, 1)) <= n; });
        run([](Counter& i, Counter n) { return (i = moved(i, -2)) > n; });
        run([](Counter& i, Counter n) { return n > (i = moved(i, 7)); });
        run([](Counter& i, Counter n) { return (i = moved(i, -5)) >= n; });
        run([](Counter& i, Counter n) { return (i = moved(i, 1)) != n; });
        run([](Counter& i, Counter n) { return (i = moved(i, -1)) != n; });
      }
  return h;
}

void passed_bounds() {
  std::unique_ptr<uint32_t[]> w(new uint32_t[1024]());
  uint64_t h = pass_bounds<uint32_t>(
      w.get(), {0, 1, 2048, 2051, 0x7fffffffu, 0x80000000u, 0xfffff000u, 0xfffffffeu, 0xffffffffu});
  h = mix(h, pass_bounds<int32_t>(
                 w.get(), {0, -1, 1537, -2000, INT32_MAX, INT32_MAX - 4000, INT32_MIN, INT32_MIN + 999}));
  h = mix(h,
          pass_bounds<uint64_t>(w.get(), {0, 3, 4096, UINT64_MAX - 1, UINT64_MAX - 3000, uint64_t{1} << 63}));
  h = mix(h, pass_bounds<int64_t>(w.get(), {0, -7, 4096, INT64_MAX - 1, INT64_MIN + 3000, INT64_MIN}));
  HASH_BYTES(h, w.get(), 1024 * sizeof w[0]);
  REPORT("passed bounds", h);
}

}  // namespace

int main() {
  exceptions();
  jumps();
  computed_gotos();
  nests();
  counted_loops();
  passed_bounds();
}
