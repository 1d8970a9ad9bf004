#include "trireme/cli/bench/equality.h"

#include <fmt/format.h>

#include <filesystem>

#include "trireme/base/error.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/cli/bench/checkpoint_reader.h"
#include "trireme/cli/bench/rank_group.h"
#include "trireme/launch/launch.h"

namespace trireme::bench {
namespace {

constexpr std::chrono::seconds kLongestTraining{90};

std::string in_shell(const Flags& words) {
  std::string line = "trireme";
  for (const auto& word : words) {
    const bool plain = word.find_first_of(" '*$;:") == word.npos && !word.empty();
    line += plain ? " " + word : fmt::format(" '{}'", word);
  }
  return line;
}

struct Ended {
  int code = 0;
  std::string said;
};

Ended run_training(const Flags& words) {
  Argv command{launch::own_program()};
  command.insert(command.end(), words.begin(), words.end());
  Output output;
  const int code = start_child(command, output.fd()).finish(kLongestTraining);
  return {code, output.last_line()};
}

std::map<std::string, ReadTensor> result_in(const std::string& folder) {
  return read_checkpoint(newest_checkpoint(folder), {"model.", "optimizer."});
}

}  // namespace

std::string_view name(Equality::Kind kind) {
  switch (kind) {
    case Equality::Kind::equal:
      return "equal";
    case Equality::Kind::differs:
      return "differs";
    case Equality::Kind::refused:
      return "refused";
    case Equality::Kind::failed:
      return "failed";
  }
  return "";
}

Equality judge(const Combination& combination, const std::string& folder) {
  const int kRefused = ConfigError("").exit_code();
  const std::string one = folder + "/one", other = folder + "/other";
  for (const auto& path : {one, other}) remove_tree(path);
  Equality verdict{.bound = kRoundingOfAStep * kSlack * static_cast<double>(combination.steps)};
  verdict.lines.push_back(in_shell(combination.reference("one")));
  for (std::size_t k = 0; k < combination.ways.size(); ++k) {
    verdict.lines.push_back(in_shell(combination.command(k, "other")));
  }
  // What is refused is so at once: the reference comes last.
  for (std::size_t k = 0; k < combination.ways.size(); ++k) {
    const auto ended = run_training(combination.command(k, other));
    if (ended.code == 0) continue;
    verdict.kind = ended.code == kRefused ? Equality::Kind::refused : Equality::Kind::failed;
    verdict.why = ended.code == kRefused ? ended.said : fmt::format("exit code {}: {}", ended.code, ended.said);
    return verdict;
  }
  if (const auto ended = run_training(combination.reference(one)); ended.code != 0) {
    throw Error(fmt::format("{}: exit code {}: {}", verdict.lines.front(), ended.code, ended.said));
  }
  const auto apart = distance(result_in(other), result_in(one));
  verdict.off_by = apart.off_by;
  verdict.why = apart.tensor;
  if (!(apart.off_by <= verdict.bound)) verdict.kind = Equality::Kind::differs;
  return verdict;
}

}  // namespace trireme::bench
