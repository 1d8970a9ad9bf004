// The one program. Each subcommand lives in a file of its own; here errors become one line and an exit code.
#include <algorithm>
#include <cstdio>
#include <exception>

#include "trireme/base/error.h"
#include "trireme/cli/arguments.h"
#include "trireme/cli/command.h"

int main(int argc, char** argv) {
  CLI::App app{"Trireme: distributed deep-learning training for C++ on LibTorch", "trireme"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "trireme 0.1.0");
  trireme::cli::add_check(app);
  trireme::cli::add_cost(app);
  trireme::cli::add_explain(app);
  trireme::cli::add_run(app);
  trireme::cli::add_tune(app);
  trireme::cli::add_bench(app);
  try {
    auto words = trireme::cli::normalize_arguments(argc, argv);
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(std::move(words));
  } catch (const trireme::cli::Exit& exit) {
    return exit.code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "trireme: %s\n", error.what());
    return 2;
  } catch (const trireme::Error& error) {
    std::fprintf(stderr, "trireme: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trireme: %s\n", error.what());
    return 1;
  }
}
