// The commands that need LibTorch. `trireme` becomes this program when one of them is asked for.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "trireme/base/error.h"
#include "trireme/cli/arguments.h"
#include "trireme/cli/torch/command.h"

namespace trireme::cli {
namespace {
std::vector<std::string> given_arguments;
}
const std::vector<std::string>& program_arguments() { return given_arguments; }
}  // namespace trireme::cli

namespace {

// LibTorch's messages go on for pages; the first line says what is wrong.
std::string first_line(const char* text) {
  std::string line(text);
  return line.substr(0, line.find('\n'));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Trireme: distributed deep-learning training for C++ on LibTorch", "trireme"};
  app.require_subcommand(1);
  trireme::cli::add_train(app);
  trireme::cli::add_eval(app);
  trireme::cli::add_predict(app);
  trireme::cli::add_compare(app);
  trireme::cli::add_profile(app);
  trireme::cli::add_bench_ddp(app);
  trireme::cli::add_data(app);
  if (argc > 2) trireme::cli::given_arguments.assign(argv + 2, argv + argc);
  int code = 1;
  try {
    auto words = trireme::cli::normalize_arguments(argc, argv);
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(std::move(words));
    code = 0;
  } catch (const trireme::cli::Exit& exit) {
    code = exit.code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      code = app.exit(error);
    } else {
      std::fprintf(stderr, "trireme: %s\n", error.what());
      code = 2;
    }
  } catch (const trireme::Error& error) {
    std::fprintf(stderr, "trireme: %s\n", error.what());
    code = error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trireme: %s\n", first_line(error.what()).c_str());
  }
  // LibTorch's static destructors take time and have nothing to give back.
  std::fflush(nullptr);
  std::_Exit(code);
}
