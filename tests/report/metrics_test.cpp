#include "trireme/report/metrics.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/train/scratch_folder.h"
#include "trireme/base/error.h"

namespace trireme::train {
namespace {

TEST(Metrics, EveryLineIsThereAtOnce) {
  ScratchFolder folder;
  auto path = folder / "metrics.jsonl";
  put(path, "of another run\n");
  MetricsFile file(path);
  EXPECT_EQ(content(path), "");
  file.append({{"step", 1}, {"loss", 0.5}});
  EXPECT_EQ(content(path), "{\"loss\":0.5,\"step\":1}\n");
  file.append({{"step", 2}, {"loss", NAN}, {"note", "a\nb"}});
  EXPECT_EQ(content(path), "{\"loss\":0.5,\"step\":1}\n{\"loss\":null,\"note\":\"a\\nb\",\"step\":2}\n");
}

TEST(Metrics, AResumedRunGoesOnFromItsStep) {
  ScratchFolder folder;
  auto path = folder / "metrics.jsonl";
  put(path,
      "{\"step\":1}\n{\"event\":\"start\"}\ngarbage\n{\"step\":2}\n{\"step\":3}\n{\"step\":2,\"epoch\":1}\n{\"st");
  MetricsFile file(path, 2);
  file.append({{"step", 3}, {"again", true}});
  EXPECT_EQ(content(path),
            "{\"step\":1}\n{\"event\":\"start\"}\n{\"step\":2}\n{\"step\":2,\"epoch\":1}\n"
            "{\"again\":true,\"step\":3}\n");
  EXPECT_EQ(folder.files(), 1);
  MetricsFile fresh(folder / "new.jsonl", 7);
  fresh.append({{"step", 8}});
  EXPECT_EQ(content(folder / "new.jsonl"), "{\"step\":8}\n");
}

TEST(Metrics, AFullDiskLeavesWholeLines) {
  ScratchFolder folder;
  auto path = folder / "metrics.jsonl";
  MetricsFile file(path);
  file.append({{"step", 1}});
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small{16, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  auto message = message_of<Error>([&] { file.append({{"step", 2}, {"text", "long"}}); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(message, testing::HasSubstr("metrics.jsonl: File too large"));
  EXPECT_EQ(content(path), "{\"step\":1}\n");
}

}  // namespace
}  // namespace trireme::train
