#include "trireme/base/files/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/forked.h"
#include "tests/train/scratch_folder.h"
#include "trireme/base/error.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;

// Runs `body` in a child; its return value is the child's exit code.
template <typename MeshModel>
int in_child(MeshModel model) {
  return test::Forked(model).wait();
}

TEST(AtomicFile, ReplacesWholeOrNotAtAll) {
  ScratchFolder folder;
  auto path = folder / "a.txt";
  put(path, "old");
  {
    AtomicFile file(path);
    file.write("new and longer");
    EXPECT_EQ(content(path), "old");
  }
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(folder.files(), 1);
  AtomicFile file(path);
  file.write("new and longer");
  file.rewrite(4, "AND");
  file.commit();
  EXPECT_EQ(content(path), "new AND longer");
  EXPECT_EQ(folder.files(), 1);
}

TEST(AtomicFile, AFileSizeLimitIsAnErrorAndLeavesTheOldFile) {
  ScratchFolder folder;
  auto path = folder / "a.bin";
  put(path, "old");
  int code = in_child([&] {
    rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto message = message_of<Error>([&] { write_atomically(path, std::string(1 << 20, 'x')); });
    return message == fmt::format("cannot write {}: File too large; the limit is on the size of a file (ulimit -f)",
                                  path.string())
               ? 0
               : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(folder.files(), 1);
}

TEST(AtomicFile, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  ScratchFolder folder;
  constexpr int kNoNamespaces = 77;
  int code = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return kNoNamespaces;
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("none", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) return kNoNamespaces;
    write_atomically(folder / "a.bin", "old");
    auto message = message_of<Error>([&] { write_atomically(folder / "a.bin", std::string(1 << 20, 'x')); });
    bool named = message.find("a.bin: No space left on device; free some space") != std::string::npos;
    return named && content(folder / "a.bin") == "old" && folder.files() == 1 ? 0 : 1;
  });
  if (code == kNoNamespaces) GTEST_SKIP() << "this machine lets nobody mount a small file system";
  EXPECT_EQ(code, 0);
}

TEST(AtomicFile, NamesTheFileThatCannotBe) {
  ScratchFolder folder;
  EXPECT_THAT(message_of<Error>([&] { write_atomically(folder / "none/a", "x"); }),
              HasSubstr("none/a: No such file or directory; make the folder first"));
  std::filesystem::create_directory(folder / "taken");
  EXPECT_THAT(message_of<Error>([&] { write_atomically(folder / "taken", "x"); }), HasSubstr("taken: Is a directory"));
  EXPECT_EQ(folder.files(), 1);
}

TEST(AtomicFile, RemovesOnlyDraftsOfTheDead) {
  ScratchFolder folder;
  AtomicFile alive(folder / "alive");
  in_child([&] {
    auto* lost = new AtomicFile(folder / "dead");
    lost->write("half");
    return 0;
  });
  put(folder / ".x.draft-00000000-1-0", "of another host");
  put(folder / "mine.draft-1", "no draft");
  ASSERT_EQ(folder.files(), 4);
  EXPECT_EQ(remove_stale_drafts(folder.path()), 1);
  alive.write("fine");
  alive.commit();
  EXPECT_EQ(content(folder / "alive"), "fine");
  EXPECT_EQ(folder.files(), 3);
  EXPECT_EQ(remove_stale_drafts(folder / "nowhere"), 0);
}

TEST(AtomicFile, AnEarlierProcessOfOurOwnNumberIsDead) {
  ScratchFolder folder;
  { AtomicFile probe(folder / "a"); }
  std::string draft;
  {
    AtomicFile probe(folder / "a");
    draft = std::filesystem::directory_iterator(folder.path())->path().string();
    EXPECT_EQ(remove_stale_drafts(folder.path()), 0);
  }
  put(draft, "left");
  EXPECT_EQ(remove_stale_drafts(folder.path()), 1);
}

TEST(AtomicFile, LinksOverAnotherNameOfTheSameFile) {
  ScratchFolder folder;
  put(folder / "a", "one");
  link_atomically(folder / "a", folder / "b");
  link_atomically(folder / "a", folder / "b");
  EXPECT_EQ(content(folder / "b"), "one");
  EXPECT_EQ(folder.files(), 2);
  EXPECT_THAT(message_of<Error>([&] { link_atomically(folder / "c", folder / "b"); }), HasSubstr("cannot read"));
  EXPECT_EQ(content(folder / "b"), "one");
}

}  // namespace
}  // namespace trireme::train
