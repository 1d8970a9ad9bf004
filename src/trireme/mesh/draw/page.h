// A pipeline schedule as one self-contained page for the browser: the Gantt chart with its bubble, what each stage
// holds over time, and the other kinds of the same size beside it.
#pragma once
#include <string>

#include "trireme/mesh/draw/drawing.h"

namespace trireme::pipelines {

// Throws ConfigError for more actions than a browser draws with ease.
std::string draw_page(const Picture& picture);

}  // namespace trireme::pipelines
