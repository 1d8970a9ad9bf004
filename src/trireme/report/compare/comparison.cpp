#include "trireme/report/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/base/text/text.h"
#include "trireme/train/objective/metric.h"

namespace trireme::train {
namespace {

constexpr std::string_view kArgumentName = "model-arg.", kArgumentKey = "model.args.";
constexpr std::size_t kMostRuns = 10'000;

// "batch", "train.batch", "model-arg.width" or "model.args.width".
Varied varied_of(std::string name) {
  for (auto prefix : {kArgumentName, kArgumentKey}) {
    if (name.starts_with(prefix) && name.size() > prefix.size()) {
      auto argument = name.substr(prefix.size());
      return {std::string(kArgumentName) + argument, std::string(kArgumentKey) + argument};
    }
  }
  if (name.find('.') == name.npos) std::ranges::replace(name, '_', '-');
  const auto& field = find_field(name);
  if (field.key == "train.seed") throw ConfigError("--vary seed: write --seeds K for K seeds of each variant");
  if (field.key == "out.dir" || field.key == "train.target") {
    throw ConfigError(fmt::format("--vary {}: is the same for all variants; give it as {}", name, field.flag));
  }
  return {std::string(field.flag.substr(2)), std::string(field.key)};
}

// As the table of settings writes it, so that 0.10 and 0.1 are one value. What cannot be read stays as it is.
std::string plain_value(Config config, const Varied& varied, const std::string& text) {
  if (varied.key.starts_with(kArgumentKey)) return text;
  try {
    set(config, varied.key, text);
  } catch (const ConfigError&) {
    return text;
  }
  return value_text(config, find_field(varied.key));
}

// Letters that mean something to a shell or a file system become '-'; a name so changed or too long gets a checksum.
std::string folder_of(const std::string& label) {
  constexpr std::size_t kLongest = 100;
  std::string name = label;
  for (char& letter : name) {
    if (letter == ' ') letter = ',';
    if (!std::isalnum(static_cast<unsigned char>(letter)) &&
        std::string_view("=,.-_+").find(letter) == std::string::npos)
      letter = '-';
  }
  auto same = label;
  std::ranges::replace(same, ' ', ',');
  if (name == same && name.size() <= kLongest && !name.starts_with('.') && label.find(',') == label.npos) return name;
  std::uint32_t sum = 2166136261u;  // FNV-1a
  for (unsigned char letter : label) sum = (sum ^ letter) * 16777619u;
  return fmt::format("{}-{:08x}", name.substr(0, kLongest), sum);
}

Variant variant_of(const std::vector<Varied>& varied, std::vector<std::string> values) {
  Variant variant;
  for (std::size_t k = 0; k < varied.size(); ++k) {
    variant.label += fmt::format("{}{}={}", k ? " " : "", varied[k].name, values[k]);
  }
  variant.folder = folder_of(variant.label);
  variant.values = std::move(values);
  return variant;
}

// Every way to take one of each list, the last changing fastest.
std::vector<std::vector<std::string>> product(const std::vector<std::vector<std::string>>& lists) {
  std::vector<std::vector<std::string>> all{{}};
  for (const auto& list : lists) {
    if (all.size() * list.size() > kMostRuns) {
      throw ConfigError(fmt::format("--vary: more than {} variants; take fewer values", kMostRuns));
    }
    std::vector<std::vector<std::string>> longer;
    for (const auto& begin : all) {
      for (const auto& value : list) {
        longer.push_back(begin);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

void check_variant(const Comparison& comparison, std::size_t v, const std::function<void(const Config&)>& further) {
  auto name = [&](const char* what) { return fmt::format("variant {}: {}", comparison.variants[v].label, what); };
  try {
    auto config = comparison.config_of(v, comparison.base.seed);
    check(config);
    if (further) further(config);
  } catch (const DataError& error) {
    throw DataError(name(error.what()));
  } catch (const Error& error) {
    throw ConfigError(name(error.what()));
  }
}

}  // namespace

std::string ComparedBy::text(double value) const {
  return share ? per_cent(value) : std::isfinite(value) ? fmt::format("{:.4g}", value) : "-";
}

std::string ComparedBy::named(std::string_view name) const {
  constexpr std::string_view kAccuracy = "accuracy";
  std::string text(name);
  for (std::size_t at = 0; (at = text.find(kAccuracy, at)) != std::string::npos; at += key.size()) {
    text.replace(at, kAccuracy.size(), key);
  }
  return text;
}

ComparedBy compared_by(std::string_view key) {
  const auto found = std::ranges::find(metrics(), key, &MetricKind::key);
  if (found == metrics().end()) return {};
  return {found->key, found->title, found->share, found->higher_is_better};
}

Config Comparison::config_of(std::size_t variant, std::int64_t seed) const {
  auto config = base;
  for (std::size_t k = 0; k < varied.size(); ++k) set(config, varied[k].key, variants[variant].values[k]);
  config.seed = seed;
  return config;
}

bool Comparison::varies(std::string_view prefix) const {
  return std::ranges::any_of(varied, [&](const Varied& one) { return one.key.starts_with(prefix); });
}

const ComparedRun* Comparison::find(std::size_t variant, std::int64_t seed) const {
  auto found = std::ranges::find_if(runs, [&](auto& run) { return run.variant == variant && run.seed == seed; });
  return found == runs.end() ? nullptr : &*found;
}

void Comparison::put(ComparedRun run) {
  std::erase_if(runs, [&](auto& old) { return old.variant == run.variant && old.seed == run.seed; });
  runs.push_back(std::move(run));
}

Comparison plan_comparison(const Config& base, const std::vector<std::vector<std::string>>& vary, std::int64_t seeds,
                           const std::function<void(const Config&)>& further) {
  Comparison comparison;
  comparison.base = base;
  comparison.seeds = seeds;
  comparison.target = base.target;
  if (vary.empty()) throw ConfigError("compare needs --vary NAME VALUE…, such as --vary batch 32 128 512");
  if (seeds < 1) throw ConfigError(fmt::format("--seeds: {} is below 1", seeds));
  std::vector<std::vector<std::string>> lists;
  for (const auto& words : vary) {
    if (words.size() < 2) {
      throw ConfigError(fmt::format("--vary {}: needs values after the name", words.empty() ? "" : words[0]));
    }
    auto varied = varied_of(words[0]);
    for (const auto& other : comparison.varied) {
      if (other.key == varied.key) throw ConfigError(fmt::format("--vary {}: is given twice", varied.name));
    }
    auto& values = lists.emplace_back();
    for (std::size_t i = 1; i < words.size(); ++i) {
      auto value = plain_value(base, varied, words[i]);
      if (std::ranges::find(values, value) != values.end()) {
        throw ConfigError(fmt::format("--vary {}: {} is there twice", varied.name, words[i]));
      }
      values.push_back(std::move(value));
    }
    comparison.varied.push_back(std::move(varied));
  }
  for (auto& values : product(lists)) comparison.variants.push_back(variant_of(comparison.varied, std::move(values)));
  comparison.planned = comparison.variants.size();
  if (static_cast<double>(seeds) * static_cast<double>(comparison.planned) > kMostRuns) {
    throw ConfigError(
        fmt::format("--seeds {}: {} variants make more than {} runs", seeds, comparison.planned, kMostRuns));
  }
  for (std::size_t v = 0; v < comparison.planned; ++v) check_variant(comparison, v, further);
  return comparison;
}

}  // namespace trireme::train
