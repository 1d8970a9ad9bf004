#include "trireme/base/files/file_limit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "tests/forked.h"

namespace trireme {
namespace {

// In a child whose files may have 4 KiB: its exit code, or minus the signal that ended it.
template <typename Act>
int within_file_limit(const Act& act) {
  return test::Forked([&] {
           const rlimit limit{4096, 4096};
           ::setrlimit(RLIMIT_FSIZE, &limit);
           const rlimit no_core{0, 0};
           ::setrlimit(RLIMIT_CORE, &no_core);
           return act();
         })
      .wait();
}

int grow_beyond() {
  const auto path = std::filesystem::temp_directory_path() / ("limit-" + std::to_string(getpid()));
  const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ::unlink(path.c_str());
  return ::ftruncate(file, 1 << 20) == 0 ? 0 : errno;
}

TEST(FileLimit, EndsProgramsThatDoNotAskForAnError) { EXPECT_EQ(within_file_limit(grow_beyond), -SIGXFSZ); }

TEST(FileLimit, BecomesAnError) {
  EXPECT_EQ(within_file_limit([] {
              report_file_limit();
              return grow_beyond();
            }),
            EFBIG);
  EXPECT_EQ(within_file_limit([] {
              const NoSizeSignal as_error;
              return grow_beyond();
            }),
            EFBIG);
}

TEST(FileLimit, IsASignalAgainBehindTheScopeAndForOtherPrograms) {
  EXPECT_EQ(within_file_limit([] {
              { const NoSizeSignal as_error; }
              return grow_beyond();
            }),
            -SIGXFSZ);
  EXPECT_NE(within_file_limit([] {
              report_file_limit();
              return ::execl("/bin/sh", "sh", "-c",
                             "exec 2>/dev/null; head -c 100000 /dev/zero > \"${TMPDIR:-/tmp}/limit-$$\"; s=$?; "
                             "rm -f \"${TMPDIR:-/tmp}/limit-$$\"; exit $s",
                             nullptr);
            }),
            0);
}

}  // namespace
}  // namespace trireme
