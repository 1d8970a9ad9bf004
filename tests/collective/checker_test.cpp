#include "trireme/collective/check/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "tests/collective/recorded.h"

namespace trireme::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using enum Collective;

std::string verdict(const Recorded& recorded) {
  return check(recorded.algorithm, recorded.call, recorded.schedules()).value_or("proven");
}

Recorded made(Collective what, std::string_view algorithm, int ranks, std::size_t count, std::size_t stride = 0) {
  return record(find_algorithm(what, algorithm), {what, 0, ranks, 0, count, std::max(count, stride)});
}

// The first step of this kind in a rank's round.
Step& step_of(Recorded& recorded, int rank, int round, StepKind kind) {
  for (Step& step : recorded.rounds[rank][round])
    if (step.kind == kind) return step;
  throw std::out_of_range("no such step");
}

void erase(Recorded& recorded, int rank, int round, StepKind kind) {
  std::erase_if(recorded.rounds[rank][round], [&](const Step& step) { return step.kind == kind; });
}

TEST(Checker, ProvesEveryAlgorithm) {
  std::vector<int> ranks(17);
  std::iota(ranks.begin(), ranks.end(), 1);
  for (const Algorithm& algorithm : algorithms()) {
    const Proof proof = prove(algorithm, ranks);
    EXPECT_EQ(proof.error.value_or(""), "");
    EXPECT_EQ(proof.ranks, ranks);
    EXPECT_GE(proof.cases, 17);
  }
}

TEST(Checker, CoversEmptyShortAndGappedCallsAndAllKindsOfRoots) {
  for (Collective what : kCollectives) {
    bool empty = false, shorter = false, longer = false, gap = false, last_root = false;
    for (const Call& call : calls_to_check(what, 6)) {
      empty |= call.count == 0;
      shorter |= call.count > 0 && call.count < 6;
      longer |= call.count > 6;
      gap |= call.stride > call.count;
      last_root |= call.root == 5;
      EXPECT_GE(call.stride, call.count);
    }
    EXPECT_TRUE(empty);
    EXPECT_EQ(shorter, what != barrier);
    EXPECT_EQ(longer, what != barrier && !has_blocks(what));
    EXPECT_EQ(gap, has_blocks(what));
    EXPECT_EQ(last_root, has_root(what));
  }
}

TEST(Checker, StopsAtTheFirstErrorAndNamesTheCall) {
  Algorithm broken = find_algorithm(all_reduce, "ring");
  broken.plan = [](const Call& call) {
    Schedule schedule = find_algorithm(all_reduce, "ring").plan(call);
    if (call.ranks == 3) schedule.fill = [](int, Round&) {};
    return schedule;
  };
  const std::vector<int> ranks{1, 2, 3, 4};
  std::vector<int> told;
  const Proof proof = prove(broken, ranks, [&](int P) { told.push_back(P); });
  EXPECT_EQ(proof.ranks, (std::vector<int>{1, 2}));
  EXPECT_EQ(told, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(proof.error, "all-reduce ring, 3 ranks, count 1: rank 0: element 0 of the result is missing");
}

// --- schedules broken on purpose ---

TEST(BrokenSchedule, MissingSend) {
  Recorded ring = made(all_reduce, "ring", 4, 8);
  erase(ring, 1, 2, StepKind::send);
  EXPECT_EQ(verdict(ring),
            "all-reduce ring, 4 ranks, count 8: rank 2, round 2: waits for a message of rank 1 that is never sent");
}

TEST(BrokenSchedule, MissingReceive) {
  Recorded ring = made(all_reduce, "ring", 4, 8);
  erase(ring, 1, 4, StepKind::recv);
  EXPECT_THAT(verdict(ring), HasSubstr("rank 0, round 4: sends to rank 1 a message that is never received"));
}

TEST(BrokenSchedule, DoubleContribution) {
  Recorded ring = made(all_reduce, "ring", 4, 8);
  step_of(ring, 2, 4, StepKind::recv).kind = StepKind::recv_reduce;
  EXPECT_THAT(verdict(ring), AllOf(HasSubstr("rank 2: element"), HasSubstr("'s contribution twice")));
}

TEST(BrokenSchedule, LostContribution) {
  Recorded tree = made(all_reduce, "mst", 4, 3);
  step_of(tree, 0, 0, StepKind::recv_reduce).kind = StepKind::recv;
  EXPECT_THAT(verdict(tree), HasSubstr("rank 0: element 0 of the result lacks rank 0's contribution"));
}

TEST(BrokenSchedule, ExponentiallyManyContributions) {
  Recorded one = made(all_reduce, "ring", 2, 1);
  for (int i = 0; i < 100; ++i)
    one.rounds[0][0].insert(one.rounds[0][0].begin() + 1,
                            {StepKind::reduce, 0, {Buffer::output, 0, 1}, {Buffer::output, 0, 1}});
  EXPECT_THAT(verdict(one), AllOf(HasSubstr("sums "), HasSubstr("contributions of 2 ranks")));
}

TEST(BrokenSchedule, WrongPeer) {
  Recorded ring = made(all_gather, "ring", 5, 2);
  step_of(ring, 3, 1, StepKind::send).peer = 1;
  EXPECT_THAT(verdict(ring), HasSubstr("rank 3, round 1: sends to rank 1 a message that is never received"));
  step_of(ring, 3, 1, StepKind::send).peer = 5;
  EXPECT_THAT(verdict(ring), HasSubstr("rank 3, round 1: peer 5 does not exist"));
  step_of(ring, 3, 1, StepKind::send).peer = 3;
  EXPECT_THAT(verdict(ring), HasSubstr("rank 3, round 1: its peer is itself"));
}

TEST(BrokenSchedule, WrongSlice) {
  Recorded ring = made(all_reduce, "ring", 4, 8);
  Step& first = step_of(ring, 2, 0, StepKind::send);
  first.from.offset = (first.from.offset + 2) % 8;
  EXPECT_THAT(verdict(ring), AllOf(HasSubstr("of the result holds element"), HasSubstr("of rank 2's input")));
}

TEST(BrokenSchedule, WrongElementMoved) {
  Recorded flat = made(scatter, "flat", 3, 2);
  step_of(flat, 0, 0, StepKind::send).from.offset = 0;
  EXPECT_THAT(verdict(flat), HasSubstr("rank 1: element 0 of the result is not element 2 of rank 0's input"));
}

// Two ranks swap their blocks; rank 0 in the rounds given for it, rank 1 in its own.
Recorded swap_blocks(int sends0, int receives0, int sends1, int receives1) {
  Recorded made = test::made(all_gather, "ring", 2, 1);
  for (int rank : {0, 1}) {
    made.rounds[rank].assign(2, {});
    const auto own = static_cast<std::size_t>(rank);
    made.rounds[rank][0].push_back({StepKind::copy, 0, {Buffer::input, 0, 1}, {Buffer::output, own, 1}});
    made.rounds[rank][rank == 0 ? sends0 : sends1].push_back({StepKind::send, 1 - rank, {Buffer::output, own, 1}, {}});
    made.rounds[rank][rank == 0 ? receives0 : receives1].push_back(
        {StepKind::recv, 1 - rank, {}, {Buffer::output, 1 - own, 1}});
  }
  return made;
}

TEST(BrokenSchedule, DeadlockByOrder) {
  EXPECT_EQ(verdict(swap_blocks(0, 0, 0, 0)), "proven");
  EXPECT_EQ(verdict(swap_blocks(0, 1, 1, 0)), "proven");
  EXPECT_THAT(verdict(swap_blocks(1, 0, 1, 0)),
              HasSubstr("deadlock: these wait for each other: rank 0 in round 0, rank 1 in round 0"));
  EXPECT_THAT(verdict(swap_blocks(0, 1, 0, 1)), HasSubstr("deadlock without buffering: these wait for each other"));
  EXPECT_THAT(verdict(swap_blocks(0, 0, 1, 0)),
              HasSubstr("rank 1, round 1: sends what rank 0 receives in round 0: both must be one round"));
}

TEST(BrokenSchedule, MessageOfTwoRounds) {
  Recorded flat = made(broadcast, "flat", 2, 1);
  flat.rounds[0].push_back({});
  flat.rounds[1].insert(flat.rounds[1].begin(), Round{});
  EXPECT_THAT(verdict(flat),
              HasSubstr("rank 0, round 0: sends what rank 1 receives in round 1: both must be one round"));
}

TEST(BrokenSchedule, RaceWithinARound) {
  Recorded butterfly = made(all_reduce, "butterfly", 4, 3);
  step_of(butterfly, 2, 1, StepKind::send).from.buffer = Buffer::output;
  EXPECT_THAT(verdict(butterfly), HasSubstr("rank 2, round 1: race: steps"));
  Recorded tree = made(all_reduce, "tree", 3, 3);
  Step& right = step_of(tree, 0, 0, StepKind::recv);
  right = {StepKind::recv_reduce, right.peer, {}, {Buffer::output, 0, 3}};
  EXPECT_THAT(verdict(tree), HasSubstr("rank 0, round 0: race: steps"));
}

TEST(BrokenSchedule, WriteToInput) {
  Recorded flat = made(reduce, "flat", 3, 2);
  step_of(flat, 0, 1, StepKind::combine).to.buffer = Buffer::input;
  EXPECT_THAT(verdict(flat), HasSubstr("rank 0, round 1: writes elements 0…1 of input"));
}

TEST(BrokenSchedule, OutOfBounds) {
  Recorded ring = made(all_reduce, "ring", 4, 8);
  step_of(ring, 1, 5, StepKind::recv).to.offset = 7;
  EXPECT_THAT(verdict(ring), HasSubstr("rank 1, round 5: elements 7…8 of output out of bounds: rank 1 has 8"));
  Recorded huge = made(all_reduce, "ring", 4, 8);
  step_of(huge, 1, 5, StepKind::recv).to.offset = static_cast<std::size_t>(-1);
  EXPECT_THAT(verdict(huge), HasSubstr("out of bounds"));
  Recorded rootless = made(gather, "flat", 3, 2);
  rootless.rounds[1][0].insert(rootless.rounds[1][0].begin(),
                               {StepKind::copy, 0, {Buffer::input, 0, 2}, {Buffer::output, 2, 2}});
  EXPECT_THAT(verdict(rootless), HasSubstr("rank 1, round 0: elements 2…3 of output out of bounds: rank 1 has 0"));
  Recorded combined = made(all_reduce, "naive", 3, 2);
  step_of(combined, 1, 1, StepKind::combine).stride = 3;
  EXPECT_THAT(verdict(combined), HasSubstr("rank 1, round 1: elements 6…7 of scratch out of bounds: rank 1 has 6"));
}

TEST(BrokenSchedule, UninitialisedRead) {
  Recorded butterfly = made(all_reduce, "butterfly", 2, 3);
  erase(butterfly, 1, 0, StepKind::copy);
  EXPECT_THAT(verdict(butterfly),
              HasSubstr("rank 1, round 0: reads element 0 of rank 1's scratch, which nothing has written"));
  Recorded inlined = made(all_reduce, "inline", 3, 1);
  erase(inlined, 2, 0, StepKind::copy);
  EXPECT_THAT(verdict(inlined), HasSubstr("reads element 0 of rank 2's stage, which nothing has written"));
}

TEST(BrokenSchedule, WrongCanonicalOrder) {
  Recorded naive = made(all_reduce, "naive", 4, 1);
  for (Step& step : naive.rounds[0][0]) {
    if (step.kind == StepKind::recv && step.peer == 1)
      step.to.offset = 2;
    else if (step.kind == StepKind::recv && step.peer == 2)
      step.to.offset = 1;
  }
  EXPECT_THAT(verdict(naive), HasSubstr("rank 0: element 0 of the result is not summed in the canonical order"));
  naive.algorithm.canonical = false;
  EXPECT_EQ(verdict(naive), "proven");
}

TEST(BrokenSchedule, CountMismatch) {
  Recorded ring = made(all_reduce, "ring", 4, 8);
  step_of(ring, 1, 1, StepKind::send).from.count = 1;
  EXPECT_THAT(verdict(ring), HasSubstr("rank 2, round 1: receives 2 elements of rank 1, which sends 1"));
  Recorded copied = made(all_reduce, "ring", 4, 8);
  step_of(copied, 1, 0, StepKind::copy).from.count = 7;
  EXPECT_THAT(verdict(copied), HasSubstr("rank 1, round 0: elements 0…6 of input go to elements 0…7 of output"));
}

TEST(BrokenSchedule, LostRankOfABarrier) {
  Recorded barrier = made(Collective::barrier, "dissemination", 5, 0);
  for (auto& rounds : barrier.rounds) rounds.pop_back();
  EXPECT_THAT(verdict(barrier), HasSubstr("rank 0 leaves without having heard of rank 1"));
  Recorded empty = made(Collective::barrier, "direct", 5, 0);
  for (auto& rounds : empty.rounds) rounds.clear();
  EXPECT_THAT(verdict(empty), HasSubstr("a barrier needs a round for ranks to meet"));
}

TEST(BrokenSchedule, SharedRace) {
  Recorded direct = made(all_reduce, "direct", 3, 6);
  Step& second = step_of(direct, 1, 0, StepKind::reduce_from);
  second.from.offset = second.to.offset = 1;
  EXPECT_THAT(verdict(direct),
              AllOf(HasSubstr("rank 1, round 0: race: element 1 of rank"), HasSubstr("is also used by rank 0")));
  Recorded inlined = made(all_reduce, "inline", 3, 1);
  for (auto& rounds : inlined.rounds) {
    rounds[0].push_back(rounds[1][0]);
    rounds[1].clear();
  }
  EXPECT_THAT(verdict(inlined), HasSubstr("race: element 0 of rank"));
  Recorded everyone = made(all_reduce, "inline", 3, 1);
  step_of(everyone, 2, 1, StepKind::reduce_from).peer = kEveryone;
  EXPECT_THAT(verdict(everyone), HasSubstr("race"));
}

TEST(BrokenSchedule, OnlyInPlace) {
  // Receives over its input before adding it: right only while input and output are apart.
  Recorded swap = made(all_reduce, "ring", 2, 1);
  swap.scratch = {1, 1};
  for (int rank : {0, 1}) {
    const Slice in{Buffer::input, 0, 1}, out{Buffer::output, 0, 1}, spare{Buffer::scratch, 0, 1};
    swap.rounds[rank] = {
        {{StepKind::copy, 0, in, spare}, {StepKind::send, 1 - rank, spare, {}}, {StepKind::recv, 1 - rank, {}, out}},
        {{StepKind::reduce, 0, in, out}}};
  }
  EXPECT_THAT(verdict(swap), HasSubstr("count 1: in place: rank 0: element 0 of the result"));
}

TEST(BrokenSchedule, GapBetweenBlocks) {
  Recorded flat = made(gather, "flat", 3, 2, 4);
  flat.rounds[0][0].insert(flat.rounds[0][0].begin(),
                           {StepKind::copy, 0, {Buffer::input, 0, 1}, {Buffer::output, 3, 1}});
  EXPECT_THAT(verdict(flat), HasSubstr("rank 0: element 3 of output lies between blocks and was written"));
  Recorded reads = made(scatter, "flat", 3, 2, 4);
  step_of(reads, 0, 0, StepKind::send).from.offset = 3;
  EXPECT_THAT(verdict(reads), HasSubstr("reads element 3 of rank 0's input, which nothing has written"));
}

TEST(BrokenSchedule, MissingResult) {
  Recorded direct = made(broadcast, "direct", 3, 2);
  direct.rounds[2][0].clear();
  EXPECT_THAT(verdict(direct), HasSubstr("rank 2: element 0 of the result is missing"));
}

TEST(BrokenSchedule, OverlappingCopy) {
  Recorded ring = made(all_reduce, "ring", 2, 4);
  ring.rounds[0][0].insert(ring.rounds[0][0].begin() + 1,
                           {StepKind::copy, 0, {Buffer::output, 0, 3}, {Buffer::output, 1, 3}});
  EXPECT_THAT(verdict(ring),
              HasSubstr("rank 0, round 0: copy from elements 0…2 of output to elements 1…3 of output overlaps itself"));
}

TEST(BrokenSchedule, StepsThatDoNotBelong) {
  Recorded ring = made(all_reduce, "ring", 2, 4);
  ring.rounds[1][0].push_back({StepKind::read, 0, {Buffer::input, 0, 1}, {Buffer::output, 0, 1}});
  EXPECT_THAT(verdict(ring), HasSubstr("rank 1, round 0: a shared step in a message schedule"));
  Recorded direct = made(all_reduce, "direct", 2, 4);
  direct.rounds[0][0].push_back({StepKind::send, 1, {Buffer::input, 0, 1}, {}});
  EXPECT_THAT(verdict(direct), HasSubstr("rank 0, round 0: a message in a shared schedule"));
  Recorded late = made(all_reduce, "ring", 2, 4);
  std::swap(late.rounds[0][0].front(), late.rounds[0][0].back());
  EXPECT_THAT(verdict(late), HasSubstr("rank 0, round 0: a local step is listed after an exchange"));
  Recorded none = made(all_reduce, "ring", 2, 4);
  none.rounds[0][1].push_back({StepKind::send, 1, {Buffer::output, 0, 0}, {}});
  EXPECT_THAT(verdict(none), HasSubstr("rank 0, round 1: a step of no elements"));
  Recorded staged = made(all_reduce, "butterfly", 2, 4);
  step_of(staged, 0, 0, StepKind::send).from.buffer = Buffer::stage;
  staged.stage[0] = 4;
  EXPECT_THAT(verdict(staged), HasSubstr("uses a stage, which only shared schedules have"));
  Recorded secret = made(broadcast, "inline", 2, 4);
  step_of(secret, 1, 1, StepKind::read).from.buffer = Buffer::scratch;
  secret.scratch[0] = 4;
  EXPECT_THAT(verdict(secret), HasSubstr("reads a peer's scratch, which is private"));
}

TEST(BrokenSchedule, DifferentNumbersOfRounds) {
  Recorded ring = made(all_reduce, "ring", 3, 3);
  ring.rounds[2].pop_back();
  EXPECT_THAT(verdict(ring), HasSubstr("rank 2 has 3 rounds, rank 0 has 4"));
}

}  // namespace
}  // namespace trireme::test
