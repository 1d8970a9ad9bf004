// `trireme explain conv|matmul|lstm|attention`, and an algorithm of convolution by its name: the steps of an operator,
// as text or page.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/ops/draw/drawing.h"

namespace trireme::cli {

// The flags that belong to operators alone.
inline constexpr const char* kOperatorFlags[] = {"--algorithm", "--input",     "--kernel",
                                                 "--size",      "--every-key", "--threads"};

struct OperatorQuestion {
  std::string name, algorithm, input = "4x4", kernel = "3x3", size, threads = "2";
  bool every_key = false;
};
void add_operator_flags(CLI::App& command, OperatorQuestion& question);

// Its names.
std::vector<std::string_view> explained_operators();
// Whether an operator is meant. A name that an algorithm of a collective has too means the operator where one of the
// operators' flags is given.
bool asks_operator(const CLI::App& command, std::string_view name);

// Throws ConfigError where a flag has no meaning for the operator.
ops::OpDrawing explain_operator(const CLI::App& command, const OperatorQuestion& question);

}  // namespace trireme::cli
