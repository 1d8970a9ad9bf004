#include "trireme/trainer/training_meter.h"

#include <gtest/gtest.h>

#include <thread>

namespace trireme::train {
namespace {

using namespace std::chrono_literals;

TEST(TrainingMeter, CountsStepsAndNothingElse) {
  std::uint64_t traffic = 1000;  // sent before training
  TrainingMeter meter([&] { return traffic; });
  Place place;
  meter.resume();
  const double begin = meter.step_begins();
  traffic += 10;
  EXPECT_GE(meter.step_ends(begin, place), 0);
  meter.leave_out([&] { traffic += 500; });
  meter.without([&] {
    traffic += 500;
    std::this_thread::sleep_for(20ms);
    return 0;
  });
  traffic += 7;
  meter.pause(place);
  EXPECT_EQ(place.bytes_sent, 17u);
  EXPECT_EQ(meter.sent(), 17u);
  EXPECT_LT(place.train_seconds, 0.02);
  traffic += 500;  // at the mark
  meter.resume();
  traffic += 3;
  meter.pause(place);
  EXPECT_EQ(place.bytes_sent, 20u);
}

TEST(TrainingMeter, GoesOnFromWhatARunHadTaken) {
  std::uint64_t traffic = 0;
  TrainingMeter meter([&] { return traffic; });
  Place place;
  place.train_seconds = 100;
  place.bytes_sent = 1000;
  meter.go_on_from(place);
  meter.resume();
  const double begin = meter.step_begins();
  traffic += 5;
  meter.step_ends(begin, place);
  meter.pause(place);
  EXPECT_EQ(place.bytes_sent, 1005u);
  EXPECT_EQ(meter.sent(), 5u);
  EXPECT_GE(place.train_seconds, 100);
  EXPECT_LT(meter.seconds(place), 50);
}

}  // namespace
}  // namespace trireme::train
