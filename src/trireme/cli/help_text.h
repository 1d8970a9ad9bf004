// --help, broken between words to the width of the terminal.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace trireme::cli {

class HelpText : public CLI::Formatter {
 public:
  explicit HelpText(int width) : width_(width) {}

  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;

 private:
  // What is called so, and what that is, beside it or below.
  std::string entry(std::string name, const std::string& about) const;
  const int width_;
};

// For the app and all its subcommands.
void wrap_help(CLI::App& app, int width);

}  // namespace trireme::cli
