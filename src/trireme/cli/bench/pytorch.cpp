#include "trireme/cli/bench/pytorch.h"

#include <chrono>

#include "trireme/base/error.h"
#include "trireme/base/files/cache_folder.h"
#include "trireme/cli/bench/rank_group.h"

namespace trireme::bench {

std::vector<PyTorch> pytorch_among(const std::vector<std::string>& pythons) {
  std::vector<PyTorch> found;
  for (const auto& python : pythons) {
    Output output;
    auto child =
        start_child({python, "-W", "ignore", "-c", "import torch.distributed; print(torch.__version__.split('+')[0])"},
                    output.fd());
    if (child.finish(std::chrono::seconds(60)) == 0) found.push_back({python, output.first_line()});
  }
  return found;
}

std::vector<PyTorch> pytorch_here() {
  auto found = pytorch_among({"/usr/bin/python3", (cache_folder() / "peers/pytorch/bin/python3").string()});
  if (found.empty()) throw ConfigError("--peers pytorch: there is no PyTorch; run: ./trireme packages peers");
  return found;
}

}  // namespace trireme::bench
