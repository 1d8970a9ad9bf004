// trace.json of a run: base/text/trace.h's text in a file.
#pragma once
#include <filesystem>
#include <span>

#include "trireme/base/text/trace.h"

namespace trireme::train {

// Atomic; throws Error as AtomicFile does.
void write_trace(const std::filesystem::path& path, std::span<const TraceEvent> events);

}  // namespace trireme::train
