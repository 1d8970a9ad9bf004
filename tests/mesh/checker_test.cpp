#include "trireme/mesh/checker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace trireme::pipelines {
namespace {

using enum Action::Kind;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs a schedule by its meaning: messages are (what, part, micro-batch) in queues, computations fail where something
// they need is not there. What a run leaves is compared with what the unchanged schedule leaves.
class Machine {
 public:
  explicit Machine(const Schedule& schedule) : schedule_(schedule), S_(schedule.stages) {}

  // Empty when something failed.
  std::vector<std::string> run() {
    std::vector<std::size_t> at(S_, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < S_; ++stage) {
        while (ok_ && at[stage] < schedule_.actions[stage].size() && step(stage, schedule_.actions[stage][at[stage]])) {
          ++at[stage];
          moved = true;
        }
      }
    }
    for (int stage = 0; stage < S_; ++stage) ok_ &= at[stage] == schedule_.actions[stage].size();
    for (const auto& [wire, queue] : wires_) ok_ &= queue.empty();
    if (!ok_) return {};
    std::vector<std::string> log(log_.begin(), log_.end());
    std::sort(log.begin(), log.end());
    return log;
  }

 private:
  using Datum = std::tuple<char, int, int>;  // activation or gradient of a part's output or input; micro-batch

  bool need(bool there) {
    ok_ &= there;
    return there;
  }
  void once(const std::string& text) {
    need(std::find(log_.begin(), log_.end(), text) == log_.end());
    log_.push_back(text);
  }
  bool step(int stage, const Action& action) {
    int part = action.chunk * S_ + stage, m = action.micro_batch, last = S_ * schedule_.chunks - 1;
    auto& mine = data_[stage];
    auto take = [&](Datum datum) { need(mine.erase(datum) == 1); };
    auto send = [&](int to, Datum datum) {
      if (wires_[{stage, to}].size() >= static_cast<std::size_t>(enough_capacity(schedule_))) return false;
      take(datum);
      wires_[{stage, to}].push_back(datum);
      return true;
    };
    auto receive = [&](int from, Datum datum) {
      auto& queue = wires_[{from, stage}];
      if (queue.empty()) return false;
      need(queue.front() == datum);
      queue.pop_front();
      need(mine.insert(datum).second);
      return true;
    };
    switch (action.kind) {
      case receive_activation:
        return receive((stage + S_ - 1) % S_, {'a', part - 1, m});
      case send_activation:
        return send((stage + 1) % S_, {'a', part, m});
      case receive_gradient:
        return receive((stage + 1) % S_, {'g', part + 1, m});
      case send_gradient:
        return send((stage + S_ - 1) % S_, {'g', part, m});
      case forward:
        if (part > 0) take({'a', part - 1, m});
        if (part < last) mine.insert({'a', part, m});
        once(fmt::format("F {} {} {}", part, m, updates_[stage]));
        mine.insert({'k', part, m});
        hold(stage, +1);
        break;
      case backward:
        if (part < last) take({'g', part + 1, m});
        if (part > 0) mine.insert({'g', part, m});
        take({'k', part, m});
        once(fmt::format("B {} {} {}", part, m, updates_[stage]));
        mine.insert({schedule_.splits_backward ? 'w' : 'u', part, m});
        if (!schedule_.splits_backward) hold(stage, -1);
        break;
      case weight_gradient:
        take({'w', part, m});
        once(fmt::format("W {} {}", part, m));
        hold(stage, -1);
        break;
      case update:
        take({'u', part, m});
        once(fmt::format("U {} {}", part, m));
        ++updates_[stage];
        break;
    }
    return true;
  }
  void hold(int stage, int more) {
    held_[stage] += more;
    need(held_[stage] <= find_kind(schedule_.name).most_held(S_, schedule_.micro_batches, schedule_.chunks, stage));
  }

  const Schedule& schedule_;
  int S_;
  std::map<int, std::set<Datum>> data_;
  std::map<std::pair<int, int>, std::deque<Datum>> wires_;
  std::map<int, int> updates_, held_;
  std::vector<std::string> log_;
  bool ok_ = true;
};

struct Size {
  int stages, micro_batches, chunks;
};

template <typename Mutate>
void expect_found(Mutate mutate) {
  for (const PipelineKind& kind : kinds()) {
    for (Size size : {Size{2, 3, 2}, {3, 4, 2}, {4, 4, 1}, {1, 2, 2}}) {
      const auto right = make(kind.name, size.stages, size.micro_batches, size.chunks);
      const auto meaning = Machine(right).run();
      ASSERT_FALSE(meaning.empty());
      mutate(right, [&](const Schedule& wrong, const std::string& what) {
        bool same = Machine(wrong).run() == meaning;
        EXPECT_EQ(faults_of(wrong).empty(), same) << kind.name << " " << size.stages << " stages: " << what;
      });
    }
  }
}

std::string text_of(int stage, const Action& a) {
  return fmt::format("stage {} {} {} {}", stage, name(a.kind), a.micro_batch, a.chunk);
}

TEST(PipelineChecker, FindsEveryActionThatIsMissing) {
  expect_found([](const Schedule& right, auto expect) {
    for (int stage = 0; stage < right.stages; ++stage) {
      for (std::size_t i = 0; i < right.actions[stage].size(); ++i) {
        Schedule wrong = right;
        wrong.actions[stage].erase(wrong.actions[stage].begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_FALSE(faults_of(wrong).empty());
        expect(wrong, "without " + text_of(stage, right.actions[stage][i]));
      }
    }
  });
}

TEST(PipelineChecker, FindsEveryActionThatIsThereTwice) {
  expect_found([](const Schedule& right, auto expect) {
    for (int stage = 0; stage < right.stages; ++stage) {
      for (std::size_t i = 0; i < right.actions[stage].size(); ++i) {
        for (std::size_t to : {i, std::size_t{0}, right.actions[stage].size()}) {
          Schedule wrong = right;
          wrong.actions[stage].insert(wrong.actions[stage].begin() + static_cast<std::ptrdiff_t>(to),
                                      right.actions[stage][i]);
          EXPECT_FALSE(faults_of(wrong).empty());
          expect(wrong, "twice " + text_of(stage, right.actions[stage][i]));
        }
      }
    }
  });
}

TEST(PipelineChecker, FindsEverySwapThatChangesTheMeaning) {
  expect_found([](const Schedule& right, auto expect) {
    for (int stage = 0; stage < right.stages; ++stage) {
      for (std::size_t i = 0; i < right.actions[stage].size(); ++i) {
        for (std::size_t j = i + 1; j < right.actions[stage].size(); ++j) {
          Schedule wrong = right;
          std::swap(wrong.actions[stage][i], wrong.actions[stage][j]);
          expect(wrong, fmt::format("{} for {}", text_of(stage, right.actions[stage][i]),
                                    text_of(stage, right.actions[stage][j])));
        }
      }
    }
  });
}

TEST(PipelineChecker, FindsEveryActionOfAnotherKindMicroBatchOrChunk) {
  expect_found([](const Schedule& right, auto expect) {
    for (int stage = 0; stage < right.stages; ++stage) {
      for (std::size_t i = 0; i < right.actions[stage].size(); ++i) {
        Action old = right.actions[stage][i];
        Schedule wrong = right;
        auto put = [&](Action action) {
          wrong.actions[stage][i] = action;
          EXPECT_FALSE(faults_of(wrong).empty());
        };
        for (int kind = 0; kind < 8; ++kind) {
          if (kind != static_cast<int>(old.kind)) put({static_cast<Action::Kind>(kind), old.micro_batch, old.chunk});
        }
        put({old.kind, old.micro_batch + 1, old.chunk});
        put({old.kind, old.micro_batch - 1, old.chunk});
        put({old.kind, old.micro_batch, old.chunk + 1});
        put({old.kind, old.micro_batch, old.chunk - 1});
        expect(wrong, "another instead of " + text_of(stage, old));
      }
    }
  });
}

TEST(PipelineChecker, NamesStageActionAndMicroBatch) {
  Schedule wrong = make("1f1b", 2, 2);
  std::swap(wrong.actions[1][1], wrong.actions[1][2]);
  EXPECT_THAT(faults_of(wrong),
              ElementsAre("stage 1: backward of micro-batch 0 comes before forward of micro-batch 0"));
  wrong = make("1f1b", 2, 2);
  wrong.actions[0].pop_back();
  EXPECT_THAT(faults_of(wrong), ElementsAre("stage 0: backward of micro-batch 1 is there 0 times, not 1"));
  wrong = make("gpipe", 2, 3);
  wrong.name = "1f1b";
  EXPECT_THAT(faults_of(wrong),
              Contains(HasSubstr("stage 0: forward of micro-batch 2 makes it hold 3 activations, of at most 2")));
}

TEST(PipelineChecker, FindsAStageThatWaitsForEver) {
  Schedule wrong = make("1f1b", 2, 2);  // the first stage waits for a gradient before it sends the second activation
  auto& first = wrong.actions[0];
  std::rotate(first.begin() + 2, first.begin() + 4, first.begin() + 6);  // still right: waits for micro-batch 0 first
  EXPECT_THAT(faults_of(wrong), IsEmpty());
  Schedule both = make("gpipe", 2, 3);  // the second stage takes nothing before all forwards of the first are sent
  EXPECT_THAT(faults_of(both, 1), IsEmpty());
  auto& second = both.actions[1];
  std::stable_partition(second.begin(), second.end(), [](const Action& a) { return a.kind == receive_activation; });
  EXPECT_THAT(faults_of(both, 1), IsEmpty());
  auto& third = both.actions[0];  // and the first sends nothing before it has a gradient
  std::stable_partition(third.begin(), third.end(), [](const Action& a) { return a.kind != send_activation; });
  EXPECT_THAT(faults_of(both),
              Contains(HasSubstr("stage 0: receive_gradient of micro-batch 0 waits for stage 1 for ever")));
}

TEST(PipelineChecker, CountsWhatIsHeld) {
  EXPECT_THAT(most_held(make("gpipe", 3, 7)), ElementsAre(7, 7, 7));
  EXPECT_THAT(most_held(make("1f1b", 3, 7)), ElementsAre(3, 2, 1));
  EXPECT_THAT(most_held(make("zero-bubble", 3, 7)), ElementsAre(3, 3, 3));
  EXPECT_THAT(most_held(make("pipedream", 3, 7)), ElementsAre(3, 2, 1));
  EXPECT_THAT(most_held(make("interleaved", 2, 4, 2)), ElementsAre(5, 3));
}

}  // namespace
}  // namespace trireme::pipelines
