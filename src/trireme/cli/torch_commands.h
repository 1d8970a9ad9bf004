// What `trireme` leaves to `trireme-torch`, the program beside it that is linked with LibTorch.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::cli {

struct TorchCommand {
  std::string_view name;
  std::string_view summary;
};

inline constexpr std::array kTorchCommands{
    TorchCommand{"train", "Train a model on several workers"},
    TorchCommand{"eval", "Test what was trained"},
    TorchCommand{"predict", "Let what was trained judge images or text"},
    TorchCommand{"compare", "Train variants in turn and compare them"},
    TorchCommand{"profile", "Measure what a step of a model costs here"},
    TorchCommand{"data", "List and fetch data sets"},
};

// Becomes trireme-torch with these arguments. Throws Error if there is none beside this program.
[[noreturn]] void become_torch(char** argv);
// Runs it with these arguments and waits for its end: its exit code. Throws Error if there is none beside this program.
int run_torch(const std::vector<std::string>& arguments);

}  // namespace trireme::cli
