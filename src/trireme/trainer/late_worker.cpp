#include "trireme/trainer/late_worker.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/data/loader.h"
#include "trireme/train/batch_feed.h"
#include "trireme/train/config/schedule.h"
#include "trireme/train/group/server_group.h"
#include "trireme/train/group/world_group.h"
#include "trireme/train/learner/learners.h"
#include "trireme/train/learner/run_parts.h"
#include "trireme/train/learner/step_worker.h"
#include "trireme/train/learner/strategy.h"
#include "trireme/train/learner/whole_model.h"

namespace trireme::train {
namespace {

class LateWorker {
 public:
  LateWorker(const Config& config, Workload& work, ps::Client& client, const volatile std::sig_atomic_t& stop,
             const std::function<void(std::string_view)>& say)
      : config_(config),
        stop_(stop),
        say_(say),
        world_(world_of_one()),
        alone_(world_),
        held_(work, world_, alone_),
        servers_(client, config),
        samples_(sampler_options(config, work, 0, static_cast<int>(config.workers))),
        steps_per_epoch_(data::ShardedSampler(samples_).steps_per_epoch()),
        schedule_(make_schedule(config.schedule,
                                schedule_options(config, work, steps_per_epoch_, static_cast<int>(config.workers)))),
        strategy_(make_strategy(config, *work.model, world_, &client, steps_per_epoch_)),
        rate_(pace_of(config, *strategy_).rate),
        clip_(own_clip(config, *strategy_, static_cast<int>(config.workers))),
        learners_(config, work, static_cast<int>(client.id()), *strategy_, held_),
        worker_(learners_, *strategy_, clip_),
        feed_(samples_, config.evals_per_epoch, [this](const WorkerGroup::Part& part) { return servers_.take(part); }) {
    if (!strategy_->traits().own_pace) {
      throw ConfigError(
          fmt::format("--join: {} deals out its batches beforehand; only ps-async has some for who comes "
                      "later",
                      config.strategy));
    }
  }

  LateWorkerReport run() {
    wait_for_job();
    strategy_->begin(learners_.replicas());
    worker_.take_back();
    worker_.on_bad = [this](const std::vector<BadGradient>& bad) {
      say_(name_bad(bad, report_.batches + 1) + ": nothing is pushed of it");
    };
    auto& work = learners_.first().work;
    const double begin = now_seconds();
    data::Loader loader(work.data.train, [this] { return next(); },
                        {.depth = 1, .ahead = [this] { return feed_.plenty(); }, .pinned = !work.device.is_cpu()});
    while (true) {
      auto item = loader.next();
      if (!item) {
        if (ended_) break;
        continue;  // a mark
      }
      step(std::move(*item));
    }
    strategy_->before_forward({});  // what was pushed last has arrived
    report_.seconds = now_seconds() - begin;
    return report_;
  }

 private:
  // Until the job has begun, and it is known that it is of the same settings.
  void wait_for_job() {
    const auto deadline = Deadline::in_seconds(config_.timeout);
    while (!servers_.part() && !servers_.over()) {
      if (deadline.passed()) {
        throw ConfigError(fmt::format(
            "--join: within {:g} s the job there has not shared out any batches of {} by --batch {}, --workers "
            "{}, --seed {} and --evals-per-epoch {}; give the flags that it has",
            config_.timeout, config_.data, config_.batch, config_.workers, config_.seed, config_.evals_per_epoch));
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  // Called by the loader's thread: the next batch of the part that is under way; nothing when it has no more, or nobody
  // here wants any.
  std::optional<data::Share> next() {
    while (stop_ == 0) {
      if (!between_) {  // nobody begins another part before this one has no more
        auto share = feed_.next();
        between_ = !share;
        return share;
      }
      if (const auto part = servers_.part(); part && *part > part_) {
        part_ = *part;
        feed_.seek_part(part_);
        between_ = false;
      } else if (servers_.over()) {
        break;
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
    ended_ = true;
    return std::nullopt;
  }

  void step(data::Item item) {
    const auto seen = (item.position - item.here) / (samples_.batch * samples_.workers);
    const sync::Step now{report_.batches, rate_ * schedule_->lr(item.epoch * steps_per_epoch_ + seen)};
    const auto samples = item.here;
    worker_.take({std::move(item)}, false);
    sync::run_step(*strategy_, worker_, now);
    worker_.finish();
    ++report_.batches;
    report_.samples += samples;
  }

  static constexpr std::chrono::milliseconds kPause{5};

  const Config& config_;
  const volatile std::sig_atomic_t& stop_;
  const std::function<void(std::string_view)>& say_;
  Communicator world_;
  WorldGroup alone_;  // nobody else is asked
  WholeModel held_;
  const PsLateWorker servers_;
  const data::SamplerOptions samples_;
  const std::int64_t steps_per_epoch_;
  std::unique_ptr<RateSchedule> schedule_;
  std::unique_ptr<sync::Strategy> strategy_;
  const double rate_, clip_;
  Learners learners_;
  StepWorker worker_;
  LateWorkerReport report_;
  // The loader's thread's.
  BatchFeed feed_;
  std::int64_t part_ = -1;
  bool between_ = true;              // no part is under way that this worker has not seen the end of
  std::atomic<bool> ended_ = false;  // nothing comes any more; read by the training thread
};

}  // namespace

LateWorkerReport help(const Config& config, Workload& work, ps::Client& client, const volatile std::sig_atomic_t& stop,
                      const std::function<void(std::string_view)>& say) {
  check_compress_rules(config, *work.model);
  return LateWorker(config, work, client, stop, say).run();
}

}  // namespace trireme::train
