#include "trireme/report/compare/comparison_page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trireme/report/compare/comparison_text.h"

namespace trireme::train {
namespace {

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string escape_html(const std::string& text) {
  return replace_all(replace_all(replace_all(text, "&", "&amp;"), "<", "&lt;"), "\"", "&quot;");
}

std::string title_of(const Comparison& comparison) {
  std::string names;
  for (const auto& varied : comparison.varied) names += (names.empty() ? "" : " × ") + varied.name;
  return fmt::format("Compared: {}", names);
}

}  // namespace

std::string comparison_page(const Comparison& comparison) {
  // Inside a script element a "<" could begin its end or a comment; in JSON it can be written otherwise.
  auto data = to_json(comparison).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  data = replace_all(std::move(data), "<", "\\u003c");
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<noscript>This page draws with JavaScript; compare.csv beside it holds the same numbers.</noscript>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n<script>{}{}{}</script>\n</body>\n</html>\n",
      escape_html(title_of(comparison)), kComparisonStyle, data, kComparisonCharts, kComparisonCosts,
      kComparisonScript);
}

}  // namespace trireme::train
