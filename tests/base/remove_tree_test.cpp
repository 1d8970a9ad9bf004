#include "trireme/base/files/remove_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace trireme {
namespace {

namespace fs = std::filesystem;

TEST(RemoveTree, TakesAllButWhatLinksLeadTo) {
  auto root = fs::temp_directory_path() / ("trireme-remove-" + std::to_string(getpid()));
  fs::create_directories(root / "a/b/c");
  fs::create_directories(root / "kept");
  std::ofstream(root / "a/b/file") << "x";
  std::ofstream(root / "kept/file") << "x";
  fs::create_directory_symlink(root / "kept", root / "a/link");
  remove_tree(root / "a");
  EXPECT_FALSE(fs::exists(root / "a"));
  EXPECT_TRUE(fs::exists(root / "kept/file"));
  remove_tree(root / "not there");
  remove_tree(root);
  EXPECT_FALSE(fs::exists(root));
}

}  // namespace
}  // namespace trireme
