#include "trireme/cli/help_text.h"

#include <memory>

#include "trireme/base/text/text.h"

namespace trireme::cli {
namespace {

// Line by line; what a line begins with in spaces, its wrapped lines begin with too.
std::string wrapped(std::string_view text, int width) {
  std::string out;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto start = std::min(line.find_first_not_of(' '), line.size());
    out += labelled("", static_cast<int>(start), line.substr(start), width);
  }
  return out;
}

}  // namespace

std::string HelpText::entry(std::string name, const std::string& about) const {
  const int column = width_ >= 72 ? 30 : 6;
  if (about.empty()) return labelled("", 2, name, width_);
  if (2 + display_width(name) + 2 <= column) return labelled("  " + name, column, about, width_);
  return labelled("", 2, name, width_) + labelled("", column, about, width_);
}

std::string HelpText::make_usage(const CLI::App* app, std::string name) const {
  return wrapped(CLI::Formatter::make_usage(app, std::move(name)), width_);
}

std::string HelpText::make_description(const CLI::App* app) const {
  return wrapped(CLI::Formatter::make_description(app), width_);
}

std::string HelpText::make_footer(const CLI::App* app) const { return wrapped(app->get_footer(), width_); }

std::string HelpText::make_subcommand(const CLI::App* command) const {
  return entry(command->get_display_name(true), command->get_description());
}

// A space behind each comma between names, so that many break.
std::string HelpText::make_option(const CLI::Option* option, bool is_positional) const {
  std::string names;
  for (const char c : make_option_name(option, is_positional)) {
    names += c;
    if (c == ',') names += ' ';
  }
  return entry(names + make_option_opts(option), make_option_desc(option));
}

void wrap_help(CLI::App& app, int width) {
  app.formatter(std::make_shared<HelpText>(width));
  for (auto* command : app.get_subcommands([](const CLI::App*) { return true; })) wrap_help(*command, width);
}

}  // namespace trireme::cli
