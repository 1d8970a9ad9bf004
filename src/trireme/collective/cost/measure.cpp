#include "trireme/collective/cost/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trireme/base/clock.h"
#include "trireme/base/median.h"
#include "trireme/base/text/size.h"
#include "trireme/collective/cost/cost.h"
#include "trireme/collective/run/communicator_impl.h"

namespace trireme {
namespace {

constexpr int kBursts = 5, kSlowBursts = 3;
constexpr double kSlow = 100e-3;        // seconds: such calls are worth fewer repetitions
constexpr double kLongestCall = 60e-3;  // of a correction: beyond it the wire is all that counts

// Times calls the same way on every rank. All numbers are the slowest rank's, so every rank decides the same.
class Stopwatch {
 public:
  Stopwatch(Communicator& comm, const Effort& effort)
      : comm_(comm),
        effort_(effort),
        pool_(2 * effort.largest),
        heap_(comm.allocate_bytes(pool_)),
        private_(pool_, std::byte{0}),
        tuning_(comm.impl().selector->tuning()) {
    std::memset(heap_.get(), 0, pool_);
  }

  enum class BufferMemory { heap, own };
  struct What {
    Collective collective;
    std::string_view algorithm;
    std::size_t bytes;  // per rank block
    BufferMemory memory = BufferMemory::heap;
  };

  // Seconds per call.
  double time(const What& what, const Tuning& tuning) {
    prepare(what, tuning);
    const double once = slowest(burst(what, 2));
    const int calls = std::clamp(static_cast<int>(effort_.burst_s / once), once > effort_.burst_s ? 1 : 2, 20'000);
    std::vector<double> times;
    for (int i = 0; i < (once > kSlow ? kSlowBursts : kBursts); ++i) times.push_back(slowest(burst(what, calls)));
    return median(times);
  }
  double time(const What& what) { return time(what, tuning_); }
  // The same in a fraction of the time.
  double quick_time(const What& what, const Tuning& tuning) {
    const Effort thorough = effort_;
    effort_.burst_s /= 10;
    const double seconds = time(what, tuning);
    effort_ = thorough;
    return seconds;
  }

  // Seconds of each of two ways, taken in turns so that both see the same machine.
  std::pair<double, double> compare(const What& a, const Tuning& tuning_a, const What& b, const Tuning& tuning_b) {
    std::vector<double> of_a, of_b;
    for (int i = 0; i < 3; ++i) {
      of_a.push_back(time(a, tuning_a));
      of_b.push_back(time(b, tuning_b));
    }
    return {median(of_a), median(of_b)};
  }

  bool too_large(std::size_t bytes) const { return bytes > effort_.largest; }

  double slowest(double seconds) {
    std::vector<double> value{seconds};
    comm_.all_reduce(value, Op::max);
    return value[0];
  }

 private:
  void prepare(const What& what, const Tuning& tuning) {
    auto& impl = comm_.impl();
    impl.selector.emplace(tuning, comm_.size(), impl.lanes[0]->lane->channel().board() != nullptr, false);
    impl.selector->prefer(what.collective, what.algorithm);
  }

  double burst(const What& what, int calls) {
    auto* pool = what.memory == BufferMemory::heap ? heap_.get() : private_.data();
    const auto ranks = static_cast<std::size_t>(comm_.size());
    const auto out = what.bytes * (has_blocks(what.collective) ? ranks : 1);
    const auto both = what.collective == Collective::all_to_all ? 2 * out : out;
    const auto stride = std::max<std::size_t>((both + 4095) / 4096 * 4096, 64 << 10);
    comm_.barrier();
    const double start = now_seconds();
    for (int i = 0; i < calls; ++i) {
      if (at_ + stride > pool_) at_ = 0;
      call(what, pool + at_, out);
      at_ += stride;
    }
    return (now_seconds() - start) / calls;
  }

  // On memory at `at`, in place where that is possible; `out` bytes in all blocks.
  void call(const What& what, std::byte* at, std::size_t out) {
    const auto view = [](std::byte* from, std::size_t bytes) { return View(from, bytes / sizeof(float), DType::f32); };
    const View all = view(at, out), own = view(at + what.bytes * comm_.rank(), what.bytes);
    switch (what.collective) {
      case Collective::barrier:
        return comm_.barrier();
      case Collective::broadcast:
        return comm_.broadcast(all);
      case Collective::scatter:
        return comm_.scatter(all, own);
      case Collective::gather:
        return comm_.gather(own, all);
      case Collective::reduce:
        return comm_.reduce(all, all, Op::max);
      case Collective::all_gather:
        return comm_.all_gather(own, all);
      case Collective::reduce_scatter:
        return comm_.reduce_scatter(all, own, Op::max);
      case Collective::all_reduce:
        return comm_.all_reduce(all, Op::max);
      case Collective::all_to_all:
        return comm_.all_to_all(all, view(at + out, out));
    }
  }

  Communicator& comm_;
  Effort effort_;
  const std::size_t pool_;  // buffers are taken in turn from this many bytes
  std::shared_ptr<std::byte[]> heap_;
  std::vector<std::byte> private_;
  Tuning tuning_;
  std::size_t at_ = 0;
};

using What = Stopwatch::What;
using BufferMemory = Stopwatch::BufferMemory;
using Progress = std::function<void(std::string_view)>;

// α and β(m): one round of a ring is one message each way.
Curve message_curve(Stopwatch& watch, int ranks, const Progress& progress) {
  Curve curve;
  auto seconds = [&](std::size_t bytes) {
    progress(fmt::format("messages of {}", format_size(bytes)));
    return watch.time({Collective::all_gather, "ring", bytes}) / (ranks - 1);
  };
  curve.start = seconds(8);
  for (std::size_t bytes : {1u << 10, 4u << 10, 16u << 10, 64u << 10, 256u << 10, 1u << 20, 4u << 20}) {
    if (watch.too_large(bytes * ranks)) break;
    const double floor = curve.points.empty() ? curve.start : curve.points.back().seconds;
    curve.points.push_back({static_cast<double>(bytes), std::max(seconds(bytes), floor)});
  }
  const auto &last = curve.points.back(), &before = curve.points[curve.points.size() - 2];
  curve.slope = (last.seconds - before.seconds) / (last.bytes - before.bytes);
  return curve;
}

// Seconds per byte of work over 1 MiB that stays in the cache.
template <typename Work>
double per_byte(Stopwatch& watch, Work&& work) {
  constexpr std::size_t kBytes = 1 << 20;
  std::vector<float> a(kBytes / sizeof(float)), b(a.size());
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) {
    const double start = now_seconds();
    work(a.data(), b.data(), kBytes);
    times.push_back((now_seconds() - start) / kBytes);
  }
  return watch.slowest(median(times));
}

// What a rank pays to load and store m bytes in all while the others do the same: an all-reduce of n bytes moves 2n,
// less its two synchronizations.
Curve memory_curve(Stopwatch& watch, double sync, const Progress& progress) {
  Curve curve;
  for (std::size_t bytes : {16u << 10, 64u << 10, 256u << 10, 1u << 20, 4u << 20, 16u << 20, 64u << 20}) {
    if (watch.too_large(bytes)) break;
    progress(fmt::format("shared memory, {}", format_size(bytes)));
    const double floor = curve.points.empty() ? 0 : curve.points.back().seconds;
    const double seconds = watch.time({Collective::all_reduce, "direct", bytes}) - 2 * sync;
    curve.points.push_back({2.0 * static_cast<double>(bytes), std::max(seconds, floor)});
  }
  const auto &last = curve.points.back(), &before = curve.points[curve.points.size() - 2];
  curve.slope = std::max((last.seconds - before.seconds) / (last.bytes - before.bytes), 1e-12);
  return curve;
}

// The largest size at which the posts are no slower, over heap and private buffers together.
std::size_t inline_limit(Stopwatch& watch, const Tuning& tuning, const Progress& progress) {
  const auto slots = find_algorithm(Collective::all_reduce, Pattern::slots).name,
             direct = find_algorithm(Collective::all_reduce, Pattern::direct).name;
  std::size_t limit = 256;
  for (std::size_t bytes : {512u, 1024u, 2048u, 4096u}) {
    progress(fmt::format("inline or direct, {}", format_size(bytes)));
    double small = 0, large = 0;
    for (auto memory : {BufferMemory::heap, BufferMemory::own}) {
      auto [a, b] = watch.compare({Collective::all_reduce, slots, bytes, memory}, tuning,
                                  {Collective::all_reduce, direct, bytes, memory}, tuning);
      small += a;
      large += b;
    }
    if (small > large) break;
    limit = bytes;
  }
  return limit;
}

// In what pieces private buffers are best staged.
std::size_t stage_chunk(Stopwatch& watch, const Tuning& tuning, const Progress& progress) {
  double best = 1e9;
  auto choice = tuning.stage_chunk;
  for (std::size_t chunk : {64u << 10, 128u << 10, 256u << 10, 512u << 10}) {
    progress(fmt::format("stages of {}", format_size(chunk)));
    auto trial = tuning;
    trial.stage_chunk = chunk;
    double seconds = 0;
    for (std::size_t bytes : {1u << 20, 16u << 20}) {
      if (watch.too_large(bytes)) break;
      seconds +=
          watch.time({Collective::all_reduce, "staged", bytes, BufferMemory::own}, trial) / static_cast<double>(bytes);
    }
    if (seconds < best) {
      best = seconds;
      choice = chunk;
    }
  }
  return choice;
}

// From which size on results are better stored past the cache.
std::size_t streaming_from(Stopwatch& watch, Tuning tuning, const Progress& progress) {
  const auto direct = find_algorithm(Collective::all_reduce, Pattern::direct).name;
  std::size_t from = SIZE_MAX;
  auto streaming = tuning;
  streaming.streaming_from = 0;
  tuning.streaming_from = SIZE_MAX;
  for (std::size_t bytes : {64u << 20, 16u << 20, 4u << 20, 1u << 20}) {
    if (watch.too_large(bytes)) continue;
    progress(fmt::format("stores past the cache, {}", format_size(bytes)));
    auto [plain, past] = watch.compare({Collective::all_reduce, direct, bytes}, tuning,
                                       {Collective::all_reduce, direct, bytes}, streaming);
    if (past > 0.97 * plain) break;
    from = bytes;
  }
  return from;
}

// As many looks as take about twice as long as waking a sleeper does.
int spins_for(Stopwatch& watch) {
  net::Signal never{};
  constexpr int kLooks = 100'000;
  const double start = now_seconds();
  for (int i = 0; i < kLooks; ++i) {
    if (never.value.load(std::memory_order_acquire) != 0) break;
    net::pause_cpu();
  }
  const double look = watch.slowest((now_seconds() - start) / kLooks);
  constexpr double kWorthSpinning = 100e-6;
  return std::clamp(static_cast<int>(kWorthSpinning / look), 100, 100'000);
}

// What calls really took over what the model says, for every algorithm there is.
Corrections measure_corrections(Stopwatch& watch, const Tuning& tuning, int ranks, bool shared,
                                const Progress& progress) {
  Corrections corrections(ranks);
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.shared && !shared) continue;
    progress(fmt::format("{} by {}", name(algorithm.what), algorithm.name));
    const bool empty = algorithm.what == Collective::barrier;
    for (std::size_t bytes = 64; !watch.too_large(bytes) && bytes <= (16u << 20); bytes *= 2) {
      if (empty && bytes > 64) break;
      const std::size_t per_rank = has_blocks(algorithm.what) ? std::max<std::size_t>(bytes / ranks / 4 * 4, 4) : bytes;
      const std::size_t count = empty ? 0 : per_rank / sizeof(float);
      const Call call{algorithm.what, 0, ranks, 0, count, count};
      const double model = predict(algorithm, call, DType::f32, tuning.model);
      if (!(model > 0) || model > kLongestCall) break;  // one rank, or a slow wire
      const auto memory = algorithm.pattern == Pattern::stages ? BufferMemory::own : BufferMemory::heap;
      const double seconds = watch.quick_time({algorithm.what, algorithm.name, empty ? 0 : per_rank, memory}, tuning);
      corrections.add(algorithm.what, algorithm.name, std::max(call_bytes(call, DType::f32), 1.0), seconds / model);
    }
  }
  return corrections;
}

}  // namespace

Tuning measure_tuning(Communicator& comm, const Progress& progress, const Effort& effort) {
  Stopwatch watch(comm, effort);
  Tuning tuning = default_tuning(comm.transport());
  const bool shared = comm.impl().lanes[0]->lane->channel().board() != nullptr;
  if (shared) tuning.spins = spins_for(watch);
  if (comm.size() > 1) tuning.model.message = message_curve(watch, comm.size(), progress);
  const auto reduce = reduce_function(DType::f32, Op::sum);
  tuning.model.gamma =
      per_byte(watch, [&](float* a, const float* b, std::size_t bytes) { reduce(a, b, bytes / sizeof(float)); });
  tuning.model.copy = per_byte(watch, [](float* a, const float* b, std::size_t bytes) { std::memcpy(a, b, bytes); });
  if (shared) {
    progress("synchronization");
    tuning.model.sync = watch.time({Collective::barrier, "inline", 0});
    tuning.streaming_from = streaming_from(watch, tuning, progress);
    tuning.stage_chunk = stage_chunk(watch, tuning, progress);
    tuning.inline_limit = inline_limit(watch, tuning, progress);
    tuning.model.memory = memory_curve(watch, tuning.model.sync, progress);
  }
  if (effort.every_algorithm && comm.size() > 1) {
    tuning.model.corrections = measure_corrections(watch, tuning, comm.size(), shared, progress);
  }
  tuning.source = fmt::format("measured with {} ranks", comm.size());
  return tuning;
}

}  // namespace trireme
