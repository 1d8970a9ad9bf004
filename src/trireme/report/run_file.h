// run.json: what a run was asked for, resolved, and what came of it.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace trireme::train {

// Indented, atomic. Throws Error as AtomicFile does.
void write_run_file(const std::filesystem::path& path, const nlohmann::json& run);
// Throws DataError naming the file and the byte.
nlohmann::json read_run_file(const std::filesystem::path& path);

}  // namespace trireme::train
