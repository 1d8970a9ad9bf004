#include "trireme/cluster/diff/step_account.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "trireme/base/text/json_file.h"
#include "trireme/cluster/diff/trace_shares.h"

namespace trireme::cluster {
namespace {

using JsonPlace = JsonFile::Place;

template <typename T>
struct Named {
  const char* key;
  double T::*member;
};
constexpr std::array kAccountParts{Named<StepAccount>{"forward", &StepAccount::forward_ms},
                                   Named<StepAccount>{"backward", &StepAccount::backward_ms},
                                   Named<StepAccount>{"communication", &StepAccount::communication_ms},
                                   Named<StepAccount>{"exposed", &StepAccount::exposed_ms},
                                   Named<StepAccount>{"optimizer", &StepAccount::optimizer_ms},
                                   Named<StepAccount>{"other", &StepAccount::other_ms}};
constexpr std::array kShares{Named<ExchangeShares>{"latency", &ExchangeShares::latency},
                             Named<ExchangeShares>{"bandwidth", &ExchangeShares::bandwidth},
                             Named<ExchangeShares>{"queueing", &ExchangeShares::queueing},
                             Named<ExchangeShares>{"waiting", &ExchangeShares::waiting},
                             Named<ExchangeShares>{"coding", &ExchangeShares::coding}};

void read_breakdown(const JsonFile& file, const JsonPlace& place, StepAccount& account) {
  for (const auto& [key, member] : kAccountParts) account.*member = file.number(place / key);
  account.step_ms =
      account.forward_ms + account.backward_ms + account.exposed_ms + account.optimizer_ms + account.other_ms;
  if (file.has(place / "step")) account.step_ms = file.number(place / "step");
}

// Of the workers: what they sent in a step, and how unevenly they computed.
void read_workers(const JsonFile& file, const JsonPlace& place, StepAccount& account) {
  if (!file.has(place / "workers")) return;
  const auto& workers = file.array(place / "workers");
  account.workers = static_cast<int>(workers.size());
  double sum = 0, most = 0, steps = 0;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const JsonPlace one = place / "workers" / i;
    const double own_steps = std::max(1.0, file.number(one / "steps"));
    const double ms = 1e3 * file.number(one / "compute_s") / own_steps;
    sum += ms;
    most = std::max(most, ms);
    steps = std::max(steps, own_steps);
  }
  if (workers.empty()) return;
  account.uneven_ms = most - sum / static_cast<double>(workers.size());
  if (file.has(place / "bytes_sent")) account.bytes_per_step = file.number(place / "bytes_sent") / steps;
}

// What predicted.json and a run's summary have in common.
void read_summary(const JsonFile& file, const JsonPlace& place, StepAccount& account) {
  read_workers(file, place, account);
  if (file.has(place / "strategy")) account.strategy = file.text(place / "strategy");
  if (file.has(place / "compress")) account.compress = file.text(place / "compress");
  if (!file.has(place / "exchange_ms")) return;
  ExchangeShares shares;
  for (const auto& [key, member] : kShares) shares.*member = file.number(place / "exchange_ms" / key);
  account.exchange = shares;
}

void read_trace(const std::string& run, const JsonFile& file, const JsonPlace& summary, StepAccount& account) {
  const auto trace = std::filesystem::path(run).parent_path() / "trace.json";
  std::error_code error;
  if (!std::filesystem::exists(trace, error)) return;
  account.exchange = shares_of_trace(read_text(trace.string(), std::uint64_t{1} << 30), trace.string());
  const JsonPlace coded = summary / "compression";
  if (!account.exchange || !file.has(coded)) return;
  const double steps = std::max(1.0, file.number(summary / "steps"));
  const double coding = 1e3 * (file.number(coded / "encode_s") + file.number(coded / "decode_s")) / steps;
  account.exchange->coding = std::min(coding, account.exchange->bandwidth);  // buckets are timed with their coding
  account.exchange->bandwidth -= account.exchange->coding;
}

StepAccount read_run(const std::string& path, const JsonFile& file) {
  StepAccount account{.file = path, .kind = "run.json", .measured = true};
  const JsonPlace summary("/summary");
  if (!file.has(summary)) file.fail(summary, "missing: the run has not come to its end yet");
  const JsonPlace settled = summary / "measured" / "breakdown_ms";  // without the first steps
  read_breakdown(file, file.has(settled) ? settled : summary / "breakdown_ms", account);
  read_summary(file, summary, account);
  read_trace(path, file, summary, account);
  return account;
}

}  // namespace

StepAccount load_account(const std::string& path) {
  const JsonFile file(read_text(path), path);
  const JsonPlace root;
  if (file.has(root / "config")) return read_run(path, file);
  const bool plan = file.has(root / "prediction");
  const JsonPlace place = plan ? root / "prediction" : root;
  StepAccount account{.file = path, .kind = plan ? "plan.json" : "predicted.json"};
  if (!file.has(place / "breakdown_ms")) {
    file.fail(
        place / "breakdown_ms",
        "missing: this is neither predicted.json of trireme simulate, nor plan.json of trireme plan, nor run.json "
        "of trireme train");
  }
  read_breakdown(file, place / "breakdown_ms", account);
  read_summary(file, place, account);
  return account;
}

std::optional<StepAccount> own_prediction(const std::string& path) {
  const JsonFile file(read_text(path), path);
  const JsonPlace place("/summary/predicted");
  if (!file.has(place)) return std::nullopt;
  StepAccount account{.file = path, .kind = "run.json's own prediction"};
  read_breakdown(file, place / "breakdown_ms", account);
  read_summary(file, place, account);
  return account;
}

}  // namespace trireme::cluster
