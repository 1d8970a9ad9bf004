// What standard output is written to.
#pragma once

namespace trireme::cli {

struct Terminal {
  int width = 100;     // columns; 100 where it is not a terminal
  bool color = false;  // a terminal, and NO_COLOR is not set
};

Terminal standard_output();

}  // namespace trireme::cli
