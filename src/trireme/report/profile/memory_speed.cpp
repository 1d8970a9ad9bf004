#include "trireme/report/profile/memory_speed.h"

#include <cstring>

#include "trireme/base/clock.h"
#include "trireme/base/median.h"

namespace trireme::train {
namespace {

// The usual time of `act`, each time after an interlude and `prepare`.
template <typename Prepare, typename Act>
double usual_seconds(Interlude& interlude, const Prepare& prepare, const Act& act) {
  constexpr int kTimes = 9;
  std::vector<double> times;
  for (int k = 0; k < kTimes; ++k) {
    interlude();
    prepare(k);
    const double begin = now_seconds();
    act();
    asm volatile("" ::: "memory");
    times.push_back(now_seconds() - begin);
  }
  return median(times);
}

// As much memory as a model has, within reason.
std::size_t like_model(std::size_t bytes) { return std::clamp<std::size_t>(bytes, 1 << 16, 16 << 20); }

}  // namespace

double copy_s_per_byte(std::size_t bytes, Interlude& interlude) {
  bytes = like_model(bytes);
  std::vector<char> from(bytes), to(bytes);
  return usual_seconds(
             interlude, [&](int k) { std::ranges::fill(from, static_cast<char>(k)); },
             [&] { std::memcpy(to.data(), from.data(), bytes); }) /
         static_cast<double>(bytes);
}

double pass_s_per_byte(std::size_t bytes, Interlude& interlude) {
  constexpr int kTouched = 3;
  const std::size_t elements = like_model(bytes) / sizeof(float);
  std::vector<float> own(elements, 1.0f), theirs(elements, 2.0f);
  const double seconds = usual_seconds(
      interlude, [](int) {},
      [&] {
        for (std::size_t i = 0; i < elements; ++i) own[i] += 0.5f * (theirs[i] - own[i]);
      });
  return seconds / static_cast<double>(kTouched * elements * sizeof(float));
}

double download_s_per_byte(const std::vector<torch::Tensor>& parameters, const torch::Device& device,
                           std::size_t bytes) {
  if (device.is_cpu()) return 0;
  torch::NoGradGuard no_grad;
  std::vector<double> times;
  for (int k = 0; k < 4; ++k) {
    const double begin = now_seconds();
    for (const auto& parameter : parameters) (void)parameter.detach().to(torch::kCPU);
    if (k > 0) times.push_back(now_seconds() - begin);
  }
  return median(times) / static_cast<double>(bytes);
}

}  // namespace trireme::train
