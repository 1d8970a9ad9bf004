#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trireme/pages/page.h"
#include "trireme/report/compare/comparison_text.h"

namespace trireme::train {
namespace {

std::string title_of(const Comparison& comparison) {
  std::string names;
  for (const auto& varied : comparison.varied) names += (names.empty() ? "" : " × ") + varied.name;
  return fmt::format("Compared: {}", names);
}

}  // namespace

std::string comparison_page(const Comparison& comparison) {
  auto data = to_json(comparison).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return pages::render(pages::View::comparison, title_of(comparison), data);
}

}  // namespace trireme::train
