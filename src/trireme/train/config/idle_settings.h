// Settings that do nothing under the others: whoever gives one by hand is told so.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "trireme/train/config/config.h"

namespace trireme::train {

// What the setting of that key would need to have an effect, in words; nothing where it has one. `config` is checked.
std::optional<std::string> idle_without(const Config& config, std::string_view key);

}  // namespace trireme::train
