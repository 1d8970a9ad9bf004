// The .html, .css and .js files of this folder, which cmake/embed_files.cmake writes into files.cpp of the build.
#pragma once
#include <span>
#include <string_view>

namespace trireme::pages {

struct File {
  std::string_view name, text;
};
std::span<const File> files();  // by name

}  // namespace trireme::pages
