// Profiles as JSON.
#include <fmt/format.h>

#include "trireme/base/files/atomic_file.h"
#include "trireme/base/text/json_file.h"
#include "trireme/cluster/profile/profile_json.h"

namespace trireme::cluster {
namespace {

using nlohmann::ordered_json;
using JsonPlace = JsonFile::Place;

constexpr std::string_view kProfileFormat = "trireme-profile-1";
constexpr std::uint64_t kMost = std::uint64_t{1} << 46;  // elements or bytes: sums of them stay far from overflow

ordered_json json_of(const Quantiles& times) { return {{"p10", times.p10}, {"p50", times.p50}, {"p90", times.p90}}; }

Quantiles quantiles(const JsonFile& file, const JsonPlace& at) {
  file.only(at, {"p10", "p50", "p90"});
  const Quantiles all{file.number(at / "p10"), file.number(at / "p50"), file.number(at / "p90")};
  if (all.p10 > all.p50 || all.p50 > all.p90) file.fail(at, "p10 ≤ p50 ≤ p90 was expected");
  return all;
}

// A whole number in a range.
std::uint64_t whole(const JsonFile& file, const JsonPlace& at, std::uint64_t least, std::uint64_t most) {
  const auto number = file.count(at);
  if (number < least || number > most) {
    file.fail(at, fmt::format("a whole number from {} to {} was expected, not {}", least, most, number));
  }
  return number;
}

bool flag(const JsonFile& file, const JsonPlace& at) {
  if (!file.has(at) || !file.root().at(at).is_boolean()) file.fail(at, "true or false was expected");
  return file.root().at(at).get<bool>();
}

ordered_json json_of(const LayerProfile& layer) {
  return {{"name", layer.name},
          {"forward_s", json_of(layer.forward_s)},
          {"backward_s", json_of(layer.backward_s)},
          {"parameter_bytes", layer.parameter_bytes},
          {"activation_bytes", layer.activation_bytes},
          {"output_bytes", layer.output_bytes},
          {"forward_start_s", layer.forward_start_s},
          {"backward_start_s", layer.backward_start_s},
          {"splittable", layer.splittable},
          {"fully_connected", layer.fully_connected},
          {"tensor_bytes", layer.tensor_bytes}};
}

LayerProfile layer(const JsonFile& file, const JsonPlace& at) {
  file.only(at, {"name", "forward_s", "backward_s", "parameter_bytes", "activation_bytes", "output_bytes", "splittable",
                 "fully_connected", "tensor_bytes", "forward_start_s", "backward_start_s"});
  // Profiles that do not know it have none.
  const auto start = [&](const char* key) { return file.has(at / key) ? file.number(at / key) : 0; };
  return {.name = file.text(at / "name"),
          .forward_s = quantiles(file, at / "forward_s"),
          .backward_s = quantiles(file, at / "backward_s"),
          .forward_start_s = start("forward_start_s"),
          .backward_start_s = start("backward_start_s"),
          .parameter_bytes = whole(file, at / "parameter_bytes", 0, kMost),
          .activation_bytes = whole(file, at / "activation_bytes", 0, kMost),
          .output_bytes = whole(file, at / "output_bytes", 0, kMost),
          .splittable = flag(file, at / "splittable"),
          .fully_connected = file.has(at / "fully_connected") && flag(file, at / "fully_connected"),
          .tensor_bytes = whole(file, at / "tensor_bytes", 0, kMost)};
}

ordered_json json_of(const GradientProfile& gradient) {
  return {{"name", gradient.name},
          {"elements", gradient.elements},
          {"rows", gradient.rows},
          {"ready_s", json_of(gradient.ready_s)}};
}

GradientProfile gradient(const JsonFile& file, const JsonPlace& at) {
  file.only(at, {"name", "elements", "rows", "ready_s"});
  GradientProfile one{.name = file.text(at / "name"),
                      .elements = whole(file, at / "elements", 0, kMost),
                      .rows = whole(file, at / "rows", 1, kMost),
                      .ready_s = quantiles(file, at / "ready_s")};
  if (one.elements % one.rows != 0) file.fail(at / "rows", fmt::format("must divide the {} elements", one.elements));
  return one;
}

ordered_json json_of(const CodecProfile& codec) {
  return {{"name", codec.name},
          {"encode_s_per_byte", codec.encode_s_per_byte},
          {"decode_s_per_byte", codec.decode_s_per_byte},
          {"ratio", codec.ratio}};
}

CodecProfile codec(const JsonFile& file, const JsonPlace& at) {
  file.only(at, {"name", "encode_s_per_byte", "decode_s_per_byte", "ratio"});
  return {file.text(at / "name"), file.number(at / "encode_s_per_byte"), file.number(at / "decode_s_per_byte"),
          file.number(at / "ratio")};
}

ordered_json json_of(const NoiseProfile& noise) {
  return {{"batch", noise.batch},
          {"gradient_square", noise.gradient_square},
          {"trace", noise.trace},
          {"loss", noise.loss},
          {"steps", noise.steps}};
}

// Estimates of squares may come out below zero.
NoiseProfile noise(const JsonFile& file, const JsonPlace& at) {
  constexpr double kAny = std::numeric_limits<double>::lowest();
  file.only(at, {"batch", "gradient_square", "trace", "loss", "steps"});
  return {file.number(at / "batch"), file.number(at / "gradient_square", kAny), file.number(at / "trace", kAny),
          file.number(at / "loss", kAny), file.number(at / "steps")};
}

template <typename Part>
ordered_json list_of(const std::vector<Part>& parts) {
  auto list = ordered_json::array();
  for (const auto& part : parts) list.push_back(json_of(part));
  return list;
}

template <typename Read>
auto each(const JsonFile& file, const JsonPlace& at, const Read& read) {
  std::vector<decltype(read(file, at))> parts;
  const auto count = file.array(at).size();
  parts.reserve(count);
  for (std::size_t i = 0; i < count; ++i) parts.push_back(read(file, at / i));
  return parts;
}

void check_order(const JsonFile& file, const Profile& profile) {
  const JsonPlace at("/gradients");
  if (profile.gradients.empty()) file.fail(at, "at least one gradient was expected");
  for (std::size_t i = 1; i < profile.gradients.size(); ++i) {
    if (profile.gradients[i].ready_s.p50 >= profile.gradients[i - 1].ready_s.p50) continue;
    file.fail(at / i / "ready_s" / "p50", "a time no earlier than that of the gradient before it was expected");
  }
}

}  // namespace

Profile parse_profile(std::string_view text, const std::string& name) {
  const JsonFile file(text, name);
  const JsonPlace top;
  file.only(top, {"format",
                  "model",
                  "data",
                  "device",
                  "machine",
                  "batch",
                  "threads",
                  "beside",
                  "cores",
                  "samples",
                  "step_s",
                  "forward_s",
                  "backward_s",
                  "optimizer_s",
                  "slowdown",
                  "turn_s",
                  "request_s",
                  "link_request_s",
                  "resumed_s",
                  "server_s_per_byte",
                  "pack_s_per_byte",
                  "pass_s_per_byte",
                  "copy_s_per_byte",
                  "update_s_per_byte",
                  "noise",
                  "layers",
                  "gradients",
                  "codecs",
                  "residuals"});
  if (file.text(top / "format") != kProfileFormat)
    file.fail(top / "format", fmt::format("\"{}\" was expected", kProfileFormat));
  Profile profile;
  profile.file = name;
  profile.model = file.text(top / "model");
  profile.data = file.text(top / "data");
  profile.device = file.text(top / "device");
  profile.machine = file.text(top / "machine");
  profile.batch = static_cast<int>(whole(file, top / "batch", 1, 1 << 30));
  profile.threads = static_cast<int>(whole(file, top / "threads", 1, 1 << 20));
  profile.beside = static_cast<int>(whole(file, top / "beside", 1, 1 << 20));
  if (file.has(top / "cores")) profile.cores = static_cast<int>(whole(file, top / "cores", 0, 1 << 20));
  profile.samples = file.number(top / "samples");
  profile.step_s = quantiles(file, top / "step_s");
  profile.forward_s = quantiles(file, top / "forward_s");
  profile.backward_s = quantiles(file, top / "backward_s");
  profile.optimizer_s = quantiles(file, top / "optimizer_s");
  profile.slowdown = file.number(top / "slowdown");
  if (profile.slowdown > 1) file.fail(top / "slowdown", "a number from 0 to 1 was expected");
  if (file.has(top / "turn_s")) profile.turn_s = file.number(top / "turn_s");
  if (file.has(top / "request_s")) profile.request_s = file.number(top / "request_s");
  if (file.has(top / "link_request_s")) profile.link_request_s = file.number(top / "link_request_s");
  if (file.has(top / "resumed_s")) profile.resumed_s = file.number(top / "resumed_s");
  if (file.has(top / "server_s_per_byte")) profile.server_s_per_byte = file.number(top / "server_s_per_byte");
  profile.pack_s_per_byte = file.number(top / "pack_s_per_byte");
  if (file.has(top / "pass_s_per_byte")) profile.pass_s_per_byte = file.number(top / "pass_s_per_byte");
  profile.copy_s_per_byte = file.number(top / "copy_s_per_byte");
  profile.update_s_per_byte = file.number(top / "update_s_per_byte");
  profile.noise = noise(file, top / "noise");
  profile.layers = each(file, top / "layers", layer);
  profile.gradients = each(file, top / "gradients", gradient);
  profile.codecs = each(file, top / "codecs", codec);
  profile.residuals =
      each(file, top / "residuals", [](const JsonFile& all, const JsonPlace& at) { return all.number(at); });
  check_order(file, profile);
  return profile;
}

Profile load_profile(const std::string& path) { return parse_profile(read_text(path), path); }

ordered_json to_json(const Profile& profile) {
  return {{"format", kProfileFormat},
          {"model", profile.model},
          {"data", profile.data},
          {"device", profile.device},
          {"machine", profile.machine},
          {"batch", profile.batch},
          {"threads", profile.threads},
          {"beside", profile.beside},
          {"cores", profile.cores},
          {"samples", profile.samples},
          {"step_s", json_of(profile.step_s)},
          {"forward_s", json_of(profile.forward_s)},
          {"backward_s", json_of(profile.backward_s)},
          {"optimizer_s", json_of(profile.optimizer_s)},
          {"slowdown", profile.slowdown},
          {"turn_s", profile.turn_s},
          {"request_s", profile.request_s},
          {"link_request_s", profile.link_request_s},
          {"resumed_s", profile.resumed_s},
          {"server_s_per_byte", profile.server_s_per_byte},
          {"pack_s_per_byte", profile.pack_s_per_byte},
          {"pass_s_per_byte", profile.pass_s_per_byte},
          {"copy_s_per_byte", profile.copy_s_per_byte},
          {"update_s_per_byte", profile.update_s_per_byte},
          {"noise", json_of(profile.noise)},
          {"layers", list_of(profile.layers)},
          {"gradients", list_of(profile.gradients)},
          {"codecs", list_of(profile.codecs)},
          {"residuals", profile.residuals}};
}

void save_profile(const Profile& profile, const std::string& path) {
  write_atomically(path, to_json(profile).dump(1) + "\n");
}

}  // namespace trireme::cluster
