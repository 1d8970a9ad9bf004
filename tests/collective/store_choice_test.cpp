#include "trireme/collective/reduce/store_choice.h"

#include <gtest/gtest.h>

#include <functional>

namespace trireme {
namespace {

// Makes calls and learns from them; returns how many of the last cycle streamed.
int streamed(StoreChoice& choice, int cycles, const std::function<double(Store, std::uint32_t)>& seconds) {
  int count = 0;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(cycles) * StoreChoice::kCycle; ++i) {
    const auto call = choice.begin();
    const auto store = choice.store(call);
    if (i % StoreChoice::kCycle == 0) count = 0;
    count += store == Store::streaming;
    if (StoreChoice::is_trial(call)) choice.learn(call, seconds(store, call));
  }
  return count;
}

constexpr int kTrials = StoreChoice::kTrial, kAll = StoreChoice::kCycle - StoreChoice::kTrial;

TEST(StoreChoice, UsesWhatWasFasterAndTriesTheOtherNowAndThen) {
  StoreChoice plain, streaming;
  EXPECT_EQ(streamed(plain, 1, [](Store store, auto) { return store == Store::plain ? 1.0 : 2.0; }), kTrials);
  EXPECT_EQ(streamed(streaming, 1, [](Store store, auto) { return store == Store::plain ? 2.0 : 1.0; }), kAll);
}

TEST(StoreChoice, IsNotMisledByTheFirstCallAfterAChangeNorByOneThatWasDisturbed) {
  StoreChoice choice;
  const auto seconds = [](Store store, std::uint32_t call) {
    const auto turn = call % StoreChoice::kCycle % StoreChoice::kTrial;
    if (turn == 0) return store == Store::plain ? 9.0 : 0.1;     // the caches are as the other left them
    if (turn == 2) return store == Store::plain ? 1000.0 : 2.0;  // a processor that was away
    return store == Store::plain ? 1.0 : 2.0;
  };
  for (int cycle = 0; cycle < 8; ++cycle) EXPECT_EQ(streamed(choice, 1, seconds), kTrials) << cycle;
}

TEST(StoreChoice, NoticesThatCoresNoLongerShareACache) {
  StoreChoice choice;
  EXPECT_EQ(streamed(choice, 20, [](Store store, auto) { return store == Store::plain ? 1.0 : 2.0; }), kTrials);
  EXPECT_EQ(streamed(choice, 2, [](Store store, auto) { return store == Store::plain ? 4.0 : 2.0; }), kAll);
}

}  // namespace
}  // namespace trireme
