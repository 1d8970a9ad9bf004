// What a step of a model costs one worker, measured by `trireme profile` and kept as JSON; what simulations and plans
// start from. Times are in seconds.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::cluster {

// Of many steps: a tenth were faster than p10, a tenth slower than p90.
struct Quantiles {
  double p10 = 0, p50 = 0, p90 = 0;
  bool operator==(const Quantiles&) const = default;
};
// Zeros of nothing.
Quantiles quantiles_of(std::vector<double> values);

// A piece of the model's chain.
struct LayerProfile {
  std::string name;
  Quantiles forward_s, backward_s;
  double forward_start_s = 0, backward_start_s = 0;  // of these what a batch of any size takes
  std::uint64_t parameter_bytes = 0;
  std::uint64_t activation_bytes = 0;  // kept between forward and backward
  std::uint64_t output_bytes = 0;      // that the next piece is given
  bool splittable = false;             // over a tensor axis
  bool fully_connected = false;        // what --hybrid alexnet splits
  std::uint64_t tensor_bytes = 0;      // all-reduced over that axis, forward and backward together
  bool operator==(const LayerProfile&) const = default;
};

struct GradientProfile {
  std::string name;
  std::size_t elements = 0, rows = 1;
  Quantiles ready_s;  // since backward began
  bool operator==(const GradientProfile&) const = default;
};

// A codec with its default settings, on one core. Per byte of what is encoded, as f32.
struct CodecProfile {
  std::string name;
  double encode_s_per_byte = 0, decode_s_per_byte = 0;
  double ratio = 1;  // bytes of the code over those of what is encoded
  bool operator==(const CodecProfile&) const = default;
};

// How much the gradients of single samples differ (McCandlish, Kaplan, Amodei et al., "An Empirical Model of
// Large-Batch Training", 2018).
struct NoiseProfile {
  double batch = 0;            // samples of a gradient
  double gradient_square = 0;  // |G|², of the true gradient
  double trace = 0;            // tr Σ, of the covariance of a sample's gradient
  double loss = 0;             // where it was measured
  double steps = 0;            // it was measured over; 0: it was not
  // B_noise: a batch of so many samples has as much noise as gradient. 0 where nothing is known.
  double scale() const { return steps > 0 && gradient_square > 0 && trace > 0 ? trace / gradient_square : 0; }
  bool operator==(const NoiseProfile&) const = default;
};

struct Profile {
  std::string file;  // it was read from; not part of it
  std::string model, data, device;
  std::string machine;  // machine_fingerprint() of where it was measured
  int batch = 1;        // samples of a worker and step
  int threads = 1;      // of each worker
  int beside = 1;       // workers that computed at the same time on the host
  int cores = 0;        // of that host; 0: not known
  Quantiles step_s, forward_s, backward_s, optimizer_s;
  std::vector<LayerProfile> layers;        // empty where the model is no chain
  std::vector<GradientProfile> gradients;  // in the order they become ready
  std::vector<CodecProfile> codecs;
  double slowdown = 0;            // θ: of a second of communication in the background, what compute loses
  double turn_s = 0;              // an exchange in the background waits so long for its turn while the worker computes
  double request_s = 0;           // to ask a parameter server of this host and be answered, beside bytes; 0: not known
  double link_request_s = 0;      // the same over the network, with what its messages take; 0: not known
  double resumed_s = 0;           // a step takes so much longer where others have just written its weights
  double server_s_per_byte = 0;   // a server of this host reads or writes its share once; 0: not known
  double pack_s_per_byte = 0;     // to copy gradients into a bucket
  double pass_s_per_byte = 0;     // of the model: a strategy reads or writes it once in its loops; 0: not known
  double copy_s_per_byte = 0;     // of the model: weights into one flat vector, or back
  double update_s_per_byte = 0;   // of the model: the optimizer
  std::vector<double> residuals;  // a step's time over the median, one for each step measured
  NoiseProfile noise;
  double samples = 0;  // of an epoch

  std::size_t gradient_elements() const;
  std::size_t gradient_bytes() const { return 4 * gradient_elements(); }
  // By name. Throws ConfigError that lists those there are.
  const CodecProfile& codec(std::string_view name) const;
  bool operator==(const Profile&) const = default;
};

// Throws DataError: `file:line: key: what was expected`.
Profile load_profile(const std::string& path);
Profile parse_profile(std::string_view json, const std::string& file);
// Throws Error that names the path.
void save_profile(const Profile& profile, const std::string& path);

// Made up, where none was measured: "tiny" (4 layers), "wide-mlp", "resnet50-like", "gpt-like": for tests and
// benchmarks, as of a worker with 10 Tflop/s. Throws ConfigError that lists the names.
Profile example_profile(std::string_view name);
std::span<const std::string_view> example_profiles();

}  // namespace trireme::cluster
