#include "trireme/train/synchronize.h"

#include <fmt/format.h>

#include <optional>

#include "trireme/base/error.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/grad/exchange_options.h"
#include "trireme/grad/gradient_exchange.h"
#include "trireme/grad/parameters.h"
#include "trireme/grad/replicas.h"
#include "trireme/optim/kinds.h"
#include "trireme/sync/compatibility.h"
#include "trireme/sync/pace_with_codes.h"
#include "trireme/sync/run_step.h"
#include "trireme/train/group/world_servers.h"
#include "trireme/train/learner/flat_model.h"
#include "trireme/train/learner/run_parts.h"
#include "trireme/train/optimizers/torch_optimizer.h"

namespace trireme {
namespace {

void begin_alike(torch::nn::Module& model, Communicator& world) {
  const auto all = grad::everything(model);
  grad::check_same_outline(world, all);
  grad::broadcast_all(world, all, 0);
}

sync::Choice choice_of(const SynchronizeOptions& options, const train::TorchStepping& stepping, Communicator& world) {
  auto choice = sync::Choice::parse(options.strategy);
  const auto traits = choice.traits();
  if (traits.learners > 1) {
    throw ConfigError(fmt::format(
        "synchronize: {} trains {} models on each rank, and there is one; set learners=1, or use `trireme train`",
        choice.text(), traits.learners));
  }
  sync::check_combination({.strategy = options.strategy,
                           .compress = options.compress,
                           .compress_rule = options.compress_rule,
                           // One of a user's own is as any but sgd; what servers know of it is asked later.
                           .optimizer = std::string((stepping.kind ? *stepping.kind : optim::kAdam).name),
                           .nesterov = stepping.options.nesterov,
                           .clips = options.clip > 0,
                           .launch = world.transport() == "inproc" ? "threads" : "processes"});
  return choice;
}

void check_servers_can(const train::TorchStepping& stepping, const sync::Choice& choice) {
  if (const auto update = stepping.update()) return (void)ps::make_update(*update);
  throw ConfigError(fmt::format(
      "synchronize: {}: servers step the weights, by SGD, Adam, AdamW, RMSprop or Adagrad with the same settings for "
      "all "
      "parameters, {}; choose one of them, ps-bsp or another strategy",
      choice.text(), stepping.groups_differ ? "and those of its groups differ" : "not by " + stepping.name));
}

}  // namespace

// Forward and backward are the caller's: compute() looks at what they left.
struct Synchronizer::Impl : sync::Worker {
  Impl(torch::nn::Module& module, torch::optim::Optimizer& stepper, Communicator& ranks,
       const SynchronizeOptions& given);

  bool compute(const sync::Step& step) override;
  void update(const sync::Step& step) override;
  void lend() override;
  void take_back() override;

  sync::Step now() const { return {number, train::rate_of(optimizer) * pace.rate}; }
  void begin() { sync::begin_step(*strategy, *this, now(), times); }
  void shares_of_mean();
  ps::UpdateSpec server_update(const compress::Rules& rules) const;
  std::unique_ptr<sync::Strategy> make_strategy();
  sync::Pace find_pace() const;
  ExchangeOptions exchange_options();

  torch::nn::Module& model;
  torch::optim::Optimizer& optimizer;
  Communicator& world;
  const SynchronizeOptions options;
  const train::TorchStepping stepping;
  const sync::Choice choice;
  std::optional<train::WorldServers> servers;
  std::unique_ptr<sync::Strategy> strategy;
  const sync::Pace pace;
  const double clip;
  std::optional<train::FlatModel> flat;
  std::optional<DataParallel> net;
  std::int64_t number = 0;
  sync::StepTimes times;
  bool finished = false;
  SynchronizeReport last;  // once finished
};

Synchronizer::Impl::Impl(torch::nn::Module& module, torch::optim::Optimizer& stepper, Communicator& ranks,
                         const SynchronizeOptions& given)
    : model(module),
      optimizer(stepper),
      world(ranks),
      options(given),
      stepping(train::stepping_of(stepper)),
      choice(choice_of(given, stepping, ranks)),
      strategy((begin_alike(module, ranks), make_strategy())),
      pace(find_pace()),
      clip(sync::own_clip(*strategy, pace, given.clip, ranks.size())) {
  const auto& traits = strategy->traits();
  if (traits.owns_step) check_servers_can(stepping, choice);
  if (traits.uses_weights) flat.emplace(model, world, *strategy);
  net.emplace(model, world, exchange_options());
  if (stepping.linear() && pace.momentum != stepping.options.momentum)
    train::set_momentum(optimizer, pace.momentum, false);
  lend();
  const sync::Replica one = flat ? flat->replica() : sync::Replica{};
  strategy->begin({&one, 1});
  take_back();
  begin();
}

// As pace: where a codec has the momentum, or lets gradients be late, servers have none.
ps::UpdateSpec Synchronizer::Impl::server_update(const compress::Rules& rules) const {
  auto update = stepping.update().value_or(ps::UpdateSpec{});
  if (!stepping.linear()) return update;
  auto& own = update.options;
  own.momentum = sync::pace_with_codes(*choice.kind, rules, {.momentum = own.momentum}, own.momentum).momentum;
  own.nesterov &= own.momentum > 0;
  return update;
}

std::unique_ptr<sync::Strategy> Synchronizer::Impl::make_strategy() {
  const compress::Rules rules(options.compress, options.compress_rule);
  if (choice.kind->needs_servers) servers.emplace(world, options.timeout_s);
  const auto outline = train::FlatModel::outline(model);
  std::vector<std::string> names;
  for (const auto& one : outline) names.push_back(one.name);
  rules.check_patterns(names, "the model");
  return choice.make({.world = world,
                      .steps_per_epoch = options.steps_per_epoch,
                      .total_steps = options.total_steps,
                      .seed = options.seed,
                      .client = servers ? &servers->client() : nullptr,
                      .tensors = outline,
                      .update = server_update(rules),
                      .timeout_s = options.timeout_s,
                      .compress = rules,
                      .momentum = rules.takes_momentum() ? stepping.options.momentum : 0,
                      .clips = options.clip > 0,
                      .own_optimizer = !stepping.update(),
                      .exchanged = Op::avg,
                      .not_finite = sync::NotFinite::counts_as_zero});
}

sync::Pace Synchronizer::Impl::find_pace() const {
  if (!stepping.linear()) return {};
  return sync::pace_with_codes(*choice.kind, {options.compress, options.compress_rule},
                               strategy->pace(stepping.options.momentum), stepping.options.momentum);
}

ExchangeOptions Synchronizer::Impl::exchange_options() {
  ExchangeOptions how;
  how.bucket_plan = options.bucket_plan;
  how.check_finite = true;
  how.exchange = strategy->exchange();
  if (!how.exchange) how.stay.emplace(flat ? flat->replica().gradient : std::span<float>());
  return how;
}

bool Synchronizer::Impl::compute(const sync::Step& step) {
  const auto& traits = strategy->traits();
  const auto& bad = net->bad_gradients();
  if (!bad.empty()) {
    if (!options.skip_bad) throw Error(train::name_bad(bad, step.number + 1));
    if (traits.uses_gradient) flat->clear_gradients();  // who expects one gets nothing
    return false;
  }
  shares_of_mean();
  if (traits.owns_step && clip > 0) net->clip_grad_norm(clip);
  return true;
}

// Where a strategy adds gradients up, each is a share of the mean over all ranks.
void Synchronizer::Impl::shares_of_mean() {
  const auto& traits = strategy->traits();
  if (!traits.shares_gradient || traits.in_backward || world.size() == 1) return;
  const float share = 1.0f / static_cast<float>(world.size());
  if (traits.uses_gradient) {
    for (float& g : flat->replica().gradient) g *= share;
    return;
  }
  torch::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) {
    if (parameter.grad().defined()) parameter.mutable_grad().mul_(share);
  }
}

void Synchronizer::Impl::update(const sync::Step&) {
  if (clip > 0) net->clip_grad_norm(clip);
  if (pace.rate != 1) train::scale_rates(optimizer, pace.rate);
  optimizer.step();
  if (pace.rate != 1) train::scale_rates(optimizer, 1 / pace.rate);
}

void Synchronizer::Impl::lend() {
  if (flat && !strategy->traits().owns_step) flat->download();
}

void Synchronizer::Impl::take_back() {
  if (flat) flat->upload();
}

Synchronizer::Synchronizer(torch::nn::Module& model, torch::optim::Optimizer& optimizer, Communicator& world,
                           const SynchronizeOptions& options)
    : impl_(std::make_unique<Impl>(model, optimizer, world, options)) {}
Synchronizer::Synchronizer(Synchronizer&&) noexcept = default;
Synchronizer& Synchronizer::operator=(Synchronizer&&) noexcept = default;
Synchronizer::~Synchronizer() = default;

struct Synchronizer::NoSync::Held {
  DataParallel::NoSync quiet;
};
Synchronizer::NoSync::NoSync(std::unique_ptr<Held> held) : held_(std::move(held)) {}
Synchronizer::NoSync::NoSync(NoSync&&) noexcept = default;
Synchronizer::NoSync::~NoSync() = default;
Synchronizer::NoSync Synchronizer::no_sync() {
  return NoSync(std::unique_ptr<NoSync::Held>(new NoSync::Held{impl_->net->no_sync()}));
}

void Synchronizer::step() {
  auto& impl = *impl_;
  if (impl.finished) throw ConfigError("synchronize: step() after finish()");
  sync::end_step(*impl.strategy, impl, impl.now(), impl.times);
  impl.net->zero_grad();
  ++impl.number;
  impl.begin();
}

void Synchronizer::with_model(const std::function<void()>& use) {
  auto& impl = *impl_;
  if (impl.finished) return use();
  impl.strategy->abandon(impl.now());
  impl.strategy->settle();
  impl.net->average_buffers();
  if (!impl.flat) {
    use();
  } else {
    impl.take_back();
    impl.lend();
    std::vector<float> shown(impl.flat->replica().weights.size());
    impl.strategy->model(shown);
    train::FlatModel::Instead instead(*impl.flat, shown);
    use();
  }
  impl.begin();
}

void Synchronizer::finish() {
  auto& impl = *impl_;
  if (impl.finished) return;
  auto& strategy = *impl.strategy;
  strategy.abandon(impl.now());
  strategy.settle();
  impl.take_back();
  while (strategy.drain()) {
    impl.take_back();
    impl.update(impl.now());
  }
  impl.lend();
  strategy.finish();
  impl.take_back();
  impl.net->average_buffers();
  impl.finished = true;
  impl.last = report();
  impl.net.reset();
  impl.flat.reset();
  impl.strategy.reset();
  if (impl.servers) impl.servers->close();
  const auto& stepping = impl.stepping;
  if (stepping.linear()) train::set_momentum(impl.optimizer, stepping.options.momentum, stepping.options.nesterov);
}

SynchronizeReport Synchronizer::report() const {
  if (!impl_->strategy) return impl_->last;
  const auto of_strategy = impl_->strategy->report();
  return {impl_->number, impl_->world.bytes_sent() + of_strategy.bytes_sent, of_strategy.wait_s};
}

std::string Synchronizer::describe() const {
  const auto& impl = *impl_;
  auto text = impl.choice.text();
  const compress::Rules rules(impl.options.compress, impl.options.compress_rule);
  if (!rules.none()) text += ", " + rules.text();
  if (impl.stepping.linear() && impl.pace.momentum != impl.stepping.options.momentum) {
    text += fmt::format("; momentum {:g}, {:g} times the rate", impl.pace.momentum, impl.pace.rate);
  }
  if (impl.clip > 0 && impl.options.clip == 0) text += fmt::format(", gradients of norm {:g} at most", impl.clip);
  return text;
}

}  // namespace trireme
