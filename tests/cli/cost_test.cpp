#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/outcome.h"
#include "trireme/collective/schedule.h"

namespace trireme {
namespace {

using nlohmann::json;
using test::refuses;
using test::run_trireme;
using ::testing::HasSubstr;

std::map<std::string, json> cost_of(const std::string& arguments) {
  std::map<std::string, json> rows;
  auto outcome = run_trireme("cost --json " + arguments);
  EXPECT_EQ(outcome.code, 0);
  std::istringstream lines(outcome.text);
  for (std::string line; std::getline(lines, line);) {
    json row = json::parse(line);
    rows[row["collective"].get<std::string>() + " " + row["algorithm"].get<std::string>()] = row;
  }
  return rows;
}

TEST(CostCommand, JsonHasEveryKeyForEveryAlgorithm) {
  auto rows = cost_of("--ranks 8 --bytes 1M");
  EXPECT_EQ(rows.size(), algorithms().size() + 1);  // and the parameter server
  for (const auto& [name, row] : rows) {
    for (const char* key : {"ranks", "bytes", "wires", "rounds", "bytes_per_round", "total_bytes", "time_s"}) {
      ASSERT_TRUE(row.contains(key) && row[key].is_number()) << name << " " << key;
    }
    for (const char* key : {"wires", "rounds", "bytes_per_round", "total_bytes", "time_s"}) {
      ASSERT_TRUE(row.contains(std::string(key) + "_formula")) << name << " " << key;
    }
    EXPECT_TRUE(row["note"].is_string()) << name;
  }
}

TEST(CostCommand, TheComparisonOfAllReducesByHand) {
  double M = 100.0 * 1024 * 1024, B = 1e10;
  auto rows = cost_of("--ranks 8 --bytes 100M --alpha 0 --bandwidth 10G --gamma 0 --collective all-reduce");
  struct Expected {
    const char* name;
    double wires, rounds, per_round, total, time;
  };
  for (const Expected& e :
       {Expected{"naive", 7, 1, M, 56 * M, M / B}, Expected{"parameter-server", 8, 2, M, 16 * M, 2 * M / B},
        Expected{"master-worker", 7, 2, M, 14 * M, 2 * M / B}, Expected{"ring", 2, 14, M / 8, 14 * M, 1.75 * M / B},
        Expected{"tree", 3, 6, M, 14 * M, 6 * M / B}, Expected{"butterfly", 3, 3, M, 24 * M, 3 * M / B},
        Expected{"round-robin", 7, 14, M / 8, 14 * M, 1.75 * M / B}}) {
    const json& row = rows.at(std::string("all-reduce ") + e.name);
    for (const char* twin : {"", "_formula"}) {
      auto value = [&](const char* key) { return row[std::string(key) + twin].get<double>(); };
      EXPECT_DOUBLE_EQ(value("wires"), e.wires) << e.name << twin;
      EXPECT_DOUBLE_EQ(value("rounds"), e.rounds) << e.name << twin;
      EXPECT_DOUBLE_EQ(value("bytes_per_round"), e.per_round) << e.name << twin;
      EXPECT_DOUBLE_EQ(value("total_bytes"), e.total) << e.name << twin;
      EXPECT_NEAR(value("time_s"), e.time, 1e-12) << e.name << twin;
    }
  }
  rows = cost_of("--ranks 8 --bytes 100M --alpha 0 --beta 1e-10 --gamma 0 --wires one --collective all_reduce");
  EXPECT_NEAR(rows.at("all-reduce naive")["time_s"].get<double>(), 7 * M / B, 1e-9);
  EXPECT_NEAR(rows.at("all-reduce master-worker")["time_s"].get<double>(), 14 * M / B, 1e-9);
  EXPECT_NEAR(rows.at("all-reduce parameter-server")["time_s"].get<double>(), 16 * M / B, 1e-9);
}

TEST(CostCommand, SaysWhyCountedAndFormulaDiffer) {
  auto rows = cost_of("--ranks 6 --bytes 60K --collective all-reduce");
  EXPECT_THAT(rows.at("all-reduce butterfly")["note"].get<std::string>(), HasSubstr("log2 6 = 2.58 is not whole"));
  EXPECT_EQ(rows.at("all-reduce ring")["note"], "");
  EXPECT_THAT(rows.at("all-reduce parameter-server")["note"].get<std::string>(), HasSubstr("by formula only"));
  rows = cost_of("--ranks 6 --bytes 400 --collective all-gather");
  EXPECT_THAT(rows.at("all-gather ring")["note"].get<std::string>(), HasSubstr("blocks are rounded up to 17"));
}

TEST(CostCommand, TablesFitAHundredColumns) {
  for (const char* arguments : {"cost --ranks 8 --bytes 100M", "cost --ranks 500 --bytes 3G --collective broadcast",
                                "cost --ranks 7 --bytes 12 --wires one", "cost --ranks 1 --bytes 0"}) {
    auto outcome = run_trireme(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments;
    EXPECT_THAT(outcome.text, HasSubstr("mst"));
    std::istringstream lines(outcome.text);
    for (std::string line; std::getline(lines, line);) {
      auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(columns, 100) << arguments << ": " << line;
    }
  }
}

TEST(CostCommand, RefusesBadInputInOneLine) {
  for (const char* arguments : {"--ranks 0",
                                "--ranks -3",
                                "--ranks 5000",
                                "--ranks many",
                                "--bytes 12Q",
                                "--bytes -4",
                                "--bytes 3",
                                "--bytes ''",
                                "--alpha 5parsecs",
                                "--alpha -1",
                                "--beta x",
                                "--bandwidth 0",
                                "--bandwidth fast",
                                "--beta 1ns --bandwidth 1G",
                                "--gamma nan",
                                "--wires three",
                                "--collective all-gossip",
                                "--sync -1",
                                "--memory-bandwidth 0",
                                "--colour",
                                "--ranks 4096 --bytes 1024T",
                                "extra"}) {
    EXPECT_TRUE(refuses(std::string("cost ") + arguments))
        << arguments << "\n"
        << run_trireme(std::string("cost ") + arguments + " 2>&1").text;
  }
}

}  // namespace
}  // namespace trireme
