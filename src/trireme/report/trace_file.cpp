#include "trireme/report/trace_file.h"

#include "trireme/base/files/atomic_file.h"

namespace trireme::train {

void write_trace(const std::filesystem::path& path, std::span<const TraceEvent> events) {
  AtomicFile file(path);
  trace_text(events, [&](std::string_view text) { file.write(text); });
  file.commit();
}

}  // namespace trireme::train
