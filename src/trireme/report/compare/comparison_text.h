// A comparison as text: a line per run, a table for a terminal, a CSV file, a page for a browser.
#pragma once
#include <string>

#include "trireme/report/compare/comparison.h"
#include "trireme/report/progress.h"

namespace trireme::train {

// "batch=128 seed=2  88.90% in 12.3 s", or how it failed.
std::string run_words(const Comparison& comparison, const ComparedRun& run);

// A row per variant with mean and spread, a legend, what theory says where ways to synchronize or numbers of workers
// are compared, and what failed. Lines fit the screen where that can be: columns that tell least are left out first.
std::string comparison_table(const Comparison& comparison, const Screen& screen);

// A row per run, RFC 4180 but with line feeds alone; unknown numbers are empty.
std::string comparison_csv(const Comparison& comparison);
// Likewise, a row per point of the curves of the runs that finished.
std::string comparison_curves_csv(const Comparison& comparison);

// One file that needs no other.
std::string comparison_page(const Comparison& comparison);

}  // namespace trireme::train
