#include "trireme/collective/cost/link_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "trireme/base/error.h"
#include "trireme/base/text/text.h"
#include "trireme/collective/cost/cost_json.h"

namespace trireme {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostPoints = 4096;

Json curve_to_json(const Curve& curve) {
  Json points = Json::array();
  for (const auto& point : curve.points) points.push_back({point.bytes, point.seconds});
  return {{"start_s", curve.start}, {"points", std::move(points)}, {"slope_s_per_byte", curve.slope}};
}

[[noreturn]] void fail(std::string_view where, std::string_view what) {
  throw DataError(fmt::format("link model: {} {}; run `trireme tune` again", where, what));
}

double number(const Json& value, std::string_view where) {
  if (!value.is_number()) fail(where, "is not a number");
  double seconds = value.get<double>();
  if (!std::isfinite(seconds) || seconds < 0) fail(where, "is not a finite number from 0 up");
  return seconds;
}

void check_keys(const Json& object, std::string_view where, std::initializer_list<const char*> keys) {
  if (!object.is_object()) fail(where, "is not an object");
  for (const char* key : keys) {
    if (!object.contains(key)) fail(where, fmt::format("has no '{}'", key));
  }
  for (const auto& item : object.items()) {
    if (std::none_of(keys.begin(), keys.end(), [&](const char* key) { return item.key() == key; })) {
      fail(where, fmt::format("has an unknown key '{}'", clipped(item.key())));
    }
  }
}

Curve curve_from_json(const Json& object, std::string_view where) {
  check_keys(object, where, {"start_s", "points", "slope_s_per_byte"});
  Curve curve;
  curve.start = number(object["start_s"], where);
  curve.slope = number(object["slope_s_per_byte"], where);
  const Json& points = object["points"];
  if (!points.is_array() || points.size() > kMostPoints) fail(where, "has points that are not a short list");
  double last = 0;
  for (const Json& pair : points) {
    if (!pair.is_array() || pair.size() != 2) fail(where, "has a point that is not [bytes, seconds]");
    Curve::Point point{number(pair[0], where), number(pair[1], where)};
    if (point.bytes <= last) fail(where, "has points whose bytes do not ascend");
    last = point.bytes;
    curve.points.push_back(point);
  }
  return curve;
}

}  // namespace

double Curve::operator()(double bytes) const {
  Point before{0, start};
  for (const Point& point : points) {
    if (bytes <= point.bytes) {
      double part = (bytes - before.bytes) / (point.bytes - before.bytes);
      return before.seconds + part * (point.seconds - before.seconds);
    }
    before = point;
  }
  return before.seconds + (bytes - before.bytes) * slope;
}

Json to_json(const LinkModel& model) {
  return {{"message", curve_to_json(model.message)},
          {"gamma_s_per_byte", model.gamma},
          {"copy_s_per_byte", model.copy},
          {"wires", model.wires == Wires::one ? "one" : "many"},
          {"sync_s", model.sync},
          {"memory", curve_to_json(model.memory)},
          {"corrections", CorrectionsJson::of(model.corrections)}};
}

LinkModel link_model_from_json(const Json& object) {
  check_keys(object, "the model",
             {"message", "gamma_s_per_byte", "copy_s_per_byte", "wires", "sync_s", "memory", "corrections"});
  LinkModel model;
  model.message = curve_from_json(object["message"], "'message'");
  model.gamma = number(object["gamma_s_per_byte"], "'gamma_s_per_byte'");
  model.copy = number(object["copy_s_per_byte"], "'copy_s_per_byte'");
  const Json& wires = object["wires"];
  if (wires != "one" && wires != "many") fail("'wires'", "is neither 'one' nor 'many'");
  model.wires = wires == "one" ? Wires::one : Wires::many;
  model.sync = number(object["sync_s"], "'sync_s'");
  model.memory = curve_from_json(object["memory"], "'memory'");
  model.corrections = CorrectionsJson::read(object["corrections"]);
  return model;
}

}  // namespace trireme
