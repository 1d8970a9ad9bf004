// What standard output is written to.
#pragma once

namespace trireme::cli {

struct Terminal {
  int width = 100;     // columns: as COLUMNS or the terminal says, 40 to 200; else 100
  bool color = false;  // a terminal, and NO_COLOR is not set
};

Terminal standard_output();
// Columns of --help: the same, but 80 where neither says, and no more than 120.
int help_width();

}  // namespace trireme::cli
