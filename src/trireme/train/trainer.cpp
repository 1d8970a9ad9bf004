#include "trireme/train/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/data/loader.h"
#include "trireme/data/sampler.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/train/checkpoints.h"
#include "trireme/train/evaluate.h"
#include "trireme/train/gradients.h"
#include "trireme/train/optimizer.h"
#include "trireme/train/recorder.h"
#include "trireme/train/schedule.h"
#include "trireme/train/state.h"

namespace trireme::train {
namespace {

DataParallelOptions exchange_options(const Config& config, Communicator& world) {
  DataParallelOptions options;
  options.bucket_plan = config.bucket_plan;
  options.sync_batch_norm = config.sync_batch_norm;
  options.check_finite = true;
  options.op = Op::sum;  // losses are scaled by the global batch
  if (config.exchange == "background") options.turn = sync::Turn::background;
  if (config.exchange == "inline") options.turn = sync::Turn::in_line;
  options.threads = compute_threads(config, world.size());
  return options;
}

data::ShardedSampler sampler_of(const Config& config, const Workload& work, Communicator& world) {
  return data::ShardedSampler({.size = work.data.train->size(),
                               .batch = config.batch * config.accumulate,
                               .rank = world.rank(),
                               .workers = world.size(),
                               .seed = static_cast<std::uint64_t>(config.seed),
                               .micro_batch = config.deterministic ? config.micro_batch : 0});
}

ScheduleOptions schedule_options(const Config& config, std::int64_t steps_per_epoch, int workers) {
  return {.base_lr = config.lr,
          .total_steps = config.steps > 0 ? config.steps : config.epochs * steps_per_epoch,
          .steps_per_epoch = steps_per_epoch,
          .warmup_epochs = config.warmup,
          .global_batch = config.batch * config.accumulate * workers,
          .reference_batch = config.reference_batch};
}

OptimizerOptions optimizer_options(const Config& config) {
  return {.momentum = config.momentum,
          .weight_decay = config.weight_decay,
          .nesterov = config.nesterov,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .epsilon = config.epsilon,
          .trust = config.trust};
}

NamedTensors learning(torch::nn::Module& model) {
  NamedTensors parameters;
  for (const auto& item : model.named_parameters()) {
    if (item.value().defined() && item.value().requires_grad()) parameters.emplace_back(item.key(), item.value());
  }
  return parameters;
}

std::string name_bad(const std::vector<BadGradient>& bad, std::int64_t step) {
  std::vector<std::string> where;
  for (const auto& one : bad) where.push_back(fmt::format("'{}' on rank {}", one.parameter, one.rank));
  return fmt::format("step {}: the gradient of {} is not finite", step, fmt::join(where, ", "));
}

// One run of one worker.
class Run {
 public:
  Run(const Config& config, Workload& work, Communicator& world, const TrainOptions& options)
      : config_(config),
        work_(work),
        world_(world),
        options_(options),
        net_(data_parallel(*work.model, world, exchange_options(config, world))),
        gradients_(config, work, net_, world),
        optimizer_(make_optimizer(config.optimizer, learning(*work.model), optimizer_options(config))),
        sampler_(sampler_of(config, work, world)),
        steps_per_epoch_(sampler_.steps_per_epoch()),
        schedule_(make_schedule(config.schedule, schedule_options(config, steps_per_epoch_, world.size()))) {
    if (options.resume) resume();
    sampler_.seek(place_.epoch, place_.position);
    loader_ =
        std::make_unique<data::Loader>(work.data.train, sampler_, data::LoaderOptions{.pinned = !work.device.is_cpu()});
    recorder_.emplace(config, world, resumed_, options.verbosity);
    if (world.rank() == 0) {
      checkpoints_.emplace(config.out, static_cast<int>(config.keep_last), /*keep_best=*/true);
      checkpoints_->forget_after(resumed_ ? place_.step : -1);
    }
  }

  TrainResult run() {
    show_header();
    work_.model->train();
    bool stopped = false;
    while (!stopped && !finished()) {
      auto item = loader_->next();
      if (item) {
        stopped = step(*item);
      } else {
        end_epoch();
      }
    }
    if (!test_) test_ = measure();  // ended within an epoch, or had nothing to do
    if (place_.position > 0) save(std::nullopt);
    if (checkpoints_) checkpoints_->wait();
    auto summary = recorder_->finish(place_, *test_, stopped ? "stopped" : "finished");
    return {summary, stopped};
  }

 private:
  // From a batch to the next weights. True when some worker was asked to stop.
  bool step(const data::Item& item) {
    double begin = last_ > 0 ? last_ : now_seconds();
    double lr = schedule_->lr(schedule_step());
    auto outcome = gradients_.compute(item, options_.stop && *options_.stop != 0);  // forward, backward, exchange
    double begin_update = now_seconds();
    if (net_.bad_gradients().empty()) {
      if (config_.clip > 0) net_.clip_grad_norm(config_.clip);
      optimizer_->step(lr);
    } else {
      refuse_step();
    }
    net_.zero_grad();
    double end = now_seconds();
    last_ = end;

    test_.reset();
    ++place_.step;
    place_.position = item.position;
    place_.train_seconds += end - begin;
    recorder_->step(outcome, net_.times(), place_, item, steps_per_epoch_, lr, end - begin_update, end - begin);
    if (config_.checkpoint_every > 0 && place_.step % config_.checkpoint_every == 0) save(std::nullopt);
    return outcome.stop;
  }

  // The same decision on every rank: all of them know of every bad gradient.
  void refuse_step() {
    auto what = name_bad(net_.bad_gradients(), place_.step + 1);
    if (config_.on_nan == "stop") {
      if (world_.rank() != 0) throw Aborted(what);  // one says so
      throw Error(what + "; lower --lr, set --clip, or let --on-nan skip leave such steps out");
    }
    recorder_->message(what + ": step skipped");
  }

  void end_epoch() {
    double lr = schedule_->lr(std::max<std::int64_t>(0, schedule_step() - 1));
    place_.position = 0;
    ++place_.epoch;
    test_ = measure();
    schedule_->observe(test_->accuracy);
    if (config_.target > 0 && place_.target_seconds < 0 && test_->accuracy >= config_.target) {
      place_.target_seconds = place_.train_seconds;
    }
    place_.best_accuracy = std::max(place_.best_accuracy, test_->accuracy);
    recorder_->epoch(place_, *test_, lr);
    save(test_->accuracy);
    last_ = 0;  // what evaluation took is not training
  }

  Evaluation measure() {
    net_.average_buffers();
    return evaluate(*work_.model, *work_.data.test, work_.device, &world_);
  }

  bool finished() const {
    return place_.epoch >= config_.epochs || (config_.steps > 0 && place_.step >= config_.steps);
  }

  // Steps as the schedule counts them: by how much of the data was seen, so that it means the same after the number of
  // workers has changed.
  std::int64_t schedule_step() const {
    std::int64_t batch = config_.batch * config_.accumulate * world_.size();
    return place_.epoch * steps_per_epoch_ + (place_.position + batch - 1) / batch;
  }

  void save(std::optional<double> metric) {
    net_.average_buffers();
    if (!checkpoints_) return;
    auto kept = keep(*work_.model, *optimizer_, *schedule_, place_, config_, data::look_of(work_.data));
    checkpoints_->save(place_.step, kept.tensors, kept.metadata, metric);
  }

  void resume() {
    LoadedCheckpoint loaded;
    std::string file = config_.out;
    if (world_.rank() == 0) {
      auto search = latest_checkpoint(config_.out);
      if (!search.found) {
        throw DataError(fmt::format("{}: no whole checkpoint to resume from{}", config_.out,
                                    search.skipped.empty() ? "" : "; " + search.skipped.front()));
      }
      file = search.found->path.string();
      loaded = load_checkpoint(search.found->path);
      skipped_ = search.skipped;
    }
    share(loaded, world_);
    place_ = restore(*work_.model, *optimizer_, *schedule_, loaded, file);
    resumed_ = place_.step;
  }

  void show_header() {
    RunHeader header;
    header.model = config_.model;
    header.parameters = parameter_count(*work_.model);
    header.data = fmt::format("{}, {} training and {} test samples", work_.data.name, work_.data.train->size(),
                              work_.data.test->size());
    header.workers = world_.size();
    header.launch = config_.launch;
    header.threads = compute_threads(config_, world_.size());
    header.device = config_.device;
    header.transport = world_.transport();
    header.algorithm = config_.deterministic ? "the canonical order (deterministic)" : config_.algorithm;
    header.buckets = net_.describe();
    header.optimizer = fmt::format("{}, lr {}, {}", config_.optimizer, config_.lr, config_.schedule);
    header.out = config_.out;
    recorder_->header(header);
    for (const auto& line : skipped_) recorder_->message(line);
    if (resumed_) {
      recorder_->message(fmt::format("going on from step {}, epoch {}", place_.step, place_.epoch + 1));
    }
  }

  const Config& config_;
  Workload& work_;
  Communicator& world_;
  const TrainOptions& options_;
  DataParallel net_;
  Gradients gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  data::ShardedSampler sampler_;
  const std::int64_t steps_per_epoch_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<data::Loader> loader_;
  std::optional<Recorder> recorder_;
  std::optional<Checkpoints> checkpoints_;  // rank 0 only
  Place place_;
  std::optional<Evaluation> test_;  // of the weights as they are
  std::optional<std::int64_t> resumed_;
  std::vector<std::string> skipped_;
  double last_ = 0;  // when the last step ended; 0: nothing to count from
};

}  // namespace

TrainResult train(const Config& config, Workload& work, Communicator& world, const TrainOptions& options) {
  return Run(config, work, world, options).run();
}

}  // namespace trireme::train
