#include "trireme/pages/page.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "trireme/pages/files.h"

namespace trireme::pages {
namespace {

// The scripts are one script, in this order.
struct Parts {
  View view;
  std::string_view without_script;
  std::vector<std::string_view> styles, scripts;
};

const Parts& parts_of(View view) {
  static const std::vector<Parts> all{
      {View::collective,
       "This page draws with JavaScript; `trireme explain` without --html prints the same as text.",
       {"common.css", "collective.css"},
       {"common.js", "collective_state.js", "collective_drawing.js", "collective_page.js"}},
      {View::pipeline,
       "This page draws with JavaScript; `trireme explain` without --html prints the same as text.",
       {"common.css", "pipeline.css"},
       {"common.js", "pipeline_chart.js", "pipeline_page.js"}},
      {View::comparison,
       "This page draws with JavaScript; compare.csv beside it holds the same numbers.",
       {"common.css", "comparison.css"},
       {"common.js", "comparison_charts.js", "comparison_costs.js", "comparison_measures.js", "comparison_page.js"}},
      {View::steps,
       "This page draws with JavaScript; `trireme explain` without --html prints the same as text.",
       {"common.css", "steps.css"},
       {"common.js", "steps_page.js"}}};
  return *std::ranges::find(all, view, &Parts::view);
}

std::string_view text_of(std::string_view name) {
  auto found = std::ranges::find(files(), name, &File::name);
  if (found == files().end()) throw std::logic_error("src/trireme/pages has no file " + std::string(name));
  return found->text;
}

std::string join(const std::vector<std::string_view>& names) {
  std::string all;
  for (std::string_view name : names) all += text_of(name);
  return all;
}

std::string replace(std::string_view text, std::string_view characters, const std::vector<std::string_view>& by) {
  std::string result;
  result.reserve(text.size());
  for (char c : text) {
    std::size_t which = characters.find(c);
    which == std::string_view::npos ? result += c : result += by[which];
  }
  return result;
}

}  // namespace

std::string escape_html(std::string_view text) {
  return replace(text, "&<>\"'", {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"});
}

// In JSON these stand in strings alone, where they may be written by their number.
std::string escape_json(std::string_view json) { return replace(json, "<>&", {"\\u003c", "\\u003e", "\\u0026"}); }

std::string render(View view, std::string_view title, std::string_view data) {
  const Parts& parts = parts_of(view);
  auto value = [&](std::string_view name) -> std::string {
    if (name == "title") return escape_html(title);
    if (name == "style") return join(parts.styles);
    if (name == "without_script") return escape_html(parts.without_script);
    if (name == "data") return escape_json(data);
    if (name == "script") return join(parts.scripts);
    throw std::logic_error("shell.html: {{" + std::string(name) + "}} has no value");
  };
  // One pass: braces within what is filled in are text.
  std::string page;
  std::string_view shell = text_of("shell.html");
  for (std::size_t at; (at = shell.find("{{")) != std::string_view::npos;) {
    std::size_t end = shell.find("}}", at);
    page += shell.substr(0, at);
    page += value(shell.substr(at + 2, end - at - 2));
    shell.remove_prefix(end + 2);
  }
  return page += shell;
}

}  // namespace trireme::pages
