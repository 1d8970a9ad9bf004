#include "trireme/cli/torch/profile_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/text/bytes_text.h"
#include "trireme/mesh/choice/mesh_choice.h"

namespace trireme::cli {
namespace {

std::string spread(const cluster::Quantiles& times) {
  return fmt::format("{:.3g} ms ({:.3g} to {:.3g})", 1e3 * times.p50, 1e3 * times.p10, 1e3 * times.p90);
}

std::string layers(const cluster::Profile& profile) {
  if (profile.layers.empty()) return {};
  std::size_t width = 5;
  for (const auto& layer : profile.layers) width = std::max(width, std::min<std::size_t>(layer.name.size(), 32));
  auto text = fmt::format("{:<{}} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "layer", width, "forward ms", "backward ms",
                          "parameters", "kept", "output");
  for (const auto& layer : profile.layers) {
    text += fmt::format("{:<{}} {:>11.3f} {:>11.3f} {:>11} {:>11} {:>11}{}\n", layer.name.substr(0, 32), width,
                        1e3 * layer.forward_s.p50, 1e3 * layer.backward_s.p50, bytes_text(layer.parameter_bytes),
                        bytes_text(layer.activation_bytes), bytes_text(layer.output_bytes),
                        layer.splittable ? "  can be split" : "");
  }
  return text + "\n";
}

std::string codecs(const cluster::Profile& profile) {
  std::string text;
  for (const auto& codec : profile.codecs) {
    if (codec.encode_s_per_byte <= 0) continue;
    text += fmt::format("{:<12} {:>8.2f} GB/s {:>8.2f} GB/s {:>8.1f} ×\n", codec.name, 1e-9 / codec.encode_s_per_byte,
                        1e-9 / std::max(codec.decode_s_per_byte, 1e-15), 1 / std::max(codec.ratio, 1e-9));
  }
  if (text.empty()) return text;
  return fmt::format("{:<12} {:>13} {:>13} {:>10}\n{}\n", "codec", "encode", "decode", "smaller", text);
}

std::string noise(const cluster::Profile& profile) {
  const auto& noise = profile.noise;
  if (noise.steps == 0) return {};
  if (noise.scale() == 0) return "noise of gradients: too large to tell from so few steps (--noise-steps)\n";
  return fmt::format(
      "noise of gradients: |G|² {:.3g}, tr Σ {:.3g}; a batch of {:.0f} samples has as much noise as "
      "gradient (at loss {:.3g}, over {:.0f} steps)\n",
      noise.gradient_square, noise.trace, noise.scale(), noise.loss, noise.steps);
}

}  // namespace

std::string profile_table(const cluster::Profile& profile) {
  auto text = fmt::format("{} on {}, batch {}, {} worker{} at once with {} thread{} each, {}\n\n", profile.model,
                          profile.data, profile.batch, profile.beside, profile.beside == 1 ? "" : "s", profile.threads,
                          profile.threads == 1 ? "" : "s", profile.device);
  text += layers(profile) + codecs(profile);
  text += fmt::format("forward    {}\nbackward   {}\noptimizer  {}\nstep       {} without exchange\n",
                      spread(profile.forward_s), spread(profile.backward_s), spread(profile.optimizer_s),
                      spread(profile.step_s));
  text +=
      fmt::format("gradients  {} in {} tensors; compute loses {:.0f} % of the time that all-reduces take beside it\n",
                  bytes_text(profile.gradient_bytes()), profile.gradients.size(), 100 * profile.slowdown);
  return text + noise(profile);
}

}  // namespace trireme::cli
