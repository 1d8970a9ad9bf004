#include "trireme/train/checkpoint/checkpoints.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include "tests/forked.h"
#include "tests/train/scratch_folder.h"
#include "trireme/base/error.h"
#include "trireme/train/checkpoint/safetensors.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;

NamedTensors filled(std::int64_t step) {
  return {{"weight", torch::full({64, 100}, static_cast<float>(step))}, {"steps", torch::full({}, step, torch::kLong)}};
}

void expect_holds(const std::filesystem::path& path, std::int64_t step) {
  auto loaded = load_checkpoint(path);
  EXPECT_EQ(loaded.step, step);
  ASSERT_EQ(loaded.tensors.size(), 2);
  for (auto& [name, tensor] : loaded.tensors) EXPECT_TRUE((tensor == step).all().item<bool>()) << name;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Checkpoints, KeepsTheLastAndTheBest) {
  ScratchFolder folder;
  Checkpoints checkpoints(folder / "a/b", 2, true);
  const double metrics[] = {0.5, 0.9, 0.7, 0.9, 0.6};
  for (int i = 0; i < 5; ++i) checkpoints.save(10 * i, filled(10 * i), {{"epoch", fmt::to_string(i)}}, metrics[i]);
  checkpoints.wait();
  EXPECT_THAT(names_in(folder / "a/b"),
              testing::ElementsAre("best.safetensors", "step-00000030.safetensors", "step-00000040.safetensors"));
  EXPECT_EQ(checkpoints.latest().found->step, 40);
  EXPECT_EQ(checkpoints.best().found->step, 10);
  expect_holds(folder / "a/b/best.safetensors", 10);
  expect_holds(folder / "a/b/step-00000030.safetensors", 30);
  auto loaded = load_checkpoint(folder / "a/b/best.safetensors");
  EXPECT_EQ(loaded.metric, 0.9);
  EXPECT_EQ(loaded.metadata, (Metadata{{"epoch", "1"}}));
}

TEST(Checkpoints, ALaterProcessKnowsTheBest) {
  ScratchFolder folder;
  {
    Checkpoints first(folder.path(), 1, true);
    first.save(1, filled(1), {}, -0.25);
    first.save(2, filled(2), {}, NAN);
  }
  Checkpoints second(folder.path(), 1, true);
  second.save(3, filled(3), {}, -0.5);
  EXPECT_EQ(second.best().found->step, 1);
  second.save(4, filled(4), {}, -0.125);
  EXPECT_EQ(second.best().found->step, 4);
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("best.safetensors", "step-00000004.safetensors"));
}

TEST(Checkpoints, SavesWhatTheTensorsHeldWhenAsked) {
  ScratchFolder folder;
  Checkpoints checkpoints(folder.path(), 100, false);
  auto weight = torch::zeros({512, 512}, torch::requires_grad());
  for (int step = 0; step < 8; ++step) {
    checkpoints.save(step, {{"w", weight.t()}});
    torch::NoGradGuard no_grad;
    weight.add_(1);
  }
  checkpoints.wait();
  for (int step = 0; step < 8; ++step) {
    auto loaded = load_checkpoint(folder / fmt::format("step-{:08d}.safetensors", step));
    EXPECT_TRUE((loaded.tensors.at(0).second == step).all().item<bool>());
  }
  EXPECT_FALSE(checkpoints.best().found);
}

TEST(Checkpoints, WhereLowerIsBetterTheBestIsTheLowest) {
  ScratchFolder folder;
  {
    Checkpoints checkpoints(folder.path(), 1, true, /*higher_is_better=*/false);
    checkpoints.save(1, filled(1), {}, 0.5);
    checkpoints.save(2, filled(2), {}, 0.25);
    checkpoints.save(3, filled(3), {}, 0.75);
    EXPECT_EQ(checkpoints.best().found->step, 2);
  }
  Checkpoints later(folder.path(), 1, true, /*higher_is_better=*/false);
  later.save(4, filled(4), {}, 0.3);
  EXPECT_EQ(later.best().found->step, 2);
  later.save(5, filled(5), {}, 0.2);
  EXPECT_EQ(later.best().found->step, 5);
}

TEST(Checkpoints, SkipsABrokenNewest) {
  ScratchFolder folder;
  Checkpoints checkpoints(folder.path(), 5, true);
  EXPECT_FALSE(checkpoints.latest().found);
  for (int step = 1; step <= 3; ++step) checkpoints.save(step, filled(step), {}, step == 1 ? 1 : 0);
  checkpoints.wait();
  auto newest = content(folder / "step-00000003.safetensors");
  put(folder / "step-00000003.safetensors", newest.substr(0, newest.size() - 5));
  auto flipped = content(folder / "step-00000002.safetensors");
  flipped[flipped.size() - 9] ^= 4;
  put(folder / "step-00000002.safetensors", flipped);
  auto search = checkpoints.latest();
  EXPECT_EQ(search.found->step, 1);
  ASSERT_EQ(search.skipped.size(), 2);
  EXPECT_THAT(search.skipped[0], HasSubstr("skipped a broken checkpoint: "));
  EXPECT_THAT(search.skipped[0], HasSubstr("step-00000003.safetensors: tensor"));
  EXPECT_THAT(search.skipped[1], HasSubstr("the file is damaged"));
  EXPECT_THROW(load_checkpoint(folder / "step-00000002.safetensors"), DataError);
  write_safetensors(folder / "step-00000009.safetensors", filled(9));
  EXPECT_THAT(checkpoints.latest().skipped.at(0), HasSubstr("not a checkpoint: there is no trireme.step"));
}

TEST(Checkpoints, GoesOnFromAnEarlierStep) {
  ScratchFolder folder;
  Checkpoints checkpoints(folder.path(), 3, true);
  for (int step = 1; step <= 3; ++step) checkpoints.save(step, filled(step), {}, step);
  checkpoints.forget_after(1);
  EXPECT_EQ(checkpoints.latest().found->step, 1);
  EXPECT_FALSE(checkpoints.best().found);
  put(folder / "step-00000007.safetensors", "broken");
  checkpoints.save(2, filled(2), {}, 0.5);
  EXPECT_EQ(checkpoints.best().found->step, 2);
  EXPECT_TRUE(checkpoints.latest().skipped.empty());
  checkpoints.forget_after(-1);
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(Checkpoints, TellsWhatWentWrongAtTheNextCall) {
  ScratchFolder folder;
  Checkpoints checkpoints(folder / "out", 1, true);
  checkpoints.save(1, filled(1));
  checkpoints.wait();
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small{10'000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  checkpoints.save(2, filled(2));
  auto message = message_of<Error>([&] { checkpoints.save(3, filled(3)); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(message, HasSubstr("step-00000002.safetensors: File too large"));
  EXPECT_EQ(checkpoints.latest().found->step, 1);
  EXPECT_THAT(names_in(folder / "out"), testing::ElementsAre("step-00000001.safetensors"));
  checkpoints.save(4, filled(4));
  EXPECT_EQ(checkpoints.latest().found->step, 4);
  EXPECT_THROW(Checkpoints(folder.path(), 0, true), ConfigError);
  put(folder / "file", "");
  EXPECT_THAT(message_of<Error>([&] { Checkpoints(folder / "file/x", 1, true); }), HasSubstr("Not a directory"));
}

// A child saves without end and is killed; whatever it was doing, the newest that is found is whole.
TEST(Checkpoints, AKillAtAnyMomentLeavesAWholeOne) {
  ScratchFolder folder;
  std::mt19937 random(17);
  std::int64_t reached = 0;
  for (int round = 0; round < 25; ++round) {
    test::Forked child([&]() -> int {
      Checkpoints checkpoints(folder.path(), 2, true);
      auto weight = torch::empty({64, 100});
      auto steps = torch::empty({}, torch::kLong);
      auto data = weight.data_ptr<float>();
      for (std::int64_t step = reached + 1;; ++step) {
        // By hand: LibTorch's threads do not live in a forked child.
        std::fill(data, data + weight.numel(), static_cast<float>(step));
        *steps.data_ptr<std::int64_t>() = step;
        checkpoints.save(step, {{"weight", weight}, {"steps", steps}}, {}, static_cast<double>(step % 5));
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 40000));
    child.kill();
    auto search = latest_checkpoint(folder.path());
    EXPECT_TRUE(search.skipped.empty());
    if (!search.found) continue;
    EXPECT_GE(search.found->step, reached);
    reached = search.found->step;
    expect_holds(search.found->path, reached);
    if (auto best = best_checkpoint(folder.path()).found) expect_holds(best->path, best->step);
  }
  EXPECT_GT(reached, 25);
  Checkpoints cleaner(folder.path(), 1, true);
  for (auto& name : names_in(folder.path())) EXPECT_NE(name[0], '.') << name;
}

}  // namespace
}  // namespace trireme::train
