// `trireme bench ops` and `trireme explain` of operators as a user runs them.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cli/outcome.h"
#include "trireme/cli/bench/ops/zoo_ops.h"

namespace trireme::test {
namespace operators_test {

using testing::HasSubstr;
using testing::Not;

std::vector<nlohmann::json> rows_of(const std::string& arguments) {
  const Outcome outcome = run_trireme("bench ops " + arguments + " --json");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  std::vector<nlohmann::json> rows;
  std::istringstream lines(outcome.text);
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

TEST(BenchOps, OneObjectALine) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& row : rows_of("--shape 2x8x9x9,16x3x3,padding=1 --threads 1 --rounds 2")) {
    EXPECT_EQ(row["op"], "conv");
    EXPECT_EQ(row["shape"], "2x8x9x9,16x3x3,padding=1");
    EXPECT_EQ(row["peer"], "trireme");
    for (const char* number : {"us_p50", "gflops", "of_peak"}) EXPECT_GT(row[number], 0) << row;
    EXPECT_GE(row["bytes_workspace"], 0);
    EXPECT_FALSE(row.contains("gbytes_s"));
    seen.emplace(row["pass"].get<std::string>(), row["implementation"].get<std::string>());
  }
  EXPECT_EQ(seen.size(), 3u * 4u) << "passes, algorithms but the reference";
}

// Sizes that no vector divides. Each pass has a row, and speed times time is the definition's count.
TEST(BenchOps, EveryFamilyByItsForm) {
  const std::map<std::string, std::string> shapes{{"conv", "1x3x7x5,4x3x3"},
                                                  {"matmul", "3x5x7"},
                                                  {"lstm", "3x4x5,6,layers=2"},
                                                  {"gru", "3x4x5,6"},
                                                  {"attention", "1x2x9x5,causal"},
                                                  {"batch-norm", "11x3,add,relu"},
                                                  {"max-pool", "1x3x8x6,2x2,relu"},
                                                  {"mean-pool", "2x3x4x4,4x4"},
                                                  {"relu", "3x7"},
                                                  {"gelu", "3x7"},
                                                  {"dropout", "3x7"},
                                                  {"softmax", "3x7"},
                                                  {"cross-entropy", "3x7"},
                                                  {"layer-norm", "3x7"}};
  for (const bench::OpFamily& family : bench::op_families()) {
    const std::string name(family.name);
    ASSERT_TRUE(shapes.contains(name)) << name << ": a family without a shape here";
    const bench::OpShape shape = family.parse(family, shapes.at(name));
    EXPECT_EQ(family.text(shape), shapes.at(name));
    EXPECT_EQ(family.text(family.parse(family, family.example)), family.example);
    std::set<std::string> passes;
    for (const auto& row : rows_of("--op " + name + " --shape " + shapes.at(name) + " --threads 1 --rounds 1")) {
      EXPECT_EQ(row["op"], name);
      passes.insert(row["pass"].get<std::string>());
      for (const bench::OpPass& pass : family.passes) {
        if (pass.name != row["pass"]) continue;
        const bench::OpWork work = family.work(shape, pass.pass);
        EXPECT_NEAR(row["gflops"].get<double>() * row["us_p50"].get<double>() * 1e3, work.flops, 1e-6 * work.flops);
        EXPECT_EQ(row.contains("gbytes_s"), family.memory_bound) << row;
        if (!family.memory_bound) continue;
        EXPECT_NEAR(row["gbytes_s"].get<double>() * row["us_p50"].get<double>() * 1e3, work.bytes, 1e-6 * work.bytes);
        EXPECT_GT(row["of_memory"], 0);
      }
    }
    EXPECT_EQ(passes.size(), family.passes.size()) << name;
    EXPECT_TRUE(refuses("bench ops --op " + name + " --shape 3")) << name;
    EXPECT_TRUE(refuses("bench ops --op " + name + " --shape " + shapes.at(name) + ",nothing=1")) << name;
  }
}

TEST(BenchOps, AModelsLayers) {
  const Outcome outcome =
      run_trireme("bench ops --model lenet --batch 1 --threads 1 --rounds 1 --implementations im2col");
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"1x1x28x28,6x5x5,padding=2", "1x6x14x14,16x5x5", "weights", "all layers and passes"}) {
    EXPECT_THAT(outcome.text, HasSubstr(part));
  }
  EXPECT_THAT(outcome.text, Not(HasSubstr("matmul"))) << "it has no im2col";
  std::set<std::string> families;
  for (const auto& row : rows_of("--model lstm-lm --batch 1 --length 3 --threads 1 --rounds 1")) {
    families.insert(row["op"].get<std::string>());
  }
  EXPECT_EQ(families, (std::set<std::string>{"cross-entropy", "dropout", "lstm", "matmul"}));
  for (const auto& row : rows_of("--model gpt-small --op matmul --batch 2 --length 5 --threads 1 --rounds 1")) {
    EXPECT_EQ(row["op"], "matmul");
    EXPECT_TRUE(row["shape"].get<std::string>().starts_with("10x")) << row;
  }
}

TEST(BenchOps, OpenBlasBesideOurs) {
  std::set<std::string> peers;
  for (const auto& row :
       rows_of("--op matmul,relu --model mlp-wide --batch 1 --threads 1 --rounds 1 --peers openblas")) {
    EXPECT_TRUE(row["op"] != "relu" || row["peer"] == "trireme") << "OpenBLAS has no such operator";
    EXPECT_EQ(row.value("version", "").starts_with("OpenBLAS "), row["peer"] == "openblas") << row;
    peers.insert(row["peer"].get<std::string>());
  }
  EXPECT_EQ(peers, (std::set<std::string>{"openblas", "trireme"}));
}

TEST(BenchOps, WhatCannotBeIsRefused) {
  EXPECT_TRUE(refuses("bench ops --model nothing"));
  EXPECT_TRUE(refuses("bench ops --op nothing"));
  EXPECT_TRUE(refuses("bench ops --model lenet --op attention"));
  EXPECT_TRUE(refuses("bench ops --model lenet --length 3"));
  EXPECT_TRUE(refuses("bench ops --shape 1x2x3"));
  EXPECT_TRUE(refuses("bench ops --shape 1x2x3x3,2x1x1 --batch 4"));
  EXPECT_TRUE(refuses("bench ops --op matmul,relu --shape 1x2"));
  EXPECT_TRUE(refuses("bench ops --op matmul --shape 1000000x1000000x1"));
  EXPECT_TRUE(refuses("bench ops --op matmul --shape 0x3x3"));
  EXPECT_TRUE(refuses("bench ops --op attention --shape 1x1x4x4,dropout=1"));
  EXPECT_TRUE(refuses("bench ops --op max-pool --shape 1x1x4x4,2x2,stride=0"));
  EXPECT_TRUE(refuses("bench ops --implementations magic"));
  EXPECT_TRUE(refuses("bench ops --op matmul --shape 2x2x2 --implementations im2col"));
  EXPECT_TRUE(refuses("bench ops --threads 0"));
  EXPECT_TRUE(refuses("bench ops --peers somebody"));
}

TEST(ExplainConv, StepsAndCounts) {
  const Outcome outcome = run_trireme("explain conv --algorithm winograd --input 4x4 --kernel 3x3");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("by 16 multiplications; the definition takes 36"));
  EXPECT_THAT(run_trireme("explain conv --algorithm im2col --input 3x3 --kernel 2x2").text, HasSubstr("145.06 108.06"));
  EXPECT_TRUE(refuses("explain conv --algorithm none"));
  EXPECT_TRUE(refuses("explain conv --input 4xa"));
  EXPECT_TRUE(refuses("explain conv --ranks 3"));
  EXPECT_TRUE(refuses("explain ring --kernel 3x3"));
}

TEST(ExplainOperator, ByTheNameOfAnAlgorithm) {
  const std::string notes = run_trireme("explain im2col --input 3x3 --kernel 2x2").text;
  EXPECT_EQ(notes, run_trireme("explain conv --algorithm im2col --input 3x3 --kernel 2x2").text);
  for (const char* row : {"145.06 108.06", "108.06 121.06"}) EXPECT_THAT(notes, HasSubstr(row));
  EXPECT_THAT(run_trireme("explain winograd").text, HasSubstr("by 16 multiplications; the definition takes 36"));
  EXPECT_THAT(run_trireme("explain fft").text, HasSubstr("spectra"));
  EXPECT_THAT(run_trireme("explain direct --input 3x3 --kernel 2x2").text, HasSubstr("145.06 108.06"));
  EXPECT_THAT(run_trireme("explain direct").text, HasSubstr("all-reduce by direct"));
  EXPECT_TRUE(refuses("explain fft --algorithm im2col"));
}

TEST(ExplainOperator, MatmulLstmAttention) {
  EXPECT_THAT(run_trireme("explain matmul --size 7x9x5").text, HasSubstr("By 315 multiplications"));
  EXPECT_THAT(run_trireme("explain lstm --size 2x3x4x5x2 --threads 1").text,
              HasSubstr("by 2280 multiplications in all; the operator's own result differs by 0."));
  const std::string attention = run_trireme("explain attention --size 70x2 --every-key").text;
  EXPECT_THAT(attention, HasSubstr("4 of 4 blocks"));
  EXPECT_THAT(attention, HasSubstr("by 19600 multiplications"));
  for (const char* wrong : {"matmul --size 3x4", "matmul --size 3x0x4", "matmul --input 4x4", "lstm --size 3",
                            "lstm --threads 0", "attention --size 9999x4", "attention --threads 3", "matmul --full",
                            "conv --size 3x3x3", "ring --size 3x3x3", "pipeline:1f1b --size 3", "lstn"}) {
    EXPECT_TRUE(refuses(std::string("explain ") + wrong)) << wrong;
  }
}

}  // namespace operators_test
}  // namespace trireme::test
