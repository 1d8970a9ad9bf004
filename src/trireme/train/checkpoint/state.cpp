#include "trireme/train/checkpoint/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "trireme/base/error.h"
#include "trireme/train/checkpoint/safetensors_header.h"
#include "trireme/train/group/gather_text.h"

namespace trireme::train {
namespace {

constexpr const char* kKey = "trireme";

nlohmann::json story(const LoadedCheckpoint& checkpoint, const std::string& file) {
  auto found = checkpoint.metadata.find(kKey);
  if (found == checkpoint.metadata.end()) {
    throw DataError(fmt::format("{}: not a checkpoint of trireme train (no '{}' in its metadata)", file, kKey));
  }
  auto json = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw DataError(fmt::format("{}: the metadata '{}' is not JSON", file, kKey));
  return json;
}

}  // namespace

NamedTensors tensors_under(const LoadedCheckpoint& checkpoint, std::string_view prefix) {
  NamedTensors found;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (name.starts_with(prefix)) found.emplace_back(name.substr(prefix.size()), tensor);
  }
  return found;
}

void share(LoadedCheckpoint& checkpoint, Communicator& world) {
  if (world.size() == 1) return;
  nlohmann::json outline{{"metadata", checkpoint.metadata}, {"tensors", nlohmann::json::array()}};
  for (const auto& [name, tensor] : checkpoint.tensors) {
    outline["tensors"].push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  }
  auto text = outline.dump();
  broadcast_text(world, text);
  if (world.rank() != 0) {
    outline = nlohmann::json::parse(text);
    checkpoint.metadata = outline["metadata"].get<Metadata>();
    for (const auto& row : outline["tensors"]) {
      auto type = static_cast<torch::ScalarType>(row[1].get<int>());
      checkpoint.tensors.emplace_back(row[0], torch::empty(row[2].get<std::vector<std::int64_t>>(), type));
    }
  }
  for (auto& [name, tensor] : checkpoint.tensors) {
    world.broadcast(View(tensor.data_ptr(), tensor.nbytes(), DType::u8));
  }
}

NamedTensors model_tensors(torch::nn::Module& model) {
  NamedTensors tensors;
  std::set<std::string> names;
  for (const auto& group : {model.named_parameters(), model.named_buffers()}) {
    for (const auto& item : group) {
      if (item.value().defined() && names.insert(item.key()).second) tensors.emplace_back(item.key(), item.value());
    }
  }
  return tensors;
}

Keepsake keep(const NamedTensors& model, const NamedTensors& optimizer, const RateSchedule& schedule,
              const Place& place, const Config& config, const Objective& objective, const data::Look& look) {
  Keepsake kept;
  for (const auto& [name, tensor] : model) kept.tensors.emplace_back(fmt::format("{}{}", kOfModel, name), tensor);
  for (const auto& [name, tensor] : optimizer) {
    kept.tensors.emplace_back(fmt::format("{}{}", kOfOptimizer, name), tensor);
  }
  nlohmann::json json{{"format", 1},
                      {"config", to_json(config)},
                      {"step", place.step},
                      {"epoch", place.epoch},
                      {"position", place.position},
                      {"train_seconds", place.train_seconds},
                      {"best", place.best},
                      {"loss", objective.loss_text},
                      {"metric", objective.first().name},
                      {"target_seconds", place.target_seconds},
                      {"bytes_sent", place.bytes_sent},
                      {"schedule", nlohmann::json::object()},
                      {"data",
                       {{"name", look.name},
                        {"input", look.shape.input},
                        {"classes", look.shape.classes},
                        {"text", look.shape.text},
                        {"values", look.shape.values},
                        {"labels", look.labels},
                        {"mean", look.mean},
                        {"deviation", look.deviation}}}};
  for (const auto& [name, value] : schedule.state()) json["schedule"][name] = value;
  // Names of classes are names of folders, and those may be any bytes.
  kept.metadata[kKey] = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return kept;
}

void restore_model(torch::nn::Module& model, const LoadedCheckpoint& checkpoint, const std::string& file) {
  torch::NoGradGuard no_grad;
  auto saved = tensors_under(checkpoint, kOfModel);
  auto tensors = model_tensors(model);
  std::map<std::string, torch::Tensor> by_name(saved.begin(), saved.end());
  for (auto& [name, tensor] : tensors) {
    auto found = by_name.find(name);
    if (found == by_name.end()) {
      throw DataError(fmt::format("{}: a checkpoint of another model: it has no '{}'", file, name));
    }
    if (found->second.sizes() != tensor.sizes()) {
      throw DataError(fmt::format("{}: a checkpoint of another model: '{}' is [{}] there and [{}] here", file, name,
                                  fmt::join(found->second.sizes(), ", "), fmt::join(tensor.sizes(), ", ")));
    }
  }
  if (by_name.size() != tensors.size()) {
    throw DataError(fmt::format("{}: a checkpoint of another model: {} tensors there, {} here", file, by_name.size(),
                                tensors.size()));
  }
  for (auto& [name, tensor] : tensors) tensor.copy_(by_name[name]);
}

Place restore(torch::nn::Module& model, Optimizer& optimizer, RateSchedule& schedule,
              const LoadedCheckpoint& checkpoint, const std::string& file) {
  story(checkpoint, file);  // is it one of ours?
  restore_model(model, checkpoint, file);
  try {
    optimizer.load(tensors_under(checkpoint, kOfOptimizer));
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("{}: {}; was it made with another --optimizer, or a --compress that changes its momentum?", file,
                    error.what()));
  }
  return restore_place(schedule, checkpoint, file);
}

Place restore_place(RateSchedule& schedule, const LoadedCheckpoint& checkpoint, const std::string& file) {
  auto json = story(checkpoint, file);
  try {
    std::vector<std::pair<std::string, double>> state;
    for (const auto& [name, value] : json.at("schedule").items()) state.emplace_back(name, value.get<double>());
    schedule.load(state);
    // Once accuracy was all there was.
    using Best = std::map<std::string, double>;
    return {json.at("step"),
            json.at("epoch"),
            json.at("position"),
            json.at("train_seconds"),
            json.contains("best") ? json["best"].get<Best>() : Best{{"accuracy", json.at("best_accuracy")}},
            json.at("target_seconds"),
            json.value("bytes_sent", std::uint64_t{0})};
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: its metadata lacks where the run was", file));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}; was it made with another --schedule?", file, error.what()));
  }
}

void check_same_objective(const Objective& objective, const LoadedCheckpoint& checkpoint, const std::string& file) {
  const auto json = story(checkpoint, file);
  const auto check = [&](const char* key, std::string_view flag, const std::string& here) {
    const auto there = json.value(key, here);  // older ones do not say
    if (there == here) return;
    throw ConfigError(fmt::format("{} {}: {} was made with {}; leave it out, or begin anew in another --out", flag,
                                  here, file, there));
  };
  try {
    check("loss", "--loss", objective.loss_text);
    check("metric", "--metric", objective.first().name);
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: its metadata has no text where the loss and the metric are", file));
  }
}

nlohmann::json config_of(const LoadedCheckpoint& checkpoint, const std::string& file) {
  auto json = story(checkpoint, file);
  if (!json.contains("config")) throw DataError(fmt::format("{}: its metadata lacks the configuration", file));
  return json["config"];
}

data::Look look_in(const LoadedCheckpoint& checkpoint, const std::string& file) {
  auto json = story(checkpoint, file);
  try {
    const auto& data = json.at("data");
    data::Look look{data.at("name"),
                    {data.at("input"), data.at("classes"), data.at("text"), data.value("values", std::int64_t{0})},
                    data.at("labels"),
                    data.at("mean"),
                    data.at("deviation")};
    if (look.mean.size() == look.deviation.size()) return look;
  } catch (const nlohmann::json::exception&) {
  }
  throw DataError(fmt::format("{}: its metadata lacks what the data looked like", file));
}

}  // namespace trireme::train
