// `trireme explain pipeline:NAME`: the Gantt chart of a pipeline schedule, as text, page or JSON.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace trireme::cli {

inline constexpr std::string_view kPipelinePrefix = "pipeline:";
// The flags that belong to pipelines alone.
inline constexpr const char* kPipelineFlags[] = {"--stages", "--micro-batches", "--chunks", "--forward", "--backward"};

struct PipelineQuestion {
  std::string stages = "4", micro_batches = "8", chunks = "2", forward = "1", backward = "2";
};
void add_pipeline_flags(CLI::App& command, PipelineQuestion& question);

// Prints the text, or the JSON object; where `html` names a file, returns the page to write there.
std::string explain_pipeline(std::string_view name, const CLI::App& command, const PipelineQuestion& question,
                             bool html, bool full, bool json);

}  // namespace trireme::cli
