#include "trireme/train/trainer.h"

#include <fmt/format.h>

#include <cmath>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/data/loader.h"
#include "trireme/train/accounts.h"
#include "trireme/train/checkpoints.h"
#include "trireme/train/evaluate.h"
#include "trireme/train/feed.h"
#include "trireme/train/header.h"
#include "trireme/train/learners.h"
#include "trireme/train/own_state.h"
#include "trireme/train/prediction.h"
#include "trireme/train/recorder.h"
#include "trireme/train/replica_crew.h"
#include "trireme/train/run_parts.h"
#include "trireme/train/schedule.h"
#include "trireme/train/server_state.h"
#include "trireme/train/state.h"
#include "trireme/train/step_worker.h"
#include "trireme/train/stop_question.h"
#include "trireme/train/straggle.h"
#include "trireme/train/strategy.h"

namespace trireme::train {
namespace {

// One run of one worker.
class Run {
 public:
  Run(const Config& config, Workload& work, Communicator& world, Crew& crew, const TrainOptions& options)
      : config_(config),
        work_(work),
        everyone_(world),
        workers_(crew),
        world_(options.mesh ? options.mesh->data() : world),
        replicas_(options.mesh ? std::make_unique<ReplicaCrew>(*options.mesh, crew) : nullptr),
        crew_(replicas_ ? *replicas_ : crew),
        options_(options),
        straggle_(config.straggle),
        samples_(sampler_options(config, work, crew_.rank(), crew_.size())),
        steps_per_epoch_(data::ShardedSampler(samples_).steps_per_epoch()),
        schedule_(make_schedule(config.schedule, schedule_options(config, steps_per_epoch_, crew_.size()))),
        body_(options.mesh ? std::make_unique<Body>(config, work, *options.mesh) : nullptr),
        strategy_(make_strategy(config, body_ ? body_->part() : *work.model, world_, options.client, steps_per_epoch_)),
        rate_(pace_of(config, *strategy_).rate),
        clip_(own_clip(config, *strategy_, crew_.size())),
        learners_(config, work, world_, crew_.rank(), *strategy_, body_.get()),
        worker_(learners_, *strategy_, clip_),
        lanes_(world_, strategy_->traits().in_backward) {
    straggle_.check_rank(crew_.size(), body_ ? "replicas" : "workers");
    worker_.hold_up = [this](double compute_s) { return hold_up(compute_s); };
    worker_.on_bad = [this](const std::vector<BadGradient>& found) { on_bad(found); };
    add_watchers();
    if (options.resume) resume();
    if (options.resume && strategy_->traits().owns_step) go_on();  // servers begin with it
    begin_strategy();
    if (options.resume && !strategy_->traits().owns_step) go_on();
    const auto total = schedule_options(config, steps_per_epoch_, crew_.size()).total_steps - place_.step;
    prediction_.emplace(config, world_, crew_, *strategy_, 4 * parameter_count(*work.model), total, options.predicted);
    start_feeding();
    recorder_.emplace(config, everyone_, workers_.rank(), resumed_, options.verbosity);
    recorder_->begin_at(from_seconds_);
    recorder_->set_chance(std::log(static_cast<double>(work.data.train->shape().classes)));
    if (workers_.rank() == 0) {
      checkpoints_.emplace(config.out, static_cast<int>(config.keep_last), /*keep_best=*/true);
      checkpoints_->forget_after(resumed_ ? place_.step : -1);
    }
  }

  TrainResult run() {
    show_header();
    while (!stopped_) {
      if (finished()) {
        if (!all_finished()) {
          mark();  // somebody else goes on, and has come to one
          continue;
        }
        if (apart_) mark();
        break;
      }
      if (auto item = next()) {
        step(std::move(*item));
      } else {
        (void)all_finished();
        mark();
      }
    }
    end();
    const auto report = strategy_->report();
    auto workers = accounts_.of_all(workers_, sent_, report);
    nlohmann::json mesh;
    if (body_) mesh = body_report();
    auto summary = recorder_->finish(place_, *test_, stopped_ ? "stopped" : "finished", workers, report, *prediction_,
                                     lanes_, mesh);
    return {summary, stopped_};
  }

 private:
  // From a batch, or one for each learner, to the next weights; then whoever watches is told.
  void step(data::Item first) {
    const double begin = last_ > 0 ? last_ : now_seconds();
    worker_.take(one_each(std::move(first)), asked_to_stop());
    const sync::Step now{place_.step, rate_ * schedule_->lr(schedule_step())};
    lanes_.before_step();
    const auto times = sync::run_step(*strategy_, worker_, now);
    auto outcome = worker_.finish();
    last_ = now_seconds();
    outcome.exposed_s += times.synchronization;
    outcome.communication_s += times.synchronization;
    test_.reset();
    ++place_.step;
    place_.position = worker_.items().back().position;
    place_.train_seconds += last_ - begin;
    heed_stop(outcome.stop, now.number);
    const auto exchange = learners_.first().exchange->times();
    const StepSeen seen = seen_of(outcome, exchange, now, times.optimizer, last_ - begin);
    for (const auto& watch : watchers_) watch(seen);
  }

  // What a step was, for those who watch.
  struct StepSeen {
    const StepOutcome& outcome;
    const ExchangeTimes& exchange;
    double lr = 0, optimizer_s = 0, whole_s = 0;
    double samples = 0, globally = 0;  // of this worker, of all
  };
  StepSeen seen_of(const StepOutcome& outcome, const ExchangeTimes& exchange, const sync::Step& now, double optimizer_s,
                   double whole_s) const {
    StepSeen seen{outcome, exchange, now.lr, optimizer_s, whole_s};
    for (const auto& item : worker_.items()) {
      seen.samples += static_cast<double>(item.here);
      seen.globally += static_cast<double>(item.globally);
    }
    return seen;
  }

  // In this order, after every step. None of them moves a weight.
  void add_watchers() {
    watchers_ = {[this](const StepSeen& seen) { sum_up(seen); },
                 [this](const StepSeen& seen) {
                   accounts_.step(seen.outcome.own_s() + seen.optimizer_s, seen.outcome.exposed_s);
                 },
                 [this](const StepSeen& seen) {
                   const StepProgress progress{static_cast<int>(place_.epoch) + 1, static_cast<int>(config_.epochs),
                                               schedule_step() - place_.epoch * steps_per_epoch_, steps_per_epoch_};
                   recorder_->step(seen.outcome, seen.exchange, place_, seen.globally, progress, seen.lr,
                                   seen.optimizer_s, seen.whole_s);
                 },
                 [this](const StepSeen& seen) { prediction_->step(seen.outcome, seen.optimizer_s, seen.whole_s); },
                 [this](const StepSeen& seen) {
                   const auto& net = learners_.first().net;
                   lanes_.after_step(seen.whole_s, seen.outcome.exposed_s, seen.exchange,
                                     net && net->turn() == sync::Turn::in_line);
                 },
                 [this](const StepSeen& seen) { tune_learners(seen); },
                 [this](const StepSeen&) {
                   const auto every = config_.checkpoint_every;
                   if (every > 0 && place_.step % every == 0 && !strategy_->traits().own_pace) {
                     not_training([&] { save(std::nullopt); });
                   }
                 },
                 [this](const StepSeen&) {
                   if (prediction_->due()) predict();
                 }};
  }

  // Exchanged in backward, what was told is already of all workers: each counts its share.
  void sum_up(const StepSeen& seen) {
    const auto& outcome = seen.outcome;
    const bool of_all = strategy_->traits().in_backward;
    const double share = of_all ? seen.samples / static_cast<double>(worker_.items().front().globally) : 1;
    part_.loss += outcome.loss * seen.samples;
    part_.correct += outcome.accuracy * outcome.scored * share;
    part_.scored += outcome.scored * share;
    part_.samples += seen.samples;
  }

  void tune_learners(const StepSeen& seen) {
    const auto line = learners_.tune(crew_, seen.samples, seen.whole_s);
    if (line.empty()) return;
    recorder_->message(line);
    prediction_->begin_again();  // another number of learners
  }

  void predict() {
    const auto& net = learners_.first().net;
    not_training([&] { prediction_->predict(net ? &*net : nullptr, static_cast<double>(samples_.size)); });
  }

  // Neither the time nor the bytes of it are training's.
  template <typename Use>
  void not_training(const Use& use) {
    strategy_->settle();
    const auto counted_from = before_, sent = traffic();
    use();
    before_ = counted_from + traffic() - sent;
    last_ = now_seconds();
  }

  std::optional<data::Item> next() { return std::exchange(mark_ahead_, false) ? std::nullopt : loader_->next(); }

  // As many batches as there are learners, or as there are before the next mark.
  std::vector<data::Item> one_each(data::Item first) {
    std::vector<data::Item> items;
    items.push_back(std::move(first));
    while (items.size() < learners_.size() && !mark_ahead_) {
      if (auto item = loader_->next()) {
        items.push_back(std::move(*item));
      } else {
        mark_ahead_ = true;
      }
    }
    return items;
  }

  double hold_up(double compute_s) const {
    return straggle_.delay(crew_.rank(), place_.step, compute_s, static_cast<std::uint64_t>(config_.seed));
  }

  void on_bad(const std::vector<BadGradient>& found) {
    auto what = name_bad(found, place_.step + 1);
    if (config_.on_nan == "stop") {
      if (strategy_->traits().in_backward && everyone_.rank() != 0) throw Aborted(what);  // all know of it: one says so
      throw Error(what + "; lower --lr, set --clip, or let --on-nan skip leave such steps out");
    }
    recorder_->message(what + ": step skipped");
  }

  bool asked_to_stop() const { return options_.stop && *options_.stop != 0; }

  // All stop after the same step, or, at their own pace, when what was given to them is done.
  void heed_stop(bool told, std::int64_t step) {
    if (strategy_->traits().in_backward) {
      stopped_ = told;
    } else if (strategy_->traits().own_pace) {
      if (asked_to_stop() && !std::exchange(said_stop_, true)) crew_.stop_giving();
    } else {
      stopped_ = stop_question_.answer(crew_);
      if (!stopped_ && stop_question_.due(step, strategy_->meets(step))) {
        stop_question_.ask(crew_, asked_to_stop(), step);
      }
    }
  }

  // At their own pace some have made all their steps when others come to a mark. So all ask before one, and before the
  // end; if some went on alone since the last mark, another one brings all to the same place.
  bool all_finished() {
    if (!strategy_->traits().own_pace) return finished();
    std::array counts{finished() ? 1.0 : 0.0, 1.0, part_.samples};
    crew_.sum(counts);
    ended_ = counts[0] == counts[1];
    uneven_ = uneven_ || (counts[0] > 0 && !ended_);
    apart_ = uneven_ && counts[2] > 0;
    return ended_;
  }

  // All workers have come to the same place, to see how good the model is.
  void mark() {
    for (auto& learner : learners_) learner->gradients->drain();
    strategy_->settle();
    std::array sums{part_.loss, part_.correct, part_.scored, part_.samples, asked_to_stop() ? 1.0 : 0.0};
    crew_.sum(sums);
    if (last_ > 0) place_.train_seconds += now_seconds() - last_;
    sent_ += traffic() - before_;
    place_.bytes_sent = from_bytes_ + sent_;
    part_ = {sums[0], sums[1], sums[2], sums[3], place_.bytes_sent};
    stopped_ = stopped_ || sums[4] > 0;
    const double lr = rate_ * schedule_->lr(std::max<std::int64_t>(0, schedule_step() - 1));
    // Short of the mark if they were stopped, or have made all their steps. What a worker took that has died since
    // nobody will see in this epoch.
    std::int64_t taken = feed_->mark_after(place_from_);
    if (stopped_ || ended_) taken = std::min(taken, place_from_ + static_cast<std::int64_t>(sums[3]));
    const bool epoch_ends = taken >= samples_.size;
    place_.position = epoch_ends ? 0 : taken;
    if (epoch_ends) ++place_.epoch;
    place_from_ = place_.position;
    judge();
    part_.consensus = strategy_->report().consensus;
    recorder_->mark(place_, *test_, lr, part_, epoch_ends);
    part_ = {};
    save(test_->accuracy);
    last_ = 0;  // what evaluation took is not training
    before_ = traffic();
    if (!stopped_ && !finished()) announce();
  }

  void judge() {
    test_ = measure();
    schedule_->observe(test_->accuracy);
    consider();
  }

  // Whether that is the best so far, and what was aimed at.
  void consider() {
    if (config_.target > 0 && place_.target_seconds < 0 && test_->accuracy >= config_.target) {
      place_.target_seconds = place_.train_seconds;
    }
    place_.best_accuracy = std::max(place_.best_accuracy, test_->accuracy);
  }

  // What is under way is taken in, all workers agree, and the last weights are judged and kept.
  void end() {
    if (strategy_->traits().own_pace) crew_.announce(std::nullopt);
    (void)stop_question_.answer(crew_);
    for (auto& learner : learners_) learner->gradients->drain();
    strategy_->settle();
    if (part_.samples > 0) sent_ += traffic() - before_;
    place_.bytes_sent = from_bytes_ + sent_;
    // The result is kept, and beside it what a run that goes on would have gone on with.
    auto own = place_.position > 0 || strategy_->traits().uses_weights ? own_states() : NamedTensors{};
    bool more = false;
    while (strategy_->drain()) {
      worker_.take_back();
      worker_.update({place_.step, rate_ * schedule_->lr(std::max<std::int64_t>(0, schedule_step() - 1))});
      more = true;
    }
    strategy_->finish();
    if (more || !test_) test_ = measure();  // ended within an epoch, or had nothing to do
    consider();
    if (more || place_.position > 0) save(test_->accuracy, std::move(own));
    if (checkpoints_) checkpoints_->wait();
  }

  // While `use` runs the model is what the strategy says it is.
  template <typename Use>
  void with_the_model(const Use& use) {
    auto& learner = learners_.first();
    if (!strategy_->traits().uses_weights) {
      learner.net && !learner.exchanged ? learner.net->average_buffers()
                                        : average_buffers(learner.model(), crew_, &world_);
      return use();
    }
    average_buffers(learner.model(), crew_, body_ ? &world_ : nullptr);
    worker_.lend();
    shown_.resize(learner.flat->replica().weights.size());
    strategy_->model(shown_);
    Flat::Instead instead(*learner.flat, shown_);
    use();
  }

  // Shared out over the world; where workers have no world in common, the first one does it all.
  Evaluation measure() {
    Evaluation found;
    if (body_) {
      with_the_model([&] { found = body_->evaluate(*work_.data.test); });
      return found;
    }
    with_the_model([&] {
      if (world_.size() == crew_.size() || crew_.rank() == 0) {
        found = evaluate(*learners_.first().work.model, *work_.data.test, work_.device, &world_);
      }
    });
    if (world_.size() < crew_.size()) {
      std::array sums{found.loss, found.accuracy, static_cast<double>(found.samples)};
      crew_.sum(sums);
      found = {sums[0], sums[1], static_cast<std::int64_t>(sums[2])};
    }
    return found;
  }

  bool finished() const {
    return place_.epoch >= config_.epochs || (config_.steps > 0 && place_.step >= config_.steps);
  }

  // Steps as the schedule counts them: by how much of the data was seen, so that it means the same after the number of
  // workers has changed.
  std::int64_t schedule_step() const {
    std::int64_t batch = samples_.batch * crew_.size();
    return place_.epoch * steps_per_epoch_ + (place_.position + batch - 1) / batch;
  }

  // Bytes sent for training, by this worker.
  std::uint64_t traffic() {
    return world_.bytes_sent() - learners_.first().exchange->measuring_bytes() + strategy_->report().bytes_sent +
           (body_ ? body_->bytes_sent() : 0);
  }

  Station station() const {
    const bool cut = body_ && !body_->gathers_batch();
    return {crew_.rank(), crew_.size(), cut ? options_.mesh->place().tensor : 0,
            cut ? options_.mesh->shape().tensor : 1};
  }

  // What workers have of their own, all of it at the first one; neither its time nor its bytes are training's.
  // Collective. What servers have is read with the model, and not before.
  NamedTensors own_states() {
    const bool some = strategy_->traits().uses_weights || !strategy_->coded().empty();
    if (!some || strategy_->traits().owns_step) return {};
    const auto sent = traffic();
    const double begin = now_seconds();
    worker_.lend();
    auto all = gather_tensors(everyone_, own_state(*strategy_, learners_, station()));
    before_ += traffic() - sent;
    if (last_ > 0) last_ += now_seconds() - begin;
    return all;
  }

  void save(std::optional<double> metric) { save(metric, own_states()); }
  void save(std::optional<double> metric, NamedTensors own) {
    with_the_model([&] {
      auto& learner = learners_.first();
      if (!checkpoints_ && !body_) return;
      if (strategy_->traits().owns_step) {
        own = own_state(*strategy_, learners_, station());
        to_optimizer(*strategy_, learner);
      }
      if (strategy_->traits().owns_step && body_) own = gather_tensors(everyone_, own);
      auto kept = keep(learner.model_state(), learner.optimizer_state(), *schedule_, place_, config_,
                       data::look_of(work_.data));
      if (body_) kept.tensors = body_->whole(kept.tensors);
      if (!checkpoints_) return;
      kept.tensors.insert(kept.tensors.end(), own.begin(), own.end());
      checkpoints_->save(place_.step, kept.tensors, kept.metadata, metric);
    });
  }

  void resume() {
    LoadedCheckpoint loaded;
    file_ = config_.out;
    if (everyone_.rank() == 0) {
      auto search = latest_checkpoint(config_.out);
      if (!search.found) {
        throw DataError(fmt::format("{}: no whole checkpoint to resume from{}", config_.out,
                                    search.skipped.empty() ? "" : "; " + search.skipped.front()));
      }
      file_ = search.found->path.string();
      loaded = load_checkpoint(search.found->path);
      if (workers_.rank() == 0) {  // steps are lost: told also where a run is to be quiet
        for (const auto& line : search.skipped) fmt::print(stderr, "trireme: {}\n", line);
      }
    }
    own_ = deal(loaded, everyone_, station());
    share(loaded, everyone_);
    own_.same_strategy = made_with(loaded, file_, *sync::Choice::parse(config_.strategy).kind);
    place_ = learners_.first().load(*schedule_, loaded, file_);
    resumed_ = place_.step;
    from_seconds_ = place_.train_seconds;
    from_bytes_ = place_.bytes_sent;
  }

  // Everyone begins with the first worker's weights.
  void begin_strategy() {
    if (auto& flat = learners_.first().flat) world_.broadcast(View(flat->replica().weights));
    strategy_->begin(learners_.replicas());
    worker_.take_back();
  }

  // With what was kept besides the model; what will not be as it would have been is told.
  void go_on() {
    if (strategy_->traits().owns_step) from_optimizer(learners_.first(), *strategy_, place_.step);
    for (auto& line : restore(std::exchange(own_, {}), *strategy_, learners_, station(), file_)) {
      notes_.push_back(std::move(line));
    }
    if (strategy_->traits().owns_step && !compress::Rules(config_.compress, config_.compress_rule).none()) {
      notes_.push_back("a parameter server keeps no errors that codecs carried: they begin from nothing");
    }
    if (body_ && !body_->pipeline().synchronous()) {
      notes_.push_back(
          fmt::format("{}: what was under way when the run was stopped was ended first; steps differ from "
                      "those of a run that was not",
                      config_.pipeline));
    }
    if (!strategy_->traits().owns_step) worker_.take_back();
  }

  void start_feeding() {
    Feed::Take take;
    if (strategy_->traits().own_pace) take = [this](const Crew::Part& part) { return crew_.take(part); };
    auto samples = samples_;
    samples.together = strategy_->together() * samples.batch * samples.workers;
    feed_.emplace(samples, config_.evals_per_epoch, take);
    feed_->seek(place_.epoch, place_.position);
    if (take) crew_.start_giving(feed_->part_at(place_.epoch, place_.position));
    announce();
    place_from_ = place_.position;
    const auto own = std::make_shared<Feed>(*feed_);
    data::LoaderOptions options{.ahead = [own] { return own->plenty(); }, .pinned = !work_.device.is_cpu()};
    if (take) options.depth = 1;  // what is waiting here nobody else can take
    loader_ = std::make_unique<data::Loader>(
        work_.data.train, [own] { return own->next(); }, options);
    before_ = traffic();
  }

  // To workers that join later.
  void announce() {
    if (strategy_->traits().own_pace) crew_.announce(feed_->part_at(place_.epoch, place_.position));
  }

  // What the mesh cost, told and for run.json.
  nlohmann::json body_report() {
    auto report = body_->report(place_.train_seconds - from_seconds_);
    for (const auto& line : report.lines) recorder_->message(line);
    return report.numbers;
  }

  void show_header() {
    recorder_->header(header_of(config_, work_, everyone_, workers_, *strategy_, learners_));
    if (!options_.mesh_why.empty()) recorder_->message(options_.mesh_why);
    for (const auto& line : notes_) recorder_->message(line);
    if (resumed_) {
      recorder_->message(fmt::format("going on from step {}, epoch {}", place_.step, place_.epoch + 1));
    }
  }

  const Config& config_;
  Workload& work_;
  Communicator& everyone_;
  Crew& workers_;
  Communicator& world_;  // of the replicas of what this worker holds
  std::unique_ptr<ReplicaCrew> replicas_;
  Crew& crew_;  // of the replicas: the workers, where each has the whole model
  const TrainOptions& options_;
  const Straggle straggle_;
  const data::SamplerOptions samples_;
  const std::int64_t steps_per_epoch_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Body> body_;  // where the model is on a mesh
  std::unique_ptr<sync::Strategy> strategy_;
  const double rate_;  // what the strategy multiplies the learning rate by
  const double clip_;  // most norm of gradients; 0: any
  Learners learners_;
  StepWorker worker_;
  LaneTrial lanes_;
  std::optional<Feed> feed_;  // as it was at the start; the loader has its own
  std::unique_ptr<data::Loader> loader_;
  std::optional<Recorder> recorder_;
  std::optional<Prediction> prediction_;
  std::optional<Checkpoints> checkpoints_;  // the first worker only
  Accounts accounts_;
  std::vector<std::function<void(const StepSeen&)>> watchers_;
  Place place_;
  std::int64_t place_from_ = 0;     // the position at the last mark
  Recorder::Part part_;             // since the last mark, this worker's
  std::optional<Evaluation> test_;  // of the weights as they are
  std::vector<float> shown_;        // the model that is judged and kept
  std::uint64_t sent_ = 0, before_ = 0;
  std::optional<std::int64_t> resumed_;
  std::string file_;                // the checkpoint it goes on from
  OwnStates own_;                   // what that keeps of workers
  std::vector<std::string> notes_;  // about it
  double from_seconds_ = 0;         // of training, before this process
  std::uint64_t from_bytes_ = 0;    // sent by then
  double last_ = 0;                 // when the last step ended; 0: nothing to count from
  StopQuestion stop_question_;
  bool mark_ahead_ = false, said_stop_ = false, stopped_ = false;
  bool ended_ = false, uneven_ = false, apart_ = false;  // as all_finished() found it
};

}  // namespace

TrainResult train(const Config& config, Workload& work, Communicator& world, Crew& crew, const TrainOptions& options) {
  check_compress_rules(config, *work.model);
  return Run(config, work, world, crew, options).run();
}

}  // namespace trireme::train
