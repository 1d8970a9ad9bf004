#include "trireme/grad/data_parallel.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>

#include "trireme/base/error.h"
#include "trireme/grad/exchange_options.h"
#include "trireme/grad/finite.h"
#include "trireme/grad/gradient_exchange.h"
#include "trireme/grad/heap_allocator.h"
#include "trireme/grad/parameters.h"
#include "trireme/grad/reducer.h"
#include "trireme/grad/replicas.h"
#include "trireme/grad/sync_batch_norm.h"
#include "trireme/sync/exchange/compressed_mean.h"

namespace trireme {

using grad::buffers_of;
using grad::everything;
using grad::Parameter;

namespace {

std::vector<std::size_t> sizes_of(const std::vector<Parameter>& parameters) {
  std::vector<std::size_t> sizes;
  for (const auto& parameter : parameters) {
    if (parameter.tensor.is_cpu()) sizes.push_back(parameter.tensor.nbytes());
  }
  return sizes;
}

class CallWhenReady : public torch::autograd::FunctionPostHook {
 public:
  explicit CallWhenReady(std::function<void()> call) : call_(std::move(call)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    call_();
    return outputs;
  }

 private:
  std::function<void()> call_;
};

}  // namespace

struct DataParallel::Impl : GradientExchange {
  Impl(torch::nn::Module& module, Communicator& world, const ExchangeOptions& options);
  ~Impl() override;
  void on_ready(std::size_t parameter);

  int ranks() const override { return reducer.ranks(); }
  void tell(const std::array<float, kTold>& numbers) override { reducer.tell(numbers); }
  std::array<float, kTold> told() const override { return reducer.told(); }
  void finish() override {
    reducer.finish();
    ++steps;
  }
  void zero_grad() override;
  const std::vector<BadGradient>& bad_gradients() const override { return reducer.bad_gradients(); }
  ExchangeTimes times() const override { return reducer.times(); }
  std::uint64_t measuring_bytes() const override { return reducer.measuring_bytes(); }
  std::string describe() const override { return reducer.describe(); }
  std::vector<ReadyGradient> ready() const override { return reducer.ready_gradients(); }

  torch::nn::Module& model;
  Communicator& comm;
  grad::Reducer reducer;
  std::optional<grad::HeapBirths> births;
  std::optional<grad::SyncBatchNorm> batch_norm;
  bool off = false;        // within no_sync
  bool in_parts = false;   // the exchange ends when that is said
  std::int64_t steps = 0;  // exchanges this rank's own data took part in
  struct Hook {
    // Owned, for the parameter holds it weakly; by which kind of pointer differs between versions of LibTorch.
    decltype(torch::autograd::impl::grad_accumulator(torch::Tensor())) node;
    std::uintptr_t key;
  };
  std::vector<Hook> hooks;
};

DataParallel::Impl::Impl(torch::nn::Module& module, Communicator& world, const ExchangeOptions& options)
    : model(module), comm(world), reducer(grad::learning(module), world, options) {
  if (reducer.parameters().empty())
    throw ConfigError("data_parallel: the model has no parameter that requires a gradient");
  if (!options.stay) {
    births.emplace(world, sizes_of(reducer.parameters()));
    auto all = everything(model);
    grad::check_same_outline(comm, all);
    grad::broadcast_all(comm, all, 0);
    grad::check_equal(comm, all);
  }
  if (options.sync_batch_norm) batch_norm.emplace(comm);
  for (std::size_t p = 0; p < reducer.parameters().size(); ++p) {
    auto node = torch::autograd::impl::grad_accumulator(reducer.parameters()[p].tensor);
    auto key = node->add_post_hook(std::make_unique<CallWhenReady>([this, p] { on_ready(p); }));
    hooks.push_back({std::move(node), key});
  }
}

DataParallel::Impl::~Impl() {
  for (auto& hook : hooks) hook.node->del_post_hook(hook.key);
}

// The path of a gradient: autograd calls this when one is final; the reducer hands full buckets to the exchange; when
// backward ends it waits for them, and every .grad is the mean.
void DataParallel::Impl::on_ready(std::size_t parameter) {
  if (off) return;
  if (reducer.ready(parameter) && !in_parts) {
    torch::autograd::Engine::get_default_engine().queue_callback([this] {
      reducer.finish();
      ++steps;
    });
  }
}

DataParallel::DataParallel(torch::nn::Module& model, Communicator& world, const DataParallelOptions& options)
    : DataParallel(model, world, ExchangeOptions(options)) {}
DataParallel::DataParallel(torch::nn::Module& model, Communicator& world, const ExchangeOptions& options)
    : impl_(std::make_unique<Impl>(model, world, options)) {}
DataParallel::DataParallel(DataParallel&&) noexcept = default;
DataParallel& DataParallel::operator=(DataParallel&&) noexcept = default;
DataParallel::~DataParallel() = default;

DataParallel::NoSync DataParallel::no_sync() { return NoSync(impl_->off); }
DataParallel::NoSync::~NoSync() { off_ = before_; }

DataParallel::InParts DataParallel::in_parts() { return InParts(*this); }
DataParallel::InParts::InParts(DataParallel& net) : net_(net) { net_.impl_->in_parts = true; }
DataParallel::InParts::~InParts() { net_.impl_->in_parts = false; }

void DataParallel::InParts::finish() {
  net_.impl_->in_parts = false;
  net_.exchange();
}

// ---- Uneven inputs ----

DataParallel::Join DataParallel::join() { return Join(*this); }

DataParallel::Join::Join(DataParallel& net) : net_(net) { net_.impl_->reducer.set_weighted(true); }

void DataParallel::Join::finish() {
  if (!open_) return;
  open_ = false;
  auto& impl = *net_.impl_;
  auto& comm = impl.comm;
  const std::int64_t mine = impl.steps;
  impl.reducer.set_weight(0);
  do {
    net_.contribute_nothing();
  } while (impl.reducer.total_weight() > 0);
  impl.reducer.set_weight(1);
  impl.reducer.set_weighted(false);
  net_.zero_grad();
  // Whoever stepped last has the weights that saw everything.
  std::vector<std::int64_t> steps{mine}, all(comm.size());
  comm.all_gather(steps, all);
  int last = static_cast<int>(std::ranges::max_element(all) - all.begin());
  grad::broadcast_all(comm, everything(impl.model), last);
}

DataParallel::Join::~Join() {
  try {
    if (std::uncaught_exceptions() == 0) finish();
  } catch (const std::exception& error) {
    net_.impl_->comm.abort(error.what());
  }
}

void DataParallel::set_samples(double samples) {
  if (!(samples >= 0)) throw ConfigError(fmt::format("set_samples: {} is below 0", samples));
  impl_->reducer.set_weight(samples);
}

void DataParallel::contribute_nothing() {
  zero_grad();
  impl_->reducer.finish();
}

void DataParallel::exchange() { impl_->finish(); }

// ---- After backward ----

void DataParallel::zero_grad() { impl_->zero_grad(); }

void DataParallel::Impl::zero_grad() {
  for (const auto& parameter : reducer.parameters()) {
    const_cast<torch::Tensor&>(parameter.tensor).mutable_grad() = torch::Tensor();
  }
}

double DataParallel::grad_norm() {
  double sum = 0;
  for (const auto& parameter : impl_->reducer.parameters()) {
    if (parameter.tensor.grad().defined()) sum += grad::sum_of_squares(parameter.tensor.grad());
  }
  return std::sqrt(sum);
}

double DataParallel::clip_grad_norm(double most) {
  if (!(most > 0)) throw ConfigError(fmt::format("clip_grad_norm: {} is not above 0", most));
  torch::NoGradGuard no_grad;
  double norm = grad_norm();
  if (norm > most) {
    for (const auto& parameter : impl_->reducer.parameters()) {
      auto gradient = parameter.tensor.grad();
      if (gradient.defined()) gradient.mul_(most / norm);
    }
  }
  return norm;
}

void DataParallel::average_buffers() {
  if (impl_->comm.size() == 1) return;
  torch::NoGradGuard no_grad;
  for (const auto& buffer : buffers_of(impl_->model)) {
    if (!buffer.tensor.is_floating_point()) continue;
    auto host = buffer.tensor.detach().cpu().contiguous();
    impl_->comm.all_reduce(View(host.data_ptr(), host.numel(), grad::element_type(buffer)), Op::avg);
    if (host.data_ptr() != buffer.tensor.data_ptr()) buffer.tensor.detach().copy_(host);
  }
}

GradientExchange& DataParallel::gradients() { return *impl_; }
const std::vector<BadGradient>& DataParallel::bad_gradients() const { return impl_->reducer.bad_gradients(); }
ExchangeTimes DataParallel::times() const { return impl_->reducer.times(); }
std::vector<std::string> DataParallel::unused() const { return impl_->reducer.unused(); }
std::optional<sync::Compressed> DataParallel::compressed() const { return impl_->reducer.compressed(); }
sync::Turn DataParallel::turn() const { return impl_->reducer.turn(); }
std::string DataParallel::describe() const { return impl_->reducer.describe(); }
std::size_t DataParallel::bucket_count() const { return impl_->reducer.bucket_count(); }

}  // namespace trireme
