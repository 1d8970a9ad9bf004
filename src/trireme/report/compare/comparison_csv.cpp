#include <fmt/format.h>

#include <cmath>

#include "trireme/report/compare/comparison_summary.h"
#include "trireme/report/compare/comparison_text.h"

namespace trireme::train {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char letter : text) out += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return out + "\"";
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

}  // namespace

std::string comparison_csv(const Comparison& comparison) {
  double target = target_of(comparison);
  std::string out;
  for (const auto& varied : comparison.varied) out += quoted(varied.name) + ",";
  out += comparison.by.named(
      "seed,status,test_accuracy,best_accuracy,train_accuracy,target_accuracy,target_seconds,train_seconds,steps,"
      "epochs,"
      "samples_per_s,forward_ms,backward_ms,exposed_ms,optimizer_ms,other_ms,step_ms,communication_ms,overlap,"
      "bytes_sent,wait_s,compute_s,staleness_mean,staleness_max,consensus,target_bytes,target_steps,straggler,out,"
      "error\n");
  for (const auto& run : comparison.runs) {
    for (const auto& value : comparison.variants[run.variant].values) out += quoted(value) + ",";
    out += fmt::format("{},{}", run.seed, run.status);
    for (double value : {run.test_metric, run.best_metric, run.train_metric(), target, seconds_to(run, target),
                         run.train_seconds, run.steps, run.epochs, run.samples_per_second}) {
      out += "," + number(value);
    }
    bool timed = run.step.whole() > 0;
    for (double value : {run.step.forward, run.step.backward, run.step.exposed, run.step.optimizer, run.step.other,
                         run.step.whole(), run.step.communication, run.step.overlap()}) {
      out += "," + (timed ? number(value) : "");
    }
    for (double value : {run.bytes_sent, run.wait_s, run.compute_s, run.staleness_mean, run.staleness_max,
                         run.consensus, bytes_to(run, target), steps_to(run, target), run.straggler}) {
      out += "," + number(value);
    }
    out += fmt::format(",{},{}\n", quoted(run.out), quoted(run.error));
  }
  return out;
}

std::string comparison_curves_csv(const Comparison& comparison) {
  std::string out;
  for (const auto& varied : comparison.varied) out += quoted(varied.name) + ",";
  out += comparison.by.named(
      "seed,epoch,step,train_seconds,bytes_sent,test_accuracy,test_loss,train_accuracy,train_loss,consensus\n");
  for (const auto& run : comparison.runs) {
    if (!run.finished()) continue;
    std::string begin;
    for (const auto& value : comparison.variants[run.variant].values) begin += quoted(value) + ",";
    for (const auto& point : run.curve) {
      out += begin + std::to_string(run.seed);
      for (double value : {point.epoch, point.step, point.train_seconds, point.bytes_sent, point.test_metric,
                           point.test_loss, point.train_metric, point.train_loss, point.consensus}) {
        out += "," + number(value);
      }
      out += "\n";
    }
  }
  return out;
}

}  // namespace trireme::train
