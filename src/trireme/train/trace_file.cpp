#include "trireme/train/trace_file.h"

#include "trireme/train/atomic_file.h"

namespace trireme::train {

void write_trace(const std::filesystem::path& path, std::span<const TraceEvent> events) {
  AtomicFile file(path);
  plan::trace_text(events, [&](std::string_view text) { file.write(text); });
  file.commit();
}

}  // namespace trireme::train
