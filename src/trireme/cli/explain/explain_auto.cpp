#include "trireme/cli/explain/explain_auto.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trireme/base/text/size.h"
#include "trireme/collective/cost/select.h"

namespace trireme::cli {
namespace {

// Why the choice fell as it did, in one sentence.
std::string reason(const AutoQuestion& question, const Request& request, const Tuning& tuning,
                   const std::vector<Candidate>& candidates) {
  const auto size = format_size(question.bytes);
  if (request.algorithm->pattern == Pattern::slots) {
    return fmt::format(
        "{} is no more than {}, up to which copying through the posts costs less than a second "
        "synchronization",
        size, format_size(tuning.inline_limit));
  }
  if (request.algorithm->pattern == Pattern::direct) {
    return fmt::format(
        "ranks share memory and {} is more than {}: each input is read once and each output written once{}; buffers "
        "that peers cannot reach go through stages of {}",
        size, format_size(tuning.inline_limit), request.store == Store::streaming ? ", past the cache" : "",
        format_size(request.stage_chunk));
  }
  std::string text = fmt::format("the least predicted time of {} algorithms", candidates.size());
  if (candidates.size() > 1 && candidates[0].algorithm == request.algorithm) {
    const auto& next = candidates[1];
    text += fmt::format("; {} comes next at {:.2f} times as much", next.algorithm->name,
                        next.seconds / candidates[0].seconds);
  }
  if (request.segment > 0) text += fmt::format("; long vectors go in segments of {}", format_size(request.segment));
  return text;
}

}  // namespace

void explain_auto(const AutoQuestion& question) {
  const bool shared = question.transport != "tcp";
  const auto kept = load_tuning(question.transport);
  const Tuning tuning = kept ? *kept : default_tuning(question.transport);
  Selector selector(tuning, question.ranks, shared, question.deterministic);
  Request request{.what = question.what, .dtype = DType::f32, .root = question.root, .count = question.bytes / 4};
  selector.choose(request);
  const auto candidates = selector.candidates(question.what, request.count, DType::f32, question.root);
  const auto why = reason(question, request, tuning, candidates);
  const auto from =
      kept ? fmt::format("{}, {}", tuning.source, tuning_path(question.transport))
           : fmt::format("defaults; 'trireme tune --transport {}' measures this machine", question.transport);
  if (question.json) {
    nlohmann::ordered_json out{{"collective", name(question.what)},
                               {"ranks", question.ranks},
                               {"bytes", question.bytes},
                               {"transport", question.transport},
                               {"algorithm", request.algorithm->name},
                               {"why", why},
                               {"costs", from}};
    for (const auto& candidate : candidates) {
      out["candidates"].push_back({{"algorithm", candidate.algorithm->name}, {"seconds", candidate.seconds}});
    }
    fmt::print("{}\n", out.dump());
    return;
  }
  fmt::print("{} of {} over {} rank{}, {}{}\n", name(question.what), format_size(question.bytes), question.ranks,
             question.ranks == 1 ? "" : "s", question.transport, question.deterministic ? ", deterministic" : "");
  fmt::print("picked   {}: {}\n", request.algorithm->name, request.algorithm->summary);
  fmt::print("because  {}\n", why);
  fmt::print("costs    {}\n", from);
  fmt::print("every rank picks the same: rank 0's costs are given to all when the job starts\n\npredicted\n");
  for (const auto& candidate : candidates) {
    fmt::print("{} {:<24} {}\n", candidate.algorithm == request.algorithm ? "→" : " ", candidate.algorithm->name,
               format_seconds(candidate.seconds));
  }
}

}  // namespace trireme::cli
