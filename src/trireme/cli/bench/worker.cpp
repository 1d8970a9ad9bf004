#include "trireme/cli/bench/worker.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <unordered_map>

#include "trireme/cli/bench/cores.h"
#include "trireme/cli/bench/rank.h"
#include "trireme/collective/reduce/reduce.h"
#include "trireme/collective/run/communicator_impl.h"

namespace trireme::bench {
namespace {

// `calls` is a communicator, or its asynchronous face.
template <typename Calls>
auto call(Calls& calls, const Job& job, const std::byte* input, std::byte* output) {
  const ConstView in(input, input_elements(job.call), job.dtype);
  const View out(output, output_elements(job.call), job.dtype);
  switch (job.call.what) {
    case Collective::broadcast:
      return calls.broadcast(out);
    case Collective::scatter:
      return calls.scatter(in, out);
    case Collective::gather:
      return calls.gather(in, out);
    case Collective::reduce:
      return calls.reduce(in, out, job.op);
    case Collective::all_gather:
      return calls.all_gather(in, out);
    case Collective::reduce_scatter:
      return calls.reduce_scatter(in, out, job.op);
    case Collective::all_reduce:
      return calls.all_reduce(out, job.op);
    case Collective::all_to_all:
      return calls.all_to_all(in, out);
    default:
      return calls.barrier();
  }
}

class OwnSystem : public System {
 public:
  // `under_way`: 1: calls block; else so many are started before the oldest is waited for.
  OwnSystem(Communicator& comm, bool heap, int under_way) : comm_(comm), heap_(heap), under_way_(under_way) {}

  std::string describe() override { return "over " + std::string(comm_.transport()); }

  std::byte* allocate(std::size_t bytes) override {
    if (!heap_) return System::allocate(bytes);
    auto memory = comm_.allocate_bytes(bytes);
    std::byte* at = memory.get();
    memory_.emplace(at, std::move(memory));
    return at;
  }

  void release(std::byte* memory) noexcept override {
    if (memory_.erase(memory) == 0) System::release(memory);
  }

  std::string prepare(const Job& job) override {
    Request request{.what = job.call.what, .dtype = job.dtype, .op = job.op, .count = job.call.count};
    comm_.impl().selector->choose(request);
    const Algorithm* chosen = request.algorithm;
    // Where peers cannot read the buffers, `direct` becomes `staged`.
    if (chosen->pattern == Pattern::direct && !heap_ && comm_.transport() == "shm") {
      chosen = &find_algorithm(job.call.what, Pattern::stages);
    }
    return std::string(chosen->name) + ' ' + std::string(comm_.transport());
  }

  void run(const Job& job, const std::byte* input, std::byte* output) override {
    if (under_way_ == 1) return call(comm_, job, input, output);
    auto async = comm_.async();
    works_.push_back(call(async, job, input, output));
    if (works_.size() < static_cast<std::size_t>(under_way_)) return;
    works_.front().wait();
    works_.pop_front();
  }

  // Whole numbers, so that no bit pattern is slower than another; the addend stays in the nearest cache.
  void update(std::byte* memory, std::size_t bytes) override {
    for (std::size_t done = 0; done < bytes; done += sizeof ones_) {
      add_(memory + done, ones_.data(), std::min(bytes - done, sizeof ones_) / sizeof ones_[0]);
    }
  }

  int in_flight() const override { return under_way_; }

  void barrier() override {
    for (auto& work : works_) work.wait();
    works_.clear();
    comm_.barrier();
  }

 private:
  Communicator& comm_;
  bool heap_;
  int under_way_;
  std::deque<Work> works_;
  Reduce add_ = reduce_function(DType::i32, Op::sum);
  std::array<std::int32_t, 2048> ones_ = [] {
    std::array<std::int32_t, 2048> ones;
    ones.fill(1);
    return ones;
  }();
  std::unordered_map<std::byte*, std::shared_ptr<std::byte[]>> memory_;
};

struct Flags {
  std::string socket, buffers = "heap";
  int threads = 0;    // 0: this process is one rank of a launched world
  int under_way = 1;  // calls at a time
  trireme::Options options;
};

// Bound only now: a communicator made by a bound thread would take its one core for the whole machine and not spin.
void serve_rank(Communicator& comm, const Flags& flags) {
  auto cores = cores_of_process();
  if (comm.size() <= static_cast<int>(cores.size()) && flags.under_way == 1) bind_this_thread(cores[comm.rank()]);
  OwnSystem system(comm, flags.buffers == "heap", flags.under_way);
  if (!serve(system, flags.socket, comm.rank(), comm.size())) ::_exit(1);
}

void work(const Flags& flags) {
  if (flags.threads > 0) {
    run_threads(
        flags.threads, [&](Communicator& comm) { serve_rank(comm, flags); }, flags.options);
  } else {
    Communicator comm = init(flags.options);
    serve_rank(comm, flags);
  }
}

}  // namespace

void add_worker(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("bench-worker", "One rank, or all as threads, of a running `trireme bench`");
  command->group("");  // not in --help: only the benchmark starts it
  command->add_option("SOCKET", flags->socket)->required();
  command->add_option("--buffers", flags->buffers);
  command->add_option("--threads", flags->threads);
  command->add_option("--algorithm", flags->options.algorithm);
  command->add_option("--lanes", flags->options.lanes);
  command->add_option("--under-way", flags->under_way);
  command->add_flag("--deterministic", flags->options.deterministic);
  command->callback([flags] { work(*flags); });
}

}  // namespace trireme::bench
