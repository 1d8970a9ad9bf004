// Training on emulated hosts.
#include "tests/cli/emulation.h"
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

TEST(TrainHosts, TrainsOverTheEmulatedNetwork) {
  TRIREME_NEEDS_EMULATION();
  ScratchFolder folder;
  auto out = folder / "run";
  auto done = run_well(tiny(out, {"--model", "mlp", "--workers", "4", "--hosts", "ns:4", "--bandwidth", "100mbit"}));
  EXPECT_THAT(done.out, HasSubstr("tcp over 4 emulated hosts, 100mbit"));
  auto written = json_in(out / "run.json").dump();
  EXPECT_THAT(written, HasSubstr("\"hosts\":\"ns:4\""));
}

TEST(TrainHosts, WhatIsWrittenOfHostsIsSo) {
  ScratchFolder folder;
  auto done = run(tiny(folder / "run", {"--hosts", "ns:2"}),
                  {.env = {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}}});
  EXPECT_EQ(done.code, 2) << done.err;
  EXPECT_THAT(done.err, HasSubstr("to emulate; give it --hosts"));
}

}  // namespace
}  // namespace trireme::test
