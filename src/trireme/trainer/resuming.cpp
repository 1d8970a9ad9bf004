#include "trireme/trainer/resuming.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/train/checkpoint/server_state.h"

namespace trireme::train {

Place Resuming::load(RateSchedule& schedule, bool tells) {
  LoadedCheckpoint loaded;
  file_ = config_.out;
  if (all_.rank() == 0) {
    auto search = latest_checkpoint(config_.out);
    if (!search.found) {
      throw DataError(fmt::format("{}: no whole checkpoint to resume from{}", config_.out,
                                  search.skipped.empty() ? "" : "; " + search.skipped.front()));
    }
    file_ = search.found->path.string();
    loaded = load_checkpoint(search.found->path);
    if (tells) {  // steps are lost: told also where a run is to be quiet
      for (const auto& line : search.skipped) fmt::print(stderr, "trireme: {}\n", line);
    }
  }
  own_ = deal(loaded, all_, held_.replica_part());
  share(loaded, all_);
  own_.same_strategy = made_with(loaded, file_, *sync::Choice::parse(config_.strategy).kind);
  check_same_objective(learners_.first().work.objective, loaded, file_);
  return learners_.first().load(schedule, loaded, file_);
}

void Resuming::restore_own(const Place& place) {
  const bool at_servers = strategy_.traits().owns_step;
  if (at_servers) from_optimizer(learners_.first(), strategy_, place.step);
  for (auto& line : restore(std::exchange(own_, {}), strategy_, learners_, held_.replica_part(), file_)) {
    notes_.push_back(std::move(line));
  }
  if (at_servers && !compress::Rules(config_.compress, config_.compress_rule).none()) {
    notes_.push_back(
        "a parameter server keeps no errors that codecs carried: "
        "they begin from nothing");
  }
  if (auto note = held_.resumed_note(); !note.empty()) notes_.push_back(std::move(note));
}

}  // namespace trireme::train
