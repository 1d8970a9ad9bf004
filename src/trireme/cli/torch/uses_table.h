// What a model's layers ran, as a table.
#pragma once
#include <string>
#include <vector>

#include "trireme/operators/settings.h"

namespace trireme::cli {

// A line a layer, operator, shape and pass, the header first.
std::string uses_table(const std::vector<operators::Use>& uses);

}  // namespace trireme::cli
