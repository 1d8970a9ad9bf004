// A limit on file sizes (ulimit -f), which shared memory is under as well: an error that says so, never a signal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/help_lines.h"

namespace trireme::test {
namespace {

using testing::HasSubstr;

std::string said_under_limit(const std::string& arguments) {
  return output_of("bash -c 'ulimit -f 100; ulimit -c 0; " + (TRIREME_PROGRAM + (" " + arguments)) +
                   " 2>&1 | cat; echo ended ${PIPESTATUS[0]}'");
}

TEST(FileSizeLimit, SharedMemoryNamesIt) {
  const auto said = said_under_limit("bench all-reduce --ranks 2 --transport shm --bytes 1M --iterations 3");
  EXPECT_THAT(said,
              HasSubstr("File too large: the limit on file sizes (ulimit -f) holds for shared memory too; raise it"));
  EXPECT_THAT(said, HasSubstr("ended 1\n"));
}

TEST(FileSizeLimit, FilesThatAreWrittenNameIt) {
  const auto page = std::filesystem::temp_directory_path() / ("file-limit-" + std::to_string(getpid()) + ".html");
  const auto said = said_under_limit("explain ring --ranks 32 --html " + page.string());
  std::filesystem::remove(page);
  EXPECT_THAT(said, HasSubstr("File too large"));
  EXPECT_THAT(said, HasSubstr(page.string()));
  EXPECT_THAT(said, HasSubstr("ended 1\n"));
}

}  // namespace
}  // namespace trireme::test
