#include "trireme/report/accounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trireme/base/median.h"
#include "trireme/base/text/bytes_text.h"
#include "trireme/base/text/text.h"

namespace trireme::train {
namespace {

// Staleness up to here is told apart; what is above counts as this.
constexpr std::size_t kStaleKinds = 64;

// "1.2 MiB sent instead of 3.6 MiB (3.0 times less)", by all workers.
std::string sent_instead(std::span<const WorkerAccount> accounts) {
  double sent = 0, dense = 0;
  for (const auto& account : accounts) {
    sent += static_cast<double>(account.bytes_sent);
    dense += static_cast<double>(account.bytes_dense);
  }
  return fmt::format("{} sent instead of {} ({:.1f} times less)", bytes_text(static_cast<std::uint64_t>(sent)),
                     bytes_text(static_cast<std::uint64_t>(dense)), sent > 0 ? dense / sent : 1);
}

double rows_of_a_push(const sync::SparsePushes& pushes, const sync::SparsePushes::Table& table) {
  return static_cast<double>(table.pushed) / static_cast<double>(std::max<std::uint64_t>(pushes.pushes, 1));
}

}  // namespace

double WorkerAccount::mean_stale() const {
  double sum = 0, count = 0;
  for (auto [by, steps_so] : stale) {
    sum += static_cast<double>(by * steps_so);
    count += static_cast<double>(steps_so);
  }
  return count > 0 ? sum / count : 0;
}

std::int64_t WorkerAccount::most_stale() const { return stale.empty() ? 0 : stale.rbegin()->first; }

nlohmann::ordered_json to_json(const WorkerAccount& account) {
  nlohmann::ordered_json json{{"rank", account.rank},
                              {"steps", account.steps},
                              {"compute_s", account.compute_s},
                              {"wait_s", account.wait_s},
                              {"typical_step_ms", 1e3 * account.typical_s},
                              {"bytes_sent", account.bytes_sent},
                              {"bytes_dense", account.bytes_dense}};
  if (!account.stale.empty()) {
    nlohmann::ordered_json histogram;
    for (auto [by, steps] : account.stale) histogram[std::to_string(by)] = steps;
    json["staleness"] = {
        {"mean", account.mean_stale()}, {"max", account.most_stale()}, {"histogram", std::move(histogram)}};
  }
  return json;
}

std::string workers_table(std::span<const WorkerAccount> accounts, double consensus) {
  bool stale = std::ranges::any_of(accounts, [](const auto& account) { return !account.stale.empty(); });
  auto text = fmt::format("worker {:>7} {:>10} {:>10} {:>10}{}\n", "steps", "compute", "wait", "sent",
                          stale ? fmt::format(" {:>15}", "stale mean/max") : "");
  for (const auto& account : accounts) {
    text +=
        fmt::format("{:>6} {:>7} {:>10} {:>10} {:>10}", account.rank, account.steps, duration_text(account.compute_s),
                    duration_text(account.wait_s), bytes_text(account.bytes_sent));
    if (stale) text += fmt::format(" {:>15}", fmt::format("{:.1f}/{}", account.mean_stale(), account.most_stale()));
    text += "\n";
  }
  if (consensus >= 0) text += fmt::format("distance to consensus {:.3g} (root mean square over workers)\n", consensus);
  return text;
}

nlohmann::ordered_json to_json(const sync::Compressed& compressed) {
  return {{"encode_s", compressed.encode_s},
          {"decode_s", compressed.decode_s},
          {"relative_error", compressed.error},
          {"carried_norm", compressed.carried}};
}

std::string compression_line(std::span<const WorkerAccount> accounts, const sync::Compressed& of_first) {
  const double steps = accounts.empty() ? 1 : static_cast<double>(std::max<std::int64_t>(accounts[0].steps, 1));
  return fmt::format(
      "compression: {}; encoding {:.2f} ms, decoding {:.2f} ms a "
      "step; relative error {:.3g}, carried {:.3g}",
      sent_instead(accounts), 1e3 * of_first.encode_s / steps, 1e3 * of_first.decode_s / steps, of_first.error,
      of_first.carried);
}

std::string sparse_line(std::span<const WorkerAccount> accounts, const sync::SparsePushes& of_first) {
  auto text = fmt::format("sparse: {}, pulled weights included", sent_instead(accounts));
  for (const auto& table : of_first.tables) {
    text += fmt::format("; {}: {:.1f} of {} rows a push", table.name, rows_of_a_push(of_first, table),
                        grouped(static_cast<double>(table.rows)));
  }
  return text;
}

nlohmann::ordered_json to_json(const sync::SparsePushes& pushes) {
  nlohmann::ordered_json tables = nlohmann::ordered_json::object();
  for (const auto& table : pushes.tables) {
    tables[table.name] = {{"rows", table.rows}, {"rows_pushed", rows_of_a_push(pushes, table)}};
  }
  return {{"pushes", pushes.pushes},
          {"bytes_before", pushes.bytes_before},
          {"bytes_after", pushes.bytes_after},
          {"tables", tables}};
}

void Accounts::step(double compute_s, double wait_s) {
  ++steps_;
  compute_s_ += compute_s;
  wait_s_ += wait_s;
  if (steps_ <= static_cast<std::int64_t>(kSettling)) return;
  if (recent_.size() < kRecent) {
    recent_.push_back(compute_s);
  } else {
    recent_[static_cast<std::size_t>(steps_) % kRecent] = compute_s;
  }
}

double Accounts::typical_s() const { return median(recent_); }

std::vector<WorkerAccount> Accounts::of_all(WorkerGroup& group, std::uint64_t bytes_sent,
                                            const sync::Report& report) const {
  // A sum in which every worker has a place of its own.
  constexpr std::size_t kNumbers = 6 + kStaleKinds;
  std::vector<double> all(kNumbers * static_cast<std::size_t>(group.size()));
  double* mine = all.data() + kNumbers * static_cast<std::size_t>(group.rank());
  mine[0] = static_cast<double>(steps_);
  mine[1] = compute_s_;
  mine[2] = wait_s_;
  mine[3] = typical_s();
  mine[4] = static_cast<double>(bytes_sent);
  mine[5] = mine[4];
  if (const auto& codes = report.compressed) {
    mine[5] += static_cast<double>(codes->bytes_before) - static_cast<double>(codes->bytes_after);
  }
  if (const auto& rows = report.sparse) {
    mine[5] += static_cast<double>(rows->bytes_before) - static_cast<double>(rows->bytes_after);
  }
  for (auto [by, steps] : report.stale) {
    mine[6 + std::min<std::size_t>(static_cast<std::size_t>(by), kStaleKinds - 1)] += static_cast<double>(steps);
  }
  group.sum(all);
  std::vector<WorkerAccount> accounts;
  for (int rank = 0; rank < group.size(); ++rank) {
    const double* its = all.data() + kNumbers * static_cast<std::size_t>(rank);
    WorkerAccount account{rank,
                          static_cast<std::int64_t>(its[0]),
                          its[1],
                          its[2],
                          its[3],
                          static_cast<std::uint64_t>(its[4]),
                          static_cast<std::uint64_t>(std::max(its[5], 0.0))};
    for (std::size_t by = 0; by < kStaleKinds; ++by) {
      if (its[6 + by] > 0) account.stale[static_cast<std::int64_t>(by)] = static_cast<std::int64_t>(its[6 + by]);
    }
    accounts.push_back(std::move(account));
  }
  return accounts;
}

std::string Straggler::text() const {
  return fmt::format("rank {} is slow: its own compute takes {:.1f} ms a step, the others' {:.1f} ms ({:.1f} times)",
                     rank, 1e3 * its_s, 1e3 * others_s, its_s / others_s);
}

std::optional<Straggler> persistent_straggler(std::span<const WorkerAccount> accounts) {
  constexpr double kSlower = 1.5;
  if (accounts.size() < 2) return std::nullopt;
  const auto& slowest = *std::ranges::max_element(accounts, {}, &WorkerAccount::typical_s);
  std::vector<double> others;
  for (const auto& account : accounts) {
    if (account.rank != slowest.rank) others.push_back(account.typical_s);
  }
  double usual = median(others);
  if (!(usual > 0) || slowest.typical_s < kSlower * usual) return std::nullopt;
  return Straggler{slowest.rank, slowest.typical_s, usual};
}

}  // namespace trireme::train
