#include "trireme/grad/onednn_cap.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <torch/version.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/files/cache_folder.h"
#include "trireme/base/hardware/cpu.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "trireme-onednn-1";
constexpr const char* kHopeless = "(none works)";

fs::path cap_file() { return cache_folder() / "tune" / ("cpu-" + key_of(this_cpu())) / "onednn.json"; }

bool near(const torch::Tensor& x, const torch::Tensor& right) {
  return (x.to(torch::kFloat32) - right).norm().item<double>() < 0.05 * right.norm().item<double>();
}

// As layers do it, each pass against f32.
bool computes_in_bf16() {
  const auto cast = [](const torch::Tensor& x) { return x.to(torch::kBFloat16); };
  const auto x = torch::randn({4, 32, 8, 8}), w = torch::randn({32, 32, 3, 3}), g = torch::randn({4, 32, 6, 6});
  const std::vector<std::int64_t> one{1, 1}, none{0, 0};
  const auto gradients = [&](const torch::Tensor& gradient, const torch::Tensor& input, const torch::Tensor& weight) {
    return at::convolution_backward(gradient, input, weight, at::OptionalIntArrayRef{}, one, none, one, false, none, 1,
                                    {true, true, false});
  };
  const auto theirs = gradients(cast(g), cast(x), cast(w)), right = gradients(g, x, w);
  const auto a = torch::randn({96, 64}), b = torch::randn({64, 80});
  return near(at::conv2d(cast(x), cast(w)), at::conv2d(x, w)) && near(std::get<0>(theirs), std::get<0>(right)) &&
         near(std::get<1>(theirs), std::get<1>(right)) && near(at::mm(cast(a), cast(b)), at::mm(a, b));
}

[[noreturn]] void compute_and_end(const std::string& cap) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) signal(number, SIG_DFL);
  if (!cap.empty()) setenv("DNNL_MAX_CPU_ISA", cap.c_str(), 1);
  try {
    at::set_num_threads(1);  // a team of threads does not survive a fork
    const torch::NoGradGuard no_grad;
    _exit(computes_in_bf16() ? 0 : 1);
  } catch (const std::exception&) {
    _exit(1);
  }
}

std::optional<std::string> stored_cap() {
  std::ifstream file(cap_file());
  std::stringstream text;
  text << file.rdbuf();
  try {
    const auto json = nlohmann::json::parse(text.str());
    if (json.at("format") != kFormat || json.at("libtorch") != TORCH_VERSION) return std::nullopt;
    return json.at("cap").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // not there, damaged or of another version: found anew
  }
}

void keep(const std::string& cap) {
  const auto path = cap_file();
  const nlohmann::json json{{"format", kFormat}, {"libtorch", TORCH_VERSION}, {"cap", cap}};
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  try {
    write_atomically(path, json.dump(2) + "\n");
  } catch (const Error&) {
  }
}

}  // namespace

bool bf16_works(const std::string& cap) {
  constexpr std::chrono::seconds kPatience{20};
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) compute_and_end(cap);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended < 0 && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() > end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return false;
}

std::optional<std::string> find_onednn_cap(const std::function<bool(const std::string& cap)>& works) {
  for (const char* cap : {"", "AVX512_CORE_BF16", "AVX512_CORE", "AVX2"}) {
    if (works(cap)) return cap;
  }
  return std::nullopt;
}

std::optional<std::string> onednn_cap(const std::function<bool(const std::string& cap)>& works) {
  auto known = stored_cap();
  if (!known) {
    known = find_onednn_cap(works).value_or(kHopeless);
    keep(*known);
  }
  if (*known == kHopeless) return std::nullopt;
  return known;
}

}  // namespace trireme
