// Runs `trireme train` and its like as a user does, on data so small that a run takes a moment, and reads what they
// left.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/started.h"
#include "tests/train/scratch_folder.h"

namespace trireme::test {

using Words = std::vector<std::string>;
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using train::ScratchFolder;

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The program to its end.
inline Finished run(const Words& words, const StartOptions& options = {}) {
  Started program(words, options);
  int code = program.wait(60);
  return {code, program.out(), program.err(), program.seconds()};
}

// 512 samples of 16x16, a small LeNet, one thread; `more` comes last and so counts.
inline Words tiny(const fs::path& out, const Words& more = {}) {
  return Words{"train",     "--model", "lenet",    "--data", "synthetic:1x16x16,classes=4,samples=512,test=128,noise=2",
               "--threads", "1",       "--epochs", "1",      "--batch",
               "16",        "--lr",    "0.02",     "--out",  out.string()} +
         more;
}

// The same, and expects that it went well.
inline Finished run_well(const Words& words, const StartOptions& options = {}) {
  auto done = run(words, options);
  EXPECT_EQ(done.code, 0) << done.err << done.out;
  return done;
}

// All that the program lists to who asks for another.
inline Words choices(const Words& wrong) {
  auto done = run(wrong);
  EXPECT_EQ(done.code, 2);
  const std::string choose = "choose ";
  auto at = done.err.find(choose);
  EXPECT_NE(at, std::string::npos) << done.err;
  std::istringstream list(done.err.substr(at + choose.size()));
  Words names;
  for (std::string word; list >> word;) {
    if (word.back() == ',') word.pop_back();
    if (word != "or") names.push_back(word);
  }
  return names;
}

inline std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline nlohmann::json json_in(const fs::path& path) {
  return nlohmann::json::parse(contents(path), nullptr, /*allow_exceptions=*/false);
}

inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  for (const auto& line : lines_of(text)) lines.push_back(nlohmann::json::parse(line, nullptr, false));
  return lines;
}

// Oldest first.
inline std::vector<fs::path> checkpoints(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().filename().string().starts_with("step-")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Bytes of every tensor whose name begins so, read without the library under test.
inline std::map<std::string, std::string> tensors(const fs::path& checkpoint, const std::string& prefix = "") {
  const auto file = contents(checkpoint);
  std::uint64_t length = 0;
  if (file.size() < 8) return {};
  std::memcpy(&length, file.data(), 8);
  const auto header = nlohmann::json::parse(file.substr(8, length));
  std::map<std::string, std::string> found;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__" || !name.starts_with(prefix)) continue;
    const std::uint64_t from = entry["data_offsets"][0], to = entry["data_offsets"][1];
    found[name] = file.substr(8 + length + from, to - from);
  }
  return found;
}

// Of the newest checkpoint.
inline std::map<std::string, std::string> weights(const fs::path& folder) {
  const auto all = checkpoints(folder);
  return all.empty() ? std::map<std::string, std::string>{} : tensors(all.back(), "model.");
}

inline nlohmann::json metadata(const fs::path& checkpoint) {
  const auto file = contents(checkpoint);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const auto header = nlohmann::json::parse(file.substr(8, length));
  return nlohmann::json::parse(header["__metadata__"]["trireme"].get<std::string>());
}

// Names of the tensors that differ; "nothing to compare" where there are none.
inline Words differences(const std::map<std::string, std::string>& a, const std::map<std::string, std::string>& b) {
  if (a.empty() || b.empty()) return {"nothing to compare"};
  Words names;
  for (const auto& [name, bytes] : a) {
    if (!b.contains(name) || b.at(name) != bytes) names.push_back(name);
  }
  if (a.size() != b.size()) names.push_back("another number of tensors");
  return names;
}

// One line on standard error, that code, and nothing on standard output.
inline void expect_refusal(const Finished& done, int code, const std::string& part) {
  EXPECT_EQ(done.code, code);
  EXPECT_EQ(lines_of(done.err).size(), 1u) << done.err;
  EXPECT_TRUE(done.err.starts_with("trireme: ")) << done.err;
  EXPECT_THAT(done.err, HasSubstr(part));
  EXPECT_EQ(done.out, "");
}

// The process of that rank, once it is there.
inline pid_t find_rank(const Started& program, int rank) {
  const std::string zero(1, '\0'), wanted = zero + "RANK=" + std::to_string(rank) + zero;
  pid_t found = -1;
  poll_until(10, [&] {
    for (pid_t pid : program.processes()) {
      if (contents(fmt::format("/proc/{}/environ", pid)).find(wanted) != std::string::npos) found = pid;
    }
    return found > 0;
  });
  return found;
}

// False, and no signal, where there is none: kill(-1) would reach every process of the machine.
inline bool kill_rank(const Started& program, int rank, int signal) {
  const pid_t found = find_rank(program, rank);
  return found > 0 && ::kill(found, signal) == 0;
}

}  // namespace trireme::test
