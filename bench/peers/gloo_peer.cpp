// Gloo as the benchmark measures it: its TCP transport on loopback, ranks meet through a folder.
//   gloo_peer SOCKET RANK RANKS FOLDER
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "trireme/base/error.h"
#include "trireme/cli/bench/rank.h"

namespace {

using namespace trireme;
using Function = void (*)(void*, const void*, const void*, std::size_t);

template <typename T>
Function function_of(Op op) {
  switch (op) {
    case Op::sum:
      return &gloo::sum<T>;
    case Op::prod:
      return &gloo::product<T>;
    case Op::min:
      return &gloo::min<T>;
    case Op::max:
      return &gloo::max<T>;
    default:
      throw ConfigError("Gloo has no operator " + std::string(name(op)));
  }
}

// Calls `visit` with a value of the element type.
template <typename Visit>
void with_type(DType type, Visit visit) {
  switch (type) {
    case DType::f32:
      return visit(float{});
    case DType::f64:
      return visit(double{});
    case DType::i8:
      return visit(std::int8_t{});
    case DType::u8:
      return visit(std::uint8_t{});
    case DType::i32:
      return visit(std::int32_t{});
    case DType::i64:
      return visit(std::int64_t{});
    default:
      throw ConfigError("the Gloo peer has no element type " + std::string(name(type)));
  }
}

class GlooSystem : public bench::System {
 public:
  explicit GlooSystem(std::shared_ptr<gloo::Context> context) : context_(std::move(context)) {}

  std::string describe() override { return "Gloo over tcp on 127.0.0.1"; }

  std::string prepare(const bench::Job& job) override {
    if (job.call.what == Collective::reduce_scatter) throw ConfigError("Gloo has no reduce-scatter");
    with_type(job.dtype, [&]<typename T>(T) { function_ = function_of<T>(job.op); });
    // Reductions need room for the result on every rank.
    if (job.call.what == Collective::reduce) spare_.resize(job.call.count * size_of(job.dtype));
    return "default tcp";
  }

  void run(const bench::Job& job, const std::byte* in, std::byte* out) override {
    with_type(job.dtype, [&]<typename T>(T) {
      call(job.call, reinterpret_cast<T*>(const_cast<std::byte*>(in)), reinterpret_cast<T*>(out));
    });
  }

  void barrier() override {
    gloo::BarrierOptions options(context_);
    options.setTag(tag_++);
    gloo::barrier(options);
  }

 private:
  template <typename Options>
  Options make() {
    Options options(context_);
    options.setTag(tag_++);
    return options;
  }

  template <typename T>
  void call(const Call& call, T* in, T* out) {
    const std::size_t n = call.count;
    const bool root = call.rank == call.root;
    switch (call.what) {
      case Collective::broadcast: {
        auto options = make<gloo::BroadcastOptions>();
        options.setRoot(call.root);
        options.setOutput(out, n);
        return gloo::broadcast(options);
      }
      case Collective::scatter: {
        auto options = make<gloo::ScatterOptions>();
        options.setRoot(call.root);
        std::vector<T*> parts;
        for (int r = 0; root && r < call.ranks; ++r) parts.push_back(in + n * r);
        if (root) options.setInputs(parts, n);
        options.setOutput(out, n);
        return gloo::scatter(options);
      }
      case Collective::gather: {
        auto options = make<gloo::GatherOptions>();
        options.setRoot(call.root);
        options.setInput(in, n);
        if (root) options.setOutput(out, n * call.ranks);
        return gloo::gather(options);
      }
      case Collective::reduce: {
        auto options = make<gloo::ReduceOptions>();
        options.setRoot(call.root);
        options.setInput(in, n);
        options.setOutput(root ? out : reinterpret_cast<T*>(spare_.data()), n);
        options.setReduceFunction(function_);
        return gloo::reduce(options);
      }
      case Collective::all_gather: {
        auto options = make<gloo::AllgatherOptions>();
        options.setInput(in, n);
        options.setOutput(out, n * call.ranks);
        return gloo::allgather(options);
      }
      case Collective::all_reduce: {
        auto options = make<gloo::AllreduceOptions>();
        options.setOutput(out, n);
        options.setReduceFunction(function_);
        return gloo::allreduce(options);
      }
      case Collective::all_to_all: {
        auto options = make<gloo::AlltoallOptions>();
        options.setInput(in, n * call.ranks);
        options.setOutput(out, n * call.ranks);
        return gloo::alltoall(options);
      }
      default:
        return barrier();
    }
  }

  std::shared_ptr<gloo::Context> context_;
  Function function_ = nullptr;
  std::vector<std::byte> spare_;
  std::uint32_t tag_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 5) throw ConfigError("usage: gloo_peer SOCKET RANK RANKS FOLDER");
    int rank = std::stoi(argv[2]), ranks = std::stoi(argv[3]);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    gloo::rendezvous::FileStore store(argv[4]);
    auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
    context->connectFullMesh(store, device);
    GlooSystem system(context);
    if (!bench::serve(system, argv[1], rank, ranks)) _exit(1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    _exit(1);
  }
}
