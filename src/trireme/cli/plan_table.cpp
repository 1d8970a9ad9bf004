#include "trireme/cli/plan_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "trireme/base/text/bytes_text.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"
#include "trireme/cluster/planner/plan_file.h"
#include "trireme/mesh/choice/mesh_choice.h"

namespace trireme::cli {
namespace {

using cluster::Option;

std::string setting(const Option& option, std::string_view key) {
  for (const auto& [name, value] : option.settings) {
    if (name == key) return value;
  }
  return "";
}

struct Column {
  std::string_view title;
  int width;
  std::function<std::string(const Option&)> cell;
};

std::string long_time(double seconds) {
  return seconds >= 86400 ? fmt::format("{:.1f} days", seconds / 86400) : duration_text(seconds);
}

std::vector<Column> columns_of(cluster::Objective objective, bool priced) {
  std::vector<Column> columns{{"workers", 9, [](const Option& o) { return setting(o, "run.workers"); }},
                              {"step", 11, [](const Option& o) { return format_seconds(o.step_s); }},
                              {"samples/s", 11, [](const Option& o) { return grouped(o.samples_per_s); }},
                              {"memory", 11, [](const Option& o) { return bytes_text(o.memory_bytes); }},
                              {"sent/step", 11, [](const Option& o) { return bytes_text(o.bytes_per_step); }}};
  if (objective != cluster::Objective::step) {
    columns.push_back({"to accuracy", 13, [](const Option& o) { return long_time(o.seconds_to_accuracy); }});
  }
  if (priced)
    columns.push_back({"price", 9, [](const Option& o) {
                         return o.price < 0.1 ? fmt::format("{:.4f}", o.price) : fmt::format("{:.2f}", o.price);
                       }});
  return columns;
}

std::string in_cell(std::string_view text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - display_width(text))), ' ') + std::string(text);
}

}  // namespace

std::string how_text(const Option& option) {
  std::string text = setting(option, "sync.strategy");
  if (const auto codec = setting(option, "sync.compress"); codec != "none") text += ", " + codec;
  if (const auto mesh = setting(option, "parallel.mesh"); !mesh.empty()) {
    text += "; mesh " + mesh;
    if (mesh::parse_mesh(mesh).pipe > 1) {
      text += fmt::format(", {}, {} micro-batches", setting(option, "parallel.pipeline"),
                          setting(option, "parallel.micro_batches"));
    }
    if (const auto shard = setting(option, "parallel.shard"); shard != "none") text += ", shard " + shard;
    if (const auto again = setting(option, "parallel.recompute"); again != "none") text += ", recompute " + again;
    return text;
  }
  const auto lanes = setting(option, "exchange.lanes");
  return text + fmt::format("; {}, {} buckets, {} lane{}", setting(option, "exchange.algorithm"),
                            setting(option, "exchange.bucket_plan"), lanes, lanes == "1" ? "" : "s");
}

std::string plan_table(const cluster::Found& found, cluster::Objective objective, int width) {
  constexpr int kNumber = 3, kIndent = 5;
  const bool priced = std::ranges::any_of(found.options, [](const Option& o) { return o.price > 0; });
  const auto columns = columns_of(objective, priced);
  std::string out = in_cell("#", kNumber);
  for (const auto& column : columns) out += in_cell(column.title, column.width);
  out += "\n";
  int number = 0;
  for (const auto& option : found.options) {
    out += in_cell(std::to_string(++number), kNumber);
    for (const auto& column : columns) out += in_cell(column.cell(option), column.width);
    out += "\n" + labelled("", kIndent, how_text(option), width) + labelled("", kIndent, option.why, width);
  }
  out += fmt::format("\n{} plans considered, {} simulated\n", grouped(static_cast<double>(found.considered)),
                     grouped(static_cast<double>(found.judged)));
  for (const auto& one : found.left_out) {
    const auto plans = one.plans > 0 ? grouped(static_cast<double>(one.plans)) : "";
    out += labelled(in_cell(plans, 8) + "  ", 10, fmt::format("left out: {}", one.why), width);
  }
  for (const auto& note : found.notes) out += labelled("note:", 6, note, width);
  return out;
}

nlohmann::ordered_json plan_json(const cluster::Found& found, cluster::Objective objective) {
  nlohmann::ordered_json json{{"objective", cluster::name(objective)},
                              {"considered", found.considered},
                              {"simulated", found.judged},
                              {"options", nlohmann::ordered_json::array()},
                              {"left_out", nlohmann::ordered_json::array()},
                              {"notes", found.notes}};
  for (const auto& option : found.options) json["options"].push_back(cluster::to_json(option));
  for (const auto& one : found.left_out) json["left_out"].push_back({{"plans", one.plans}, {"why", one.why}});
  return json;
}

}  // namespace trireme::cli
