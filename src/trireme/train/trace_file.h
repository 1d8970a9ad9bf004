// trace.json of a run: plan/trace.h's text in a file.
#pragma once
#include <filesystem>
#include <span>

#include "trireme/plan/trace.h"

namespace trireme::train {

using plan::TraceEvent;

// Atomic; throws Error as AtomicFile does.
void write_trace(const std::filesystem::path& path, std::span<const TraceEvent> events);

}  // namespace trireme::train
