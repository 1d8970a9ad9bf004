#include "trireme/trainer/trainer.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/report/accounts.h"
#include "trireme/report/header.h"
#include "trireme/report/prediction/prediction.h"
#include "trireme/report/recorder.h"
#include "trireme/train/config/straggle.h"
#include "trireme/train/learner/lane_trial.h"
#include "trireme/train/learner/run_parts.h"
#include "trireme/train/learner/strategy.h"
#include "trireme/trainer/feeding.h"
#include "trireme/trainer/marks.h"
#include "trireme/trainer/resuming.h"
#include "trireme/trainer/saving.h"
#include "trireme/trainer/stopping.h"

namespace trireme::train {
namespace {

// One run of one worker.
class Run {
 public:
  Run(const Config& config, Workload& work, Communicator& world, WorkerGroup& group, const TrainOptions& options)
      : config_(config),
        work_(work),
        all_(world),
        workers_(group),
        options_(options),
        straggle_(config.straggle),
        held_(hold_model(config, work, world, group, options.mesh)),
        group_(held_->group()),
        samples_(sampler_options(config, work, group_.rank(), group_.size())),
        steps_per_epoch_(data::ShardedSampler(samples_).steps_per_epoch()),
        schedule_(make_schedule(config.schedule, schedule_options(config, work, steps_per_epoch_, group_.size()))),
        strategy_(make_strategy(config, held_->module(work), held_->replicas(), options.client, steps_per_epoch_)),
        rate_(pace_of(config, *strategy_).rate),
        learners_(config, work, group_.rank(), *strategy_, *held_),
        worker_(learners_, *strategy_, own_clip(config, *strategy_, group_.size())),
        lanes_(held_->replicas(), strategy_->traits().in_backward),
        meter_([this] { return traffic(); }),
        judged_(*held_, learners_, worker_, *strategy_),
        saving_(config, work, world, *held_, learners_, worker_, *strategy_, *schedule_, judged_, meter_),
        resuming_(config, world, *held_, learners_, *strategy_),
        stopping_(group_, *strategy_, options.stop),
        marks_(config, work.objective, group_, *schedule_, judged_) {
    straggle_.check_rank(group_.size(), held_->group_word());
    worker_.hold_up = [this](double compute_s) { return hold_up(compute_s); };
    worker_.on_bad = [this](const std::vector<BadGradient>& found) { on_bad(found); };
    begin();
    const auto total = schedule_options(config, work, steps_per_epoch_, group_.size()).total_steps - place_.step;
    prediction_.emplace(config, held_->replicas(), group_, *strategy_, 4 * parameter_count(*work.model), total,
                        options.predicted);
    feeding_.emplace(config, work, group_, *strategy_, samples_, place_);
    meter_.resume();
    recorder_.emplace(config, work.objective, all_, workers_.rank(), resumed_, options.verbosity);
    recorder_->begin_at(meter_.from_seconds());
    recorder_->set_chance(work.objective.loss->chance(work.data.train->shape().outputs()));
    if (workers_.rank() == 0) {
      saving_.start_writing();
      saving_.forget_after(resumed_.value_or(-1));
    }
  }

  TrainResult run() {
    show_header();
    while (!stopping_.stopped()) {
      if (finished()) {
        if (!all_finished()) {
          mark();  // somebody else goes on, and has come to one
          continue;
        }
        if (stopping_.apart()) mark();
        break;
      }
      if (auto item = feeding_->next()) {
        step(std::move(*item));
      } else {
        (void)all_finished();
        mark();
      }
    }
    const auto test = end();
    const auto report = strategy_->report();
    const auto workers = accounts_.of_all(workers_, meter_.sent(), report);
    while (workers_.writer() != writer_) {  // it has died since, and may not have kept the last
      take_over();
      saving_.save(place_, test.metrics.front());
      saving_.wait();
    }
    workers_.sum({});  // who leaves before all have looked would seem to have died
    const auto held = held_->report(meter_.seconds(place_));
    for (const auto& line : held.lines) recorder_->message(line);
    const auto summary = recorder_->finish(place_, test, stopping_.stopped() ? "stopped" : "finished", workers, report,
                                           *prediction_, lanes_, held.numbers);
    return {summary, stopping_.stopped()};
  }

 private:
  // From a batch, or one for each learner, to the next weights; then whoever watches is told.
  void step(data::Item first) {
    const double begin = meter_.step_begins();
    worker_.take(feeding_->one_each(std::move(first), learners_.size()), stopping_.asked());
    const sync::Step now{place_.step, rate_ * schedule_->lr(schedule_step())};
    lanes_.before_step();
    const auto times = sync::run_step(*strategy_, worker_, now);
    auto outcome = worker_.finish();
    const double whole_s = meter_.step_ends(begin, place_);
    outcome.exposed_s += times.synchronization;
    outcome.communication_s += times.synchronization;
    ++place_.step;
    place_.position = worker_.items().back().position;
    stopping_.after_step(outcome.stop, now.number);
    observe(outcome, now.lr, times.optimizer, whole_s);
  }

  // In this order, after every step. None of them moves a weight.
  void observe(const StepOutcome& outcome, double lr, double optimizer_s, double whole_s) {
    double samples = 0, globally = 0;  // of this worker, of all
    for (const auto& item : worker_.items()) {
      samples += static_cast<double>(item.here);
      globally += static_cast<double>(item.globally);
    }
    // Exchanged in backward, what was told is already of all workers: each counts its share.
    const bool of_all = strategy_->traits().in_backward;
    marks_.add(outcome, samples, of_all ? samples / static_cast<double>(worker_.items().front().globally) : 1);
    accounts_.step(outcome.own_s() + optimizer_s, outcome.exposed_s);
    const StepProgress progress{static_cast<int>(place_.epoch) + 1, static_cast<int>(config_.epochs),
                                schedule_step() - place_.epoch * steps_per_epoch_, steps_per_epoch_};
    auto& first = learners_.first();
    const auto exchange = first.exchange->times();
    recorder_->step(outcome, exchange, place_, globally, progress, lr, optimizer_s, whole_s);
    prediction_->step(outcome, optimizer_s, whole_s);
    lanes_.after_step(whole_s, outcome.exposed_s, exchange, first.net && first.net->turn() == sync::Turn::in_line);
    if (const auto line = learners_.tune(group_, samples, whole_s); !line.empty()) {
      recorder_->message(line);
      prediction_->begin_again();  // another number of learners
    }
    const auto every = config_.checkpoint_every;
    if (every > 0 && place_.step % every == 0 && !strategy_->traits().own_pace) {
      not_training([&] { saving_.save(place_, std::nullopt); });
    }
    if (prediction_->due()) predict();
  }

  void predict() {
    auto& net = learners_.first().net;
    not_training([&] { prediction_->predict(net ? &*net : nullptr, static_cast<double>(samples_.size)); });
  }

  // Neither the time nor the bytes of it are training's.
  template <typename Use>
  void not_training(const Use& use) {
    strategy_->settle();
    stopping_.settle();
    meter_.leave_out(use);
  }

  double hold_up(double compute_s) const {
    return straggle_.delay(group_.rank(), place_.step, compute_s, static_cast<std::uint64_t>(config_.seed));
  }

  void on_bad(const std::vector<BadGradient>& found) {
    auto what = name_bad(found, place_.step + 1);
    if (config_.on_nan == "stop") {
      if (strategy_->traits().in_backward && all_.rank() != 0) throw Aborted(what);  // all know of it: one says so
      throw Error(what + "; lower --lr, set --clip, or let --on-nan skip leave such steps out");
    }
    recorder_->message(what + ": step skipped");
  }

  // What is under way has arrived.
  void settle() {
    for (auto& learner : learners_) learner->gradients->drain();
    strategy_->settle();
    stopping_.settle();
  }

  double last_lr() const { return rate_ * schedule_->lr(std::max<std::int64_t>(0, schedule_step() - 1)); }

  // All workers have come to the same place, to see how good the model is.
  void mark() {
    settle();
    if (marks_.gather(stopping_.asked())) stopping_.stop();
    take_over();
    meter_.pause(place_);
    const double lr = last_lr();
    std::optional<std::int64_t> taken;
    if (stopping_.stopped() || stopping_.all_made_their_steps()) taken = static_cast<std::int64_t>(marks_.samples());
    const bool epoch_ends = feeding_->to_mark(place_, taken);
    const auto& test = marks_.judge(place_);
    auto part = marks_.take();
    part.bytes_sent = place_.bytes_sent;
    part.consensus = strategy_->report().consensus;
    recorder_->mark(place_, test, lr, part, epoch_ends);
    saving_.save(place_, test.metrics.front());
    meter_.resume();  // what evaluation took is not training
    if (!stopping_.stopped() && !finished()) feeding_->announce(place_);
  }

  // Where who wrote has died, the first of those left goes on with it. After a sum.
  void take_over() {
    writer_ = workers_.writer();
    if (saving_.writes() || writer_ != workers_.rank()) return;
    saving_.start_writing();
    recorder_->take_over(place_.step);
    recorder_->message(fmt::format("worker {} writes from here on: those before it are gone", workers_.rank()));
  }

  // What is under way is taken in, all workers agree, and the last weights are judged and kept.
  Evaluation end() {
    stopping_.end();
    settle();
    marks_.samples() > 0 ? meter_.count_bytes(place_) : meter_.tell_bytes(place_);
    // The result is kept, and beside it what a run that goes on would have gone on with.
    const bool within = place_.position > 0;
    auto own = within || strategy_->traits().uses_weights ? saving_.own_states() : NamedTensors{};
    bool more = false;
    while (strategy_->drain()) {
      worker_.take_back();
      worker_.update({place_.step, last_lr()});
      more = true;
    }
    strategy_->finish();
    const auto test = marks_.judge_last(place_, more);  // ended within an epoch, or had nothing to do
    if (more || within) saving_.save(place_, test.metrics.front(), std::move(own));
    saving_.wait();
    return test;
  }

  bool finished() const {
    return place_.epoch >= config_.epochs || (config_.steps > 0 && place_.step >= config_.steps);
  }
  bool all_finished() { return stopping_.all_finished(finished(), marks_.samples()); }

  // Steps as the schedule counts them: by how much of the data was seen, so that it means the same after the number of
  // workers has changed.
  std::int64_t schedule_step() const {
    std::int64_t batch = samples_.batch * group_.size();
    return place_.epoch * steps_per_epoch_ + (place_.position + batch - 1) / batch;
  }

  // Bytes sent for training, by this worker.
  std::uint64_t traffic() {
    return held_->replicas().bytes_sent() - learners_.first().exchange->measuring_bytes() +
           strategy_->report().bytes_sent + held_->bytes_sent();
  }

  // Everyone begins with the first worker's weights, and goes on with what was kept; servers begin with it.
  void begin() {
    const bool at_servers = strategy_->traits().owns_step;
    if (options_.resume) {
      place_ = resuming_.load(*schedule_, workers_.rank() == 0);
      resumed_ = place_.step;
      meter_.go_on_from(place_);
      if (at_servers) resuming_.restore_own(place_);
    }
    if (auto& flat = learners_.first().flat) held_->replicas().broadcast(View(flat->replica().weights));
    strategy_->begin(learners_.replicas());
    worker_.take_back();
    if (!options_.resume || at_servers) return;
    resuming_.restore_own(place_);
    worker_.take_back();
  }

  void show_header() {
    recorder_->header(header_of(config_, work_, all_, workers_, *strategy_, learners_));
    if (!options_.mesh_why.empty()) recorder_->message(options_.mesh_why);
    for (const auto& line : resuming_.notes()) recorder_->message(line);
    if (resumed_) {
      recorder_->message(fmt::format("going on from step {}, epoch {}", place_.step, place_.epoch + 1));
    }
  }

  const Config& config_;
  Workload& work_;
  Communicator& all_;
  WorkerGroup& workers_;
  const TrainOptions& options_;
  const Straggle straggle_;
  const std::unique_ptr<HeldModel> held_;
  WorkerGroup& group_;  // of those who hold the same: the workers, where each has the whole model
  const data::SamplerOptions samples_;
  const std::int64_t steps_per_epoch_;
  const std::unique_ptr<RateSchedule> schedule_;
  const std::unique_ptr<sync::Strategy> strategy_;
  const double rate_;  // what the strategy multiplies the learning rate by
  Learners learners_;
  StepWorker worker_;
  LaneTrial lanes_;
  TrainingMeter meter_;
  JudgedModel judged_;
  Saving saving_;
  Resuming resuming_;
  Stopping stopping_;
  Marks marks_;
  std::optional<Feeding> feeding_;
  std::optional<Recorder> recorder_;
  std::optional<Prediction> prediction_;
  Accounts accounts_;
  Place place_;
  std::optional<std::int64_t> resumed_;  // the step it goes on from
  int writer_ = 0;                       // of checkpoints and all else, as far as this worker knows
};

}  // namespace

TrainResult train(const Config& config, Workload& work, Communicator& world, WorkerGroup& group,
                  const TrainOptions& options) {
  check_compress_rules(config, *work.model);
  return Run(config, work, world, group, options).run();
}

}  // namespace trireme::train
