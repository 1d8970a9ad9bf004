// The fixed parts of the page that comparison_page() writes: its style and its script.
#pragma once

namespace trireme::train {

extern const char kComparisonStyle[];   // comparison_page_style.cpp
extern const char kComparisonCharts[];  // comparison_page_charts.cpp: axes, lines, bars, the tip under the pointer
extern const char kComparisonCosts[];   // comparison_page_costs.cpp: bytes, waiting, staleness, consensus; theory
extern const char kComparisonScript[];  // comparison_page_script.cpp: reads compare.json in #data, fills the page

}  // namespace trireme::train
