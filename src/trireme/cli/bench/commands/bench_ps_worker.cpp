#include "trireme/cli/bench/commands/bench_ps_worker.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <sstream>

#include "trireme/base/error.h"
#include "trireme/cli/bench/cores.h"
#include "trireme/cli/bench/obey.h"
#include "trireme/cli/bench/pattern.h"
#include "trireme/cli/bench/wire.h"
#include "trireme/collective/reduce/reduce.h"
#include "trireme/ps/client/client.h"
#include "trireme/ps/server/server.h"

namespace trireme::bench {
namespace {

struct ServerBenchWorkerFlags {
  std::string socket, transport = "shm", compress = "none";
  int rank = 0, ranks = 1;
};

Deadline patience() { return Deadline::in_seconds(60); }

float processor_us() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<float>(static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3);
}

// Plain SGD that goes forth and back: after an even round the weights are the sum of the round's gradients, after the
// odd one that follows zero again. All of it in whole numbers, so that every element can be checked.
class Rank {
 public:
  explicit Rank(const ServerBenchWorkerFlags& flags) : flags_(flags) {
    ps::ServerOptions serve;
    auto options = ps::client_options_from_environment();
    serve.at = options.at;
    serve.key = options.key;
    serve.name = "server-" + std::to_string(flags.rank);
    server_.emplace(serve);
    options.rank = flags.rank;
    if (flags.transport == "tcp") options.reach = ps::Reach::tcp;
    client_.emplace(options);
  }

  std::string prepare(std::istream& words) {
    int what, dtype, op, buffers;
    std::size_t count;
    if (!(words >> what >> dtype >> op >> count >> buffers)) throw ProtocolError("bad prepare");
    job_ = Job{{Collective::all_reduce, flags_.rank, flags_.ranks, 0, count, count}, DType::f32, Op::sum};
    std::vector<float> zero(count);
    // As a matrix, where it can be one: some codecs want rows.
    client_->declare({{{"model", count, count % 16 == 0 ? 16u : 1u}}, {}, ps::Consistency::bsp(), {flags_.compress}},
                     zero, patience());
    for (int b = 0; b < buffers; ++b) {
      buffers_.push_back({client_->allocate(count), client_->allocate(count), client_->allocate(count)});
      fill(job_, b, bytes(buffers_.back().gradient), bytes(buffers_.back().gradient));
    }
    return "push_pull " + flags_.transport;
  }

  std::size_t burst(std::istream& words) {
    std::size_t warmup = 0, iterations = 0;
    if (!(words >> warmup >> iterations) || buffers_.empty()) throw ProtocolError("bad burst");
    for (auto& buffer : buffers_) {
      std::ranges::fill(buffer.sums, -1.0f);
      std::ranges::fill(buffer.zeros, -1.0f);
    }
    for (std::size_t i = 0; i < warmup; ++i) step();
    times_.assign(iterations, 0);
    auto before = Clock::now();
    for (auto& time : times_) {
      step();
      auto after = Clock::now();
      time = std::chrono::duration<float, std::micro>(after - before).count();
      before = after;
    }
    while (steps_ % (2 * buffers_.size()) != 0) step();
    return errors(std::min(buffers_.size(), (warmup + iterations) / 2));
  }

  std::size_t stream(std::istream& words) {
    std::size_t group = 0, iterations = 0;
    if (!(words >> group >> iterations)) throw ProtocolError("bad stream");
    times_.assign(iterations, 0);
    Reduce add = reduce_function(DType::i32, Op::sum);
    static const std::array<std::int32_t, 2048> zeros{};
    std::size_t size = job_.call.count * sizeof(float), next = 0;
    double none = 0;
    client_->sum("stream " + std::to_string(++streams_), {&none, 1}, patience());  // all at once
    float before = processor_us();
    for (auto& time : times_) {
      std::byte* memory = bytes(buffers_[next++ % buffers_.size()].gradient);
      for (std::size_t done = 0; done < size; done += sizeof zeros) {
        add(memory + done, zeros.data(), std::min(size - done, sizeof zeros) / sizeof zeros[0]);
      }
      float after = processor_us();
      time = after - before;
      before = after;
    }
    return size;
  }

  const std::vector<float>& times() const { return times_; }

 private:
  struct Buffers {
    std::span<float> gradient, sums, zeros;
  };
  static std::byte* bytes(std::span<float> floats) { return reinterpret_cast<std::byte*>(floats.data()); }

  void step() {
    Buffers& buffer = buffers_[steps_ / 2 % buffers_.size()];
    bool forth = steps_++ % 2 == 0;
    client_->wait(client_->push_pull(buffer.gradient, forth ? -1.0 : 1.0, forth ? buffer.sums : buffer.zeros),
                  patience());
  }

  std::size_t errors(std::size_t used) {
    std::size_t wrong = 0;
    if (client_->compression()) return wrong;  // codes are not exact
    for (std::size_t b = 0; b < used; ++b) {
      wrong += count_errors(job_, static_cast<int>(b), 1, bytes(buffers_[b].sums));
      wrong += static_cast<std::size_t>(std::ranges::count_if(buffers_[b].zeros, [](float x) { return x != 0; }));
    }
    return wrong;
  }

  const ServerBenchWorkerFlags& flags_;
  std::optional<ps::Server> server_;
  std::optional<ps::Client> client_;
  Job job_;
  std::vector<Buffers> buffers_;
  std::size_t steps_ = 0, streams_ = 0;
  std::vector<float> times_;
};

void obey(Rank& rank, Wire& wire) {
  while (true) {
    std::istringstream words(wire.read_line(Deadline::in_seconds(24 * 3600)));
    std::string command;
    words >> command;
    if (obey_measurement(rank, wire, command, words)) continue;
    wire.send_line("ok");
    if (command == "quit") return;
  }
}

void work(const ServerBenchWorkerFlags& flags) {
  // A worker and its server on a core of their own: one of them waits while the other works. Over TCP the kernel moves
  // bytes at the same time, wherever it likes.
  auto cores = cores_of_process();
  if (flags.transport == "shm" && flags.ranks <= static_cast<int>(cores.size())) {
    bind_this_thread(cores[static_cast<std::size_t>(flags.rank)]);
  }
  Rank rank(flags);
  Wire wire = Wire::connect(flags.socket);
  wire.send_line("hello " + std::to_string(flags.rank) + " parameter server over " + flags.transport);
  try {
    obey(rank, wire);
  } catch (const Error& error) {
    try {
      wire.send_line(std::string("error ") + error.what());
    } catch (const Error&) {
    }
    ::_exit(1);
  }
}

}  // namespace

void add_ps_worker(CLI::App& app) {
  auto flags = std::make_shared<ServerBenchWorkerFlags>();
  auto* command = app.add_subcommand("bench-ps-worker", "One worker and server of a running `trireme bench ps`");
  command->group("");  // not in --help: only the benchmark starts it
  command->add_option("SOCKET", flags->socket)->required();
  command->add_option("RANK", flags->rank)->required();
  command->add_option("RANKS", flags->ranks)->required();
  command->add_option("--transport", flags->transport);
  command->add_option("--compress", flags->compress);
  command->callback([flags] { work(*flags); });
}

}  // namespace trireme::bench
