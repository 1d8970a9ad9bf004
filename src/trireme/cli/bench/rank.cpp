#include "trireme/cli/bench/rank.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <new>
#include <sstream>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/cli/bench/obey.h"
#include "trireme/cli/bench/wire.h"

namespace trireme::bench {
namespace {

// The benchmark ends a rank by closing its wire; this only bounds a rank whose benchmark is stopped for good.
constexpr double kForgottenSeconds = 24 * 3600;

std::int64_t processor_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

class Rank {
 public:
  Rank(System& system, int rank, int ranks) : system_(system), rank_(rank), ranks_(ranks) {}
  ~Rank() { release(); }

  std::string prepare(std::istream& words) {
    release();
    int what = 0, dtype = 0, op = 0, buffers = 0;
    std::size_t count = 0;
    words >> what >> dtype >> op >> count >> buffers;
    if (!words || what < 0 || what >= static_cast<int>(kCollectives.size()) || buffers < 1) {
      throw ProtocolError("bad prepare");
    }
    job_ = Job{{static_cast<Collective>(what), rank_, ranks_, 0, count, count},
               static_cast<DType>(dtype),
               static_cast<Op>(op)};
    std::string answer = system_.prepare(job_);
    for (int i = 0; i < buffers; ++i) {
      std::byte* input = take(input_elements(job_.call));
      buffers_.push_back({input, in_place(job_.call.what) ? input : take(output_elements(job_.call))});
    }
    return answer;
  }

  // Fills `times_` with one entry per iteration; returns the number of wrong elements.
  std::size_t burst(std::istream& words) {
    std::size_t warmup = 0, iterations = 0;
    if (!(words >> warmup >> iterations) || buffers_.empty()) throw ProtocolError("bad burst");
    const std::size_t most = static_cast<std::size_t>(most_uses(job_)) * buffers_.size();
    for (std::size_t n; warmup > 0; warmup -= n) {
      refill();
      n = std::min(warmup, most);
      for (std::size_t i = 0; i < n; ++i) step(i);
    }
    times_.assign(iterations, 0);
    std::size_t errors = 0;
    for (std::size_t done = 0; done < iterations;) {
      refill();
      // Two untimed iterations after each refill take up the ranks' skew and the barrier's exit.
      std::size_t lead = std::min<std::size_t>(static_cast<std::size_t>(1 + system_.in_flight()), most - 1);
      std::size_t n = std::min(iterations - done, most - lead);
      for (std::size_t i = 0; i < lead; ++i) step(i);
      auto before = Clock::now();
      for (std::size_t i = 0; i < n; ++i) {
        step(lead + i);
        auto after = Clock::now();
        times_[done + i] = std::chrono::duration<float, std::micro>(after - before).count();
        before = after;
      }
      errors += check(lead + n);
      done += n;
    }
    return errors;
  }

  // The rate at which memory takes in-place updates: reads and writes every byte of `group` buffers in turn. Fills
  // `times_`; returns the bytes of one iteration. Processor time, so that ranks that share a core each tell their own.
  std::size_t stream(std::istream& words) {
    std::size_t group = 0, iterations = 0;
    if (!(words >> group >> iterations) || group == 0 || buffers_.empty()) throw ProtocolError("bad stream");
    times_.assign(iterations, 0);
    system_.barrier();
    std::size_t bytes = 0, next = 0;
    auto before = processor_ns();
    for (auto& time : times_) {
      bytes = 0;
      for (std::size_t i = 0; i < group; ++i, ++next) {
        auto& [input, output] = buffers_[next % buffers_.size()];
        bytes += update(input, input_elements(job_.call));
        if (output != input) bytes += update(output, output_elements(job_.call));
      }
      auto after = processor_ns();
      time = static_cast<float>(after - before) * 1e-3F;
      before = after;
    }
    return bytes;
  }

  void release() {
    for (auto& [input, output] : buffers_) {
      if (output != input) system_.release(output);
      system_.release(input);
    }
    buffers_.clear();
  }

  const std::vector<float>& times() const { return times_; }

 private:
  struct Pair {
    std::byte* input;
    std::byte* output;
  };

  std::byte* take(std::size_t elements) {
    return system_.allocate(std::max<std::size_t>(64, elements * size_of(job_.dtype)));
  }

  void step(std::size_t i) {
    Pair& pair = buffers_[i % buffers_.size()];
    system_.run(job_, pair.input, pair.output);
  }

  void refill() {
    system_.barrier();  // nothing may be under way in what is filled
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      fill(job_, static_cast<int>(b), buffers_[b].input, buffers_[b].output);
    }
    system_.barrier();
  }

  std::size_t check(std::size_t steps) {
    system_.barrier();
    std::size_t errors = 0;
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      auto uses = static_cast<int>((steps + buffers_.size() - 1 - b) / buffers_.size());
      errors += count_errors(job_, static_cast<int>(b), uses, buffers_[b].output);
    }
    return errors;
  }

  std::size_t update(std::byte* memory, std::size_t elements) {
    const std::size_t bytes = elements * size_of(job_.dtype);
    system_.update(memory, bytes);
    return bytes;
  }

  System& system_;
  int rank_, ranks_;
  Job job_;
  std::vector<Pair> buffers_;
  std::vector<float> times_;
};

// One command; false for quit.
bool obey(Rank& rank, Wire& wire, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  if (obey_measurement(rank, wire, command, words)) return true;
  if (command == "release") {
    rank.release();
    wire.send_line("ok");
  } else if (command == "quit") {
    wire.send_line("ok");
    return false;
  } else {
    throw ProtocolError("unknown command '" + command + "'");
  }
  return true;
}

}  // namespace

std::byte* System::allocate(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  void* memory = std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine);
  if (memory == nullptr) throw Error("out of memory for a buffer of " + std::to_string(bytes) + " bytes");
  return static_cast<std::byte*>(memory);
}

void System::release(std::byte* memory) noexcept { std::free(memory); }

void System::update(std::byte* memory, std::size_t bytes) {
  auto* words = reinterpret_cast<std::uint32_t*>(memory);
  for (std::size_t i = 0; i < bytes / 4; ++i) words[i] += 1;
}

bool serve(System& system, const std::string& path, int rank, int ranks) {
  Wire wire = Wire::connect(path);
  wire.send_line("hello " + std::to_string(rank) + ' ' + system.describe());
  Rank self(system, rank, ranks);
  while (true) {
    std::string line;
    try {
      line = wire.read_line(Deadline::in_seconds(kForgottenSeconds));
    } catch (const Error&) {
      return false;
    }
    try {
      if (!obey(self, wire, line)) return true;
    } catch (const std::exception& error) {
      try {
        wire.send_line(std::string("error ") + error.what());
      } catch (const Error&) {
      }
      return false;
    }
  }
}

}  // namespace trireme::bench
