#include "trireme/report/recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <map>

#include "trireme/base/clock.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/grad/torch_hardware.h"
#include "trireme/report/run_file.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/group/gather_text.h"

namespace trireme::train {
namespace {

double left_together(Communicator& world) {
  world.barrier();
  return now_seconds();
}

std::map<std::string, std::string> hardware_of_run() {
  const auto values = torch_hardware();
  return {values.begin(), values.end()};
}

}  // namespace

Recorder::Recorder(const Config& config, const Objective& objective, Communicator& world, int rank,
                   std::optional<std::int64_t> resumed, Verbosity verbosity)
    : config_(config),
      objective_(objective),
      world_(world),
      rank_(rank),
      folder_(config.out),
      writes_(rank == 0),
      resumed_(resumed),
      verbosity_(verbosity),
      zero_(left_together(world)) {
  if (writes_) open(resumed);
}

void Recorder::open(std::optional<std::int64_t> after) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw_write_error(folder_, error.value());
  metrics_ = std::make_unique<MetricsFile>(folder_ / "metrics.jsonl", after);
  events_ = std::make_unique<EventWriter>(folder_, after);
  progress_ = std::make_unique<Progress>(std::cout, screen_of(STDOUT_FILENO), verbosity_);
  write_run_file(folder_ / "run.json",
                 {{"status", "running"}, {"config", to_json(config_)}, {"hardware", hardware_of_run()}});
}

void Recorder::take_over(std::int64_t step) {
  writes_ = true;
  open(step);
}

void Recorder::header(const RunHeader& header) {
  if (writes_) progress_->header(header);
}

void Recorder::message(std::string_view line) {
  if (writes_) progress_->message(line);
}

void Recorder::step(const StepOutcome& outcome, const ExchangeTimes& exchange, const Place& place, double samples,
                    const StepProgress& progress, double lr, double optimizer_s, double whole_s) {
  if (first_step_ < 0) first_step_ = place.step;
  ++steps_;
  seconds_ += whole_s;
  samples_ += samples;
  sums_.forward += outcome.forward_s;
  sums_.backward += outcome.backward_s;
  sums_.communication += outcome.communication_s;
  sums_.exposed += outcome.exposed_s;
  sums_.optimizer += optimizer_s;
  sums_.other += std::max(0.0, whole_s - outcome.forward_s - outcome.backward_s - outcome.exposed_s - optimizer_s);

  // The first steps are not yet as the others: buckets are still being planned.
  constexpr std::int64_t kSettled = 10;
  if (std::int64_t at = place.step - first_step_ - kSettled; at >= 0 && at < config_.trace_steps) {
    trace(outcome, exchange, optimizer_s, place.step);
  }
  if (!writes_) return;
  divergence_.step(outcome.loss);
  auto shown = progress;
  shown.samples_per_second = samples_ / std::max(seconds_, 1e-9);
  shown.loss = outcome.loss;
  progress_->step(shown);
  if (place.step % config_.log_every == 0) {
    nlohmann::json line{{"step", place.step},
                        {"epoch", place.epoch},
                        {"loss", outcome.loss},
                        {"lr", lr},
                        {"samples_per_s", samples_ / std::max(seconds_, 1e-9)},
                        {"step_ms", 1e3 * whole_s},
                        {"forward_ms", 1e3 * outcome.forward_s},
                        {"backward_ms", 1e3 * outcome.backward_s},
                        {"optimizer_ms", 1e3 * optimizer_s},
                        {"exposed_ms", 1e3 * outcome.exposed_s},
                        {"train_seconds", place.train_seconds}};
    const auto& key = objective_.first().key;
    const auto value = trained(outcome.score);
    if (value) line[key] = *value;
    metrics_->append(line);
    events_->scalar("train/loss", outcome.loss, place.step);
    if (value) events_->scalar("train/" + key, *value, place.step);
    events_->scalar("train/lr", lr, place.step);
    events_->scalar("speed/samples_per_s", samples_ / std::max(seconds_, 1e-9), place.step);
  }
}

void Recorder::trace(const StepOutcome& outcome, const ExchangeTimes& exchange, double optimizer_s, std::int64_t step) {
  auto event = [&](std::string name, const char* lane, double begin, double seconds,
                   std::vector<std::pair<std::string, double>> args) {
    args.emplace_back("step", static_cast<double>(step));
    traced_.push_back({std::move(name), lane, rank_, lane, begin - zero_, seconds, std::move(args)});
  };
  double backward = outcome.begin + outcome.forward_s;
  event("forward", "compute", outcome.begin, outcome.forward_s, {});
  double whole_backward = outcome.held_up_s + outcome.backward_s + outcome.exposed_s;
  event("backward", "compute", backward, whole_backward, {{"exposed_ms", 1e3 * outcome.exposed_s}});
  event("optimizer", "compute", backward + whole_backward, optimizer_s, {});
  for (std::size_t b = 0; b < exchange.buckets.size(); ++b) {
    const auto& bucket = exchange.buckets[b];
    event(fmt::format("bucket {}", b), "communication", bucket.begin, bucket.end - bucket.begin,
          {{"bytes", static_cast<double>(bucket.bytes)},
           {"gradients", bucket.gradients},
           {"waited_ms", 1e3 * (bucket.begin - bucket.ready)}});
  }
}

void Recorder::mark(const Place& place, const Evaluation& test, double lr, const Part& part, bool epoch_ends) {
  epoch_.loss += part.loss;
  epoch_.score.sum += part.score.sum;
  epoch_.score.of += part.score.of;
  epoch_.samples += part.samples;
  if (writes_) {
    nlohmann::json line{{"step", place.step},
                        {"epoch", place.epoch},
                        {"train_loss", part.loss / std::max(part.samples, 1.0)},
                        {"test_loss", test.loss},
                        {"train_seconds", place.train_seconds},
                        {"bytes_sent", part.bytes_sent}};
    if (const auto value = trained(part.score)) line["train_" + objective_.first().key] = *value;
    for (std::size_t k = 0; k < test.metrics.size(); ++k) {
      line["test_" + objective_.metrics[k].kind->key] = test.metrics[k];
    }
    if (part.consensus >= 0) line["consensus"] = part.consensus;
    metrics_->append(line);
  }
  if (epoch_ends) end_epoch(place, test, lr);
}

void Recorder::end_epoch(const Place& place, const Evaluation& test, double lr) {
  EpochRow row{static_cast<int>(place.epoch), static_cast<int>(config_.epochs)};
  row.train_loss = epoch_.loss / std::max(epoch_.samples, 1.0);
  const auto& first = objective_.first();
  row.metric = first.title;
  if (const auto value = trained(epoch_.score)) row.train_metric = first.text(*value);
  row.test_metric = first.text(test.metrics.front());
  row.lr = lr;
  row.seconds = place.train_seconds - epoch_begin_s_;
  row.samples_per_second = epoch_.samples / std::max(row.seconds, 1e-9);
  epoch_ = {};
  epoch_begin_s_ = place.train_seconds;
  if (!writes_) return;
  progress_->epoch(row);
  events_->scalar("epoch/train_loss", row.train_loss, place.step);
  events_->scalar("epoch/test_loss", test.loss, place.step);
  for (std::size_t k = 0; k < test.metrics.size(); ++k) {
    events_->scalar("epoch/test_" + objective_.metrics[k].kind->key, test.metrics[k], place.step);
  }
}

std::optional<double> Recorder::trained(const Score& score) const {
  const auto* metric = objective_.while_training();
  if (!metric) return std::nullopt;
  return metric->value(std::array{score.sum, score.of});
}

void Recorder::write_trace_of_all() {
  if (config_.trace_steps == 0) return;
  nlohmann::json mine = nlohmann::json::array();
  for (const auto& event : traced_) {
    mine.push_back({event.name, event.category, event.rank, event.lane, event.begin_s, event.duration_s, event.args});
  }
  auto texts = gather_text(world_, mine.dump());
  if (!writes_) return;
  std::vector<TraceEvent> all;
  for (const auto& text : texts) {
    for (const auto& row : nlohmann::json::parse(text)) {
      all.push_back({row[0], row[1], row[2], row[3], row[4], row[5], row[6]});
    }
  }
  write_trace(folder_ / "trace.json", all);
}

nlohmann::json Recorder::finish(const Place& place, const Evaluation& test, std::string_view status,
                                const std::vector<WorkerAccount>& workers, const sync::Report& report,
                                const Prediction& prediction, const LaneTrial& lanes, const nlohmann::json& mesh) {
  write_trace_of_all();
  if (!writes_) return {};
  StepBreakdown mean = sums_;
  double scale = 1e3 / static_cast<double>(std::max<std::int64_t>(steps_, 1));
  for (double* part :
       {&mean.forward, &mean.backward, &mean.communication, &mean.exposed, &mean.optimizer, &mean.other}) {
    *part *= scale;
  }
  double rate = samples_ / std::max(seconds_, 1e-9);
  nlohmann::json summary{{"test_loss", test.loss},
                         {"loss", objective_.loss_text},
                         {"metric", objective_.first().key},
                         {"train_seconds", place.train_seconds},
                         {"steps", place.step},
                         {"epochs", place.epoch},
                         {"samples_per_s", rate},
                         {"breakdown_ms",
                          {{"forward", mean.forward},
                           {"backward", mean.backward},
                           {"communication", mean.communication},
                           {"exposed", mean.exposed},
                           {"optimizer", mean.optimizer},
                           {"other", mean.other},
                           {"step", mean.whole()}}},
                         {"overlap", mean.overlap()},
                         {"strategy", config_.strategy},
                         {"compress", config_.compress},
                         {"workers", nlohmann::json::array()}};
  std::vector<std::pair<std::string, std::string>> shown;
  for (std::size_t k = 0; k < test.metrics.size(); ++k) {
    const auto& [kind, metric, asked] = objective_.metrics[k];
    summary["test_" + kind->key] = test.metrics[k];
    if (asked) shown.emplace_back("test " + kind->title, kind->text(test.metrics[k]));
  }
  for (const auto& [key, value] : place.best) summary["best_" + key] = value;
  std::uint64_t sent = 0, dense = 0;
  for (const auto& account : workers) {
    summary["workers"] += nlohmann::json(to_json(account));
    sent += account.bytes_sent;
    dense += account.bytes_dense;
  }
  if (resumed_) summary["resumed_step"] = *resumed_;
  summary["bytes_sent"] = sent;
  summary["bytes_dense"] = dense;
  if (report.compressed) {
    summary["compression"] = to_json(*report.compressed);
    summary["compression"]["ratio"] = sent > 0 ? static_cast<double>(dense) / static_cast<double>(sent) : 1.0;
  }
  if (report.sparse) summary["sparse"] = to_json(*report.sparse);
  if (report.consensus >= 0) summary["consensus"] = report.consensus;
  if (!mesh.is_null()) summary["mesh"] = mesh;
  prediction.add_to(summary);
  lanes.add_to(summary);
  // Stages differ by what they hold, not by who is slow.
  auto straggler = mesh.contains("bubble") ? std::nullopt : persistent_straggler(workers);
  summary["straggler"] = straggler ? nlohmann::json(straggler->rank) : nlohmann::json(nullptr);
  if (config_.target > 0) {
    summary["target_seconds"] =
        place.target_seconds >= 0 ? nlohmann::json(place.target_seconds) : nlohmann::json(nullptr);
  }
  const auto diverged = divergence_.verdict(test.loss);
  if (!diverged.empty()) summary["diverged"] = diverged;
  write_run_file(
      folder_ / "run.json",
      {{"status", status}, {"config", to_json(config_)}, {"hardware", hardware_of_run()}, {"summary", summary}});
  std::vector<std::string> files{"run.json", "metrics.jsonl"};
  if (config_.trace_steps > 0) files.push_back("trace.json");
  if (workers.size() > 1 &&
      (straggler || !sync::Choice::parse(config_.strategy).traits().in_backward || !config_.straggle.empty())) {
    progress_->table(workers_table(workers, report.consensus));
  }
  if (report.compressed) progress_->message(compression_line(workers, *report.compressed));
  if (report.sparse) progress_->message(sparse_line(workers, *report.sparse));
  if (straggler) progress_->message(straggler->text());
  progress_->message(prediction.line());
  if (const auto line = lanes.line(); !line.empty()) progress_->message(line);
  progress_->summary({mean, shown, place.train_seconds, place.step, rate, config_.out, files, resumed_});
  if (!diverged.empty()) fmt::print(stderr, "trireme: {}\n", diverged);  // also where the run is quiet
  summary["out"] = config_.out;
  summary["status"] = status;
  return summary;
}

}  // namespace trireme::train
