// What `trireme` says when it is asked for nothing: this host, what runs on it, and what to try.
#pragma once
#include <string>

namespace trireme::cli {

// Takes milliseconds: only files of /proc and of runs/ are read. `program` is what people type to start this one;
// whether that is the script which also builds it.
std::string overview(const std::string& program, bool scripted, int width);

}  // namespace trireme::cli
