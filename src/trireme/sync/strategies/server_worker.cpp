#include "trireme/sync/strategies/server_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/optim/optimizers.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {

namespace {

ps::UpdateSpec paced(ps::UpdateSpec update, const Pace& pace) {
  if (!optim::is(&optim::OptimizerKind::linear, update.name)) return update;
  update.options.momentum = pace.momentum;
  update.options.nesterov &= pace.momentum > 0;
  return update;
}

ps::Compression declared(const Context& context) {
  return {context.compress.codec_text(), context.compress.rules_text(), context.seed, context.steps_per_epoch,
          context.momentum};
}

}  // namespace

ServerWorker::ServerWorker(const Context& context, ps::Consistency consistency, Reading reading)
    : client_(*context.client),
      tensors_(context.tensors),
      consistency_(consistency),
      compression_(declared(context)),
      update_(paced(context.update, pace(context.update.options.momentum))),
      reading_(reading),
      timeout_s_(context.timeout_s),
      averages_((context.clips || context.own_optimizer) && in_rounds()) {
  TRIREME_CHECK(!averages_ || context.compress.none());
  if (context.tables.empty()) return;
  TRIREME_CHECK(!averages_ && context.compress.none());
  rows_.emplace(tensors_, context.tables);
}

ServerWorker::~ServerWorker() = default;

std::shared_ptr<float[]> ServerWorker::memory(std::size_t count) {
  auto span = client_.allocate(count);
  return {span.data(), [&client = client_, span](float*) { client.release(span); }};
}

void ServerWorker::set_traits(const Traits& row) {
  auto traits = row;
  traits.owns_step = !averages_;
  Strategy::set_traits(traits);
}

Deadline ServerWorker::deadline() const { return Deadline::in_seconds(timeout_s_); }

void ServerWorker::begin(std::span<const Replica> replicas) {
  TRIREME_CHECK(replicas.size() == 1);
  weights_ = replicas[0].weights;
  gradient_ = replicas[0].gradient;
  // Nothing was kept of servers that had made no update.
  client_.declare({tensors_, averages_ ? ps::UpdateSpec{"mean", {}} : update_, consistency_, compression_}, weights_,
                  deadline(), servers_.updates > 0 ? servers_ : ps::ServerState{});
  if (averages_) mean_ = memory(weights_.size());
  if (rows_) packed_ = memory(weights_.size());
  servers_ = {};
  report_.bytes_sent += client_.wait(client_.pull(weights_), deadline()).pulled;
  if (reading_ == Reading::live) {
    reader_ = std::jthread([this](const std::stop_token& stop) { read_on(stop); });
  }
}

void ServerWorker::wait_for_last() {
  if (!last_) return;
  Waiting waiting(report_);
  auto outcome = client_.wait(*last_, deadline());
  last_.reset();
  report_.bytes_sent += outcome.pushed + outcome.pulled;
  if (rows_) rows_->pushed(outcome.pushed);
  ++report_.stale[static_cast<std::int64_t>(outcome.staleness)];
}

void ServerWorker::before_forward(const Step&) {
  wait_for_last();
  if (reading_ == Reading::each_step) return;
  {
    const MutexLock lock(mutex_);
    computing_ = true;
  }
  changed_.notify_all();
}

void ServerWorker::abandon(const Step&) {
  if (reading_ == Reading::each_step) return;
  MutexLock lock(mutex_);
  computing_ = false;
  changed_.wait(lock, [this]() TRIREME_REQUIRES(mutex_) { return !pulling_; });
}

void ServerWorker::after_backward(const Step& step) {
  abandon(step);  // nobody else writes to the weights from here on
  if (rows_) {
    const auto count = rows_->pack(gradient_, packed_.get());
    last_ = client_.push_pull_segments(rows_->segments(), {packed_.get(), count}, step.lr, weights_);
    return;
  }
  if (!averages_) {
    last_ = client_.push_pull(gradient_, step.lr, weights_);
    return;
  }
  last_ = client_.push_pull(gradient_, step.lr, {mean_.get(), gradient_.size()});
  wait_for_last();
  std::copy_n(mean_.get(), gradient_.size(), gradient_.begin());
}

// Pulls follow each other with pauses, so that they take a small part of the machine.
void ServerWorker::read_on(const std::stop_token& stop) {
  constexpr double kPauses = 4;  // times as long as the pull before
  MutexLock lock(mutex_);
  while (changed_.wait(lock, stop, [this]() TRIREME_REQUIRES(mutex_) { return computing_; })) {
    pulling_ = true;
    lock.unlock();
    const double begin = now_seconds();
    try {
      read_live_ += client_.wait(client_.pull(weights_), deadline()).pulled;
    } catch (const Error&) {
      // The training thread meets the same, at its next call, and tells.
    }
    const auto pause = std::chrono::duration<double>(kPauses * (now_seconds() - begin));
    lock.lock();
    pulling_ = false;
    changed_.notify_all();
    changed_.wait_for(lock, stop, pause, [this]() TRIREME_REQUIRES(mutex_) { return !computing_; });
  }
}

// When all have pushed what they had, the servers have it all; and nobody pushes more before all have read it. With
// compression training goes on with the weights that this worker has, which are not quite the model.
void ServerWorker::model(std::span<float> out) {
  if (averages_) {
    std::ranges::copy(weights_, out.begin());
    return;
  }
  wait_for_last();
  client_.sum(fmt::format("model {}", models_), {}, deadline());
  const bool compressed = client_.compression().has_value();
  client_.wait(compressed ? client_.pull_exact(out) : client_.pull(weights_), deadline());
  if (client_.first_worker() == client_.id()) servers_ = client_.pull_state(deadline());
  client_.sum(fmt::format("model {} read", models_++), {}, deadline());
  if (!compressed) std::ranges::copy(weights_, out.begin());
}

std::vector<Strategy::Kept> ServerWorker::state() {
  if (averages_) return {};  // workers have what there is
  std::size_t count = 0;
  for (const auto& tensor : tensors_) count += tensor.count;
  const auto quantities = ps::quantities_of(update_);
  servers_.parts.resize(quantities.size());
  std::vector<Kept> all;
  for (std::size_t k = 0; k < quantities.size(); ++k) {
    auto& part = servers_.parts[k];
    part.resize(count, quantities[k].first);
    all.push_back({std::string(quantities[k].name), part});
  }
  return all;
}

std::vector<double> ServerWorker::numbers() const {
  if (averages_) return {};
  return {static_cast<double>(servers_.updates)};
}

void ServerWorker::set_numbers(std::span<const double> numbers) {
  if (averages_) return;
  const double updates = only_of(numbers);
  if (!(updates >= 0 && updates < 0x1p53)) throw DataError("the number of the servers' updates is broken");
  servers_.updates = static_cast<std::uint64_t>(updates);
}

void ServerWorker::finish() {
  std::vector<float> last(weights_.size());
  model(last);
  std::ranges::copy(last, weights_.begin());
}

ExchangePlan server_course(ps::Consistency consistency, ServerWorker::Reading reading) {
  ExchangePlan exchange_plan{lay_out(),
                             {.what = Exchange::What::push_pull,
                              .of = Exchange::Of::gradient,
                              .start = Moment::after_backward,
                              .wait = Moment::before_forward,
                              .later = 1,
                              .clock = consistency}};
  if (reading == ServerWorker::Reading::live) {
    exchange_plan.push_back(
        {.what = Exchange::What::read_on, .start = Moment::before_forward, .wait = Moment::after_backward});
  }
  return exchange_plan;
}

Report ServerWorker::report() const {
  auto report = report_;
  report.bytes_sent += read_live_;
  if (rows_) report.sparse = rows_->report();
  if (const auto did = client_.compression()) {
    report.compressed = {did->bytes_before, did->bytes_after, did->encode_s, did->decode_s, did->error, did->carried};
  }
  return report;
}

}  // namespace trireme::sync
