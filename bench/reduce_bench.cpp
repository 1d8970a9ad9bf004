// How fast the arithmetic of collectives runs on one thread, beside memcpy and beside loops left to the compiler.
//   reduce_bench [rounds] [shift]
// For working sets in the core's cache, in the shared one and in memory: GB/s of bytes read plus bytes written (what a
// store fetches first is not counted). Every case runs once per round, in turn, and its best round is shown, by the
// thread's processor time, so that neighbours disturb all alike. `shift` moves each buffer by that many bytes more than
// the one before: at 0 all lie at the same offset in their pages, as a heap gives them.
#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "trireme/collective/reduce/reduce.h"

namespace {

using trireme::DType;
using trireme::Op;
using trireme::Store;

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

constexpr std::size_t kMostBuffers = 16;

struct Buffers {
  void* at[kMostBuffers];
  std::size_t bytes;  // of each
  float* floats(int i) const { return static_cast<float*>(at[i]); }
};

struct Case {
  std::string name;
  std::size_t streams;  // buffers read plus buffers written
  std::size_t buffers;  // the working set is divided among these
  std::function<void(const Buffers&)> run;
  double best = 1e30;  // seconds per byte
};

// Loops left to the compiler, for the machine at hand.
#ifdef __x86_64__
#define TRIREME_LOOP __attribute__((noinline, target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define TRIREME_LOOP __attribute__((noinline))
#endif

TRIREME_LOOP void add_loop(float* a, const float* b, std::size_t n) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) a[i] += b[i];
}

TRIREME_LOOP void add_both_loop(float* a, float* b, std::size_t n) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) a[i] = b[i] = a[i] + b[i];
}

// k inputs into m outputs: the first m inputs themselves, or buffers of their own.
Case fold_case(DType type, Op op, std::size_t k, std::size_t m, bool in_place, Store store) {
  const auto fold = trireme::fold_function(type, op);
  const std::size_t first = in_place ? 0 : k;
  return {fmt::format("fold {} {} {} in, {}{} out{}", name(type), name(op), k, m, in_place ? "" : " other",
                      store == Store::streaming ? ", streaming" : ""),
          k + m, std::max(k, first + m), [=](const Buffers& b) {
            fold({b.at, k}, {b.at + first, m}, b.bytes / size_of(type), store);
          }};
}

Case reduce_case(DType type, Op op) {
  const auto reduce = trireme::reduce_function(type, op);
  return {fmt::format("reduce {} {}", name(type), name(op)), 3, 2,
          [=](const Buffers& b) { reduce(b.at[0], b.at[1], b.bytes / size_of(type)); }};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  cases.push_back({"memcpy", 2, 2, [](const Buffers& b) { std::memcpy(b.at[0], b.at[1], b.bytes); }});
  cases.push_back({"copy_bytes streaming", 2, 2,
                   [](const Buffers& b) { trireme::copy_bytes(b.at[0], b.at[1], b.bytes, Store::streaming); }});
  cases.push_back(
      {"loop a[i] += b[i]", 3, 2, [](const Buffers& b) { add_loop(b.floats(0), b.floats(1), b.bytes / 4); }});
  cases.push_back(reduce_case(DType::f32, Op::sum));
  cases.push_back({"loop a[i] = b[i] = a[i] + b[i]", 4, 2,
                   [](const Buffers& b) { add_both_loop(b.floats(0), b.floats(1), b.bytes / 4); }});
  for (const bool in_place : {true, false}) {
    for (const Store store : {Store::plain, Store::streaming}) {
      cases.push_back(fold_case(DType::f32, Op::sum, 2, 2, in_place, store));
      cases.push_back(fold_case(DType::f32, Op::sum, 4, 4, in_place, store));
    }
  }
  cases.push_back(fold_case(DType::f32, Op::avg, 2, 2, true, Store::plain));
  cases.push_back(fold_case(DType::f32, Op::max, 2, 2, true, Store::plain));
  cases.push_back(fold_case(DType::f32, Op::avg, 3, 3, true, Store::plain));
  cases.push_back(fold_case(DType::f32, Op::max, 4, 4, true, Store::plain));
  cases.push_back(fold_case(DType::f32, Op::sum, 8, 1, true, Store::plain));
  cases.push_back(fold_case(DType::f32, Op::sum, 16, 1, true, Store::plain));
  for (const DType type : {DType::f16, DType::bf16}) {
    cases.push_back(reduce_case(type, Op::sum));
    cases.push_back(fold_case(type, Op::sum, 2, 2, true, Store::plain));
  }
  return cases;
}

double time_once(const Case& c, const Buffers& buffers) {
  // Long enough for the clock, short enough to fit between two interruptions.
  const std::size_t repeats = std::max<std::size_t>(1, (std::size_t{1} << 22) / (buffers.bytes * c.streams));
  if (repeats > 1) c.run(buffers);  // into the cache, from where the case before left it
  const double start = thread_seconds();
  for (std::size_t i = 0; i < repeats; ++i) c.run(buffers);
  return (thread_seconds() - start) / static_cast<double>(repeats);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::size_t shift = argc > 2 ? std::clamp(std::atoi(argv[2]), 0, 4096) : 0;
  constexpr std::size_t kSets[] = {std::size_t{16} << 10, std::size_t{1} << 20, std::size_t{256} << 20};
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kSpace = kSets[2] + kMostBuffers * 4 * kPage;
  auto* memory = static_cast<std::byte*>(
      mmap(nullptr, kSpace, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  if (memory == MAP_FAILED) return 1;

  fmt::print("{:44}{:>10}{:>10}{:>10}   GB/s\n", "", "16K", "1M", "256M");
  std::vector<std::vector<Case>> results;
  for (const std::size_t set : kSets) {
    results.push_back(all_cases());
    for (int round = 0; round < rounds; ++round) {
      for (Case& c : results.back()) {
        Buffers buffers{{}, set / c.buffers / 64 * 64};
        const std::size_t distance = (buffers.bytes + kPage - 1) / kPage * kPage + shift;
        for (std::size_t i = 0; i < c.buffers; ++i) buffers.at[i] = memory + i * distance;
        c.best = std::min(c.best, time_once(c, buffers) / static_cast<double>(c.streams * buffers.bytes));
      }
    }
  }
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    fmt::print("{:44}", results[0][i].name);
    for (const auto& set : results) fmt::print("{:10.1f}", 1e-9 / set[i].best);
    fmt::print("\n");
  }
  return 0;
}
