// Sources: Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience",
// 2007 (spanning trees, rings and what is composed of them); Thakur, Rabenseifner and Gropp, "Optimization of
// collective communication operations in MPICH", 2005 (doubling and halving); Träff, "Optimal, non-pipelined
// reduce-scatter and allreduce algorithms", 2024 (circulant); the others by counting.
// P ranks, n bytes, L = log2 P, not rounded unless the form says so.
#include "trireme/collective/cost/formulas.h"

#include <array>
#include <cmath>

namespace trireme {
namespace {

using enum Collective;

struct Size {
  double P, L, floor_L, ceil_L;
  double rest() const { return (P - 1) / P; }
};

// Factors of α, n·β and n·γ.
struct Time {
  double alpha, beta, gamma;
};

struct Numbers {
  double wires, rounds;
  double per_round, total;  // in n
  Time many, one;
};

struct Row {
  Collective what;
  std::string_view name;
  std::string_view wires, rounds, per_round, total, many, one;
  Numbers (*numbers)(const Size&);
};

// One wire or many: the same where a rank has one message each way per round.
Numbers alike(double wires, double rounds, double per_round, double total, Time time) {
  return {wires, rounds, per_round, total, time, time};
}

constexpr std::string_view kLog = "log2 P", kTwoLog = "2·log2 P", kStar = "P−1", kPairs = "2(P−1)", kPart = "n/P",
                           kTotal = "(P−1)n", kTwice = "2(P−1)n", kHalf = "n/2";
constexpr std::string_view kRing = "2(P−1)α + 2(P−1)/P·nβ + (P−1)/P·nγ";
constexpr std::string_view kGather = "(P−1)α + (P−1)/P·nβ", kReduceScatter = "(P−1)α + (P−1)/P·nβ + (P−1)/P·nγ";
constexpr std::string_view kLogGather = "log2 P·α + (P−1)/P·nβ",
                           kLogReduceScatter = "log2 P·α + (P−1)/P·nβ + (P−1)/P·nγ";

constexpr std::array kRows{
    // ---- all-reduce ----
    Row{all_reduce, "naive", kStar, "1", "n", "P(P−1)n", "α + nβ + (P−1)nγ", "(P−1)(α + nβ + nγ)",
        [](const Size& s) {
          return Numbers{s.P - 1, 1, 1, s.P * (s.P - 1), {1, 1, s.P - 1}, {s.P - 1, s.P - 1, s.P - 1}};
        }},
    Row{all_reduce, "master-worker", kStar, "2", "n", kTwice, "2(α + nβ) + (P−1)nγ", "2(P−1)(α + nβ) + (P−1)nγ",
        [](const Size& s) {
          double p = s.P - 1;
          return Numbers{p, 2, 1, 2 * p, {2, 2, p}, {2 * p, 2 * p, p}};
        }},
    Row{all_reduce, "ring", "2", kPairs, kPart, kTwice, kRing, kRing,
        [](const Size& s) {
          return alike(2, 2 * (s.P - 1), 1 / s.P, 2 * (s.P - 1), {2 * (s.P - 1), 2 * s.rest(), s.rest()});
        }},
    Row{all_reduce, "tree", "3", "2⌊log2 P⌋", "n", kTwice, "2·log2 P·(α + nβ) + 2·log2 P·nγ",
        "4·log2 P·(α + nβ) + 2·log2 P·nγ",
        [](const Size& s) {
          return Numbers{3, 2 * s.floor_L, 1, 2 * (s.P - 1), {2 * s.L, 2 * s.L, 2 * s.L}, {4 * s.L, 4 * s.L, 2 * s.L}};
        }},
    Row{all_reduce, "double-tree", "4", "2⌈log2 P⌉", kHalf, kTwice, "2⌈log2 P⌉·(α + n/2·β) + (⌈log2 P⌉−½)nγ",
        "(4⌈log2 P⌉−2)(α + n/2·β) + (⌈log2 P⌉−½)nγ",
        [](const Size& s) {
          double c = s.ceil_L;
          return Numbers{4, 2 * c, .5, 2 * (s.P - 1), {2 * c, c, c - .5}, {4 * c - 2, 2 * c - 1, c - .5}};
        }},
    Row{all_reduce, "butterfly", kLog, kLog, "n", "P·log2 P·n", "log2 P·(α + nβ + nγ)", "log2 P·(α + nβ + nγ)",
        [](const Size& s) {
          return alike(s.L, s.L, 1, s.P * s.L, {s.L, s.L, s.L});
        }},
    Row{all_reduce, "round-robin", kStar, kPairs, kPart, kTwice, kRing, kRing,
        [](const Size& s) {
          return alike(s.P - 1, 2 * (s.P - 1), 1 / s.P, 2 * (s.P - 1), {2 * (s.P - 1), 2 * s.rest(), s.rest()});
        }},
    Row{all_reduce, "halving-doubling", kLog, kTwoLog, kHalf, kTwice, "2·log2 P·α + 2(P−1)/P·nβ + (P−1)/P·nγ",
        "2·log2 P·α + 2(P−1)/P·nβ + (P−1)/P·nγ",
        [](const Size& s) {
          return alike(s.L, 2 * s.L, .5, 2 * (s.P - 1), {2 * s.L, 2 * s.rest(), s.rest()});
        }},
    Row{all_reduce, "circulant", "2⌈log2 P⌉−1", "2⌈log2 P⌉", kHalf, kTwice, "2⌈log2 P⌉α + 2(P−1)/P·nβ + (P−1)/P·nγ",
        "2⌈log2 P⌉α + 2(P−1)/P·nβ + (P−1)/P·nγ",
        [](const Size& s) {
          return alike(2 * s.ceil_L - 1, 2 * s.ceil_L, .5, 2 * (s.P - 1), {2 * s.ceil_L, 2 * s.rest(), s.rest()});
        }},
    Row{all_reduce, "mst", kLog, kTwoLog, "n", kTwice, "2·log2 P·(α + nβ) + log2 P·nγ", "2·log2 P·(α + nβ) + log2 P·nγ",
        [](const Size& s) {
          return alike(s.L, 2 * s.L, 1, 2 * (s.P - 1), {2 * s.L, 2 * s.L, s.L});
        }},
    Row{all_reduce, "canonical", kStar, kPairs, kPart, kTwice, kRing, kRing,
        [](const Size& s) {
          return alike(s.P - 1, 2 * (s.P - 1), 1 / s.P, 2 * (s.P - 1), {2 * (s.P - 1), 2 * s.rest(), s.rest()});
        }},

    // ---- one to all ----
    Row{broadcast, "mst", kLog, kLog, "n", kTotal, "log2 P·(α + nβ)", "log2 P·(α + nβ)",
        [](const Size& s) {
          return alike(s.L, s.L, 1, s.P - 1, {s.L, s.L, 0});
        }},
    Row{broadcast, "flat", kStar, "1", "n", kTotal, "α + nβ", "(P−1)(α + nβ)",
        [](const Size& s) {
          return Numbers{s.P - 1, 1, 1, s.P - 1, {1, 1, 0}, {s.P - 1, s.P - 1, 0}};
        }},
    Row{broadcast, "tree", "3", "⌊log2 P⌋", "n", kTotal, "log2 P·(α + nβ)", "2·log2 P·(α + nβ)",
        [](const Size& s) {
          return Numbers{3, s.floor_L, 1, s.P - 1, {s.L, s.L, 0}, {2 * s.L, 2 * s.L, 0}};
        }},
    Row{broadcast, "scatter-all-gather", kLog, "log2 P+P−1", kHalf, "(P−1)n + ½·log2 P·n",
        "(log2 P+P−1)α + 2(P−1)/P·nβ", "(log2 P+P−1)α + 2(P−1)/P·nβ",
        [](const Size& s) {
          return alike(s.L, s.L + s.P - 1, .5, s.P - 1 + s.L / 2, {s.L + s.P - 1, 2 * s.rest(), 0});
        }},
    Row{scatter, "mst", kLog, kLog, kHalf, "½·log2 P·n", kLogGather, kLogGather,
        [](const Size& s) {
          return alike(s.L, s.L, .5, s.L / 2, {s.L, s.rest(), 0});
        }},
    Row{scatter, "flat", kStar, "1", kPart, "(P−1)/P·n", "α + n/P·β", kGather,
        [](const Size& s) {
          return Numbers{s.P - 1, 1, 1 / s.P, s.rest(), {1, 1 / s.P, 0}, {s.P - 1, s.rest(), 0}};
        }},

    // ---- all to one ----
    Row{gather, "mst", kLog, kLog, kHalf, "½·log2 P·n", kLogGather, kLogGather,
        [](const Size& s) {
          return alike(s.L, s.L, .5, s.L / 2, {s.L, s.rest(), 0});
        }},
    Row{gather, "flat", kStar, "1", kPart, "(P−1)/P·n", "α + n/P·β", kGather,
        [](const Size& s) {
          return Numbers{s.P - 1, 1, 1 / s.P, s.rest(), {1, 1 / s.P, 0}, {s.P - 1, s.rest(), 0}};
        }},
    Row{reduce, "mst", kLog, kLog, "n", kTotal, "log2 P·(α + nβ + nγ)", "log2 P·(α + nβ + nγ)",
        [](const Size& s) {
          return alike(s.L, s.L, 1, s.P - 1, {s.L, s.L, s.L});
        }},
    Row{reduce, "flat", kStar, "1", "n", kTotal, "α + nβ + (P−1)nγ", "(P−1)(α + nβ + nγ)",
        [](const Size& s) {
          return Numbers{s.P - 1, 1, 1, s.P - 1, {1, 1, s.P - 1}, {s.P - 1, s.P - 1, s.P - 1}};
        }},
    Row{reduce, "reduce-scatter-gather", kLog, "P−1+log2 P", kHalf, "(P−1)n + ½·log2 P·n",
        "(P−1+log2 P)α + 2(P−1)/P·nβ + (P−1)/P·nγ", "(P−1+log2 P)α + 2(P−1)/P·nβ + (P−1)/P·nγ",
        [](const Size& s) {
          return alike(s.L, s.L + s.P - 1, .5, s.P - 1 + s.L / 2, {s.L + s.P - 1, 2 * s.rest(), s.rest()});
        }},
    Row{reduce, "canonical", kStar, "P", kPart, "(P−1)n + (P−1)/P·n", "Pα + nβ + (P−1)/P·nγ",
        "2(P−1)α + 2(P−1)/P·nβ + (P−1)/P·nγ",
        [](const Size& s) {
          return Numbers{
              s.P - 1, s.P, 1 / s.P, s.P - 1 + s.rest(), {s.P, 1, s.rest()}, {2 * (s.P - 1), 2 * s.rest(), s.rest()}};
        }},

    // ---- all to all ----
    Row{all_gather, "ring", "2", kStar, kPart, kTotal, kGather, kGather,
        [](const Size& s) {
          return alike(2, s.P - 1, 1 / s.P, s.P - 1, {s.P - 1, s.rest(), 0});
        }},
    Row{all_gather, "circulant", "2⌈log2 P⌉−1", "⌈log2 P⌉", kHalf, kTotal, "⌈log2 P⌉α + (P−1)/P·nβ",
        "⌈log2 P⌉α + (P−1)/P·nβ",
        [](const Size& s) {
          return alike(2 * s.ceil_L - 1, s.ceil_L, .5, s.P - 1, {s.ceil_L, s.rest(), 0});
        }},
    Row{all_gather, "naive", kStar, "1", kPart, kTotal, "α + n/P·β", kGather,
        [](const Size& s) {
          return Numbers{s.P - 1, 1, 1 / s.P, s.P - 1, {1, 1 / s.P, 0}, {s.P - 1, s.rest(), 0}};
        }},
    Row{all_gather, "round-robin", kStar, kStar, kPart, kTotal, kGather, kGather,
        [](const Size& s) {
          return alike(s.P - 1, s.P - 1, 1 / s.P, s.P - 1, {s.P - 1, s.rest(), 0});
        }},
    Row{all_gather, "butterfly", kLog, kLog, kHalf, kTotal, kLogGather, kLogGather,
        [](const Size& s) {
          return alike(s.L, s.L, .5, s.P - 1, {s.L, s.rest(), 0});
        }},
    Row{all_gather, "gather-broadcast", kLog, kTwoLog, "n", "(P−1)n + ½·log2 P·n", "2·log2 P·α + (log2 P+(P−1)/P)nβ",
        "2·log2 P·α + (log2 P+(P−1)/P)nβ",
        [](const Size& s) {
          return alike(s.L, 2 * s.L, 1, s.P - 1 + s.L / 2, {2 * s.L, s.L + s.rest(), 0});
        }},
    Row{reduce_scatter, "ring", "2", kStar, kPart, kTotal, kReduceScatter, kReduceScatter,
        [](const Size& s) {
          return alike(2, s.P - 1, 1 / s.P, s.P - 1, {s.P - 1, s.rest(), s.rest()});
        }},
    Row{reduce_scatter, "circulant", "2⌈log2 P⌉−1", "⌈log2 P⌉", kHalf, kTotal, "⌈log2 P⌉α + (P−1)/P·nβ + (P−1)/P·nγ",
        "⌈log2 P⌉α + (P−1)/P·nβ + (P−1)/P·nγ",
        [](const Size& s) {
          return alike(2 * s.ceil_L - 1, s.ceil_L, .5, s.P - 1, {s.ceil_L, s.rest(), s.rest()});
        }},
    Row{reduce_scatter, "naive", kStar, "1", kPart, kTotal, "α + n/P·β + (P−1)/P·nγ", kReduceScatter,
        [](const Size& s) {
          return Numbers{s.P - 1, 1, 1 / s.P, s.P - 1, {1, 1 / s.P, s.rest()}, {s.P - 1, s.rest(), s.rest()}};
        }},
    Row{reduce_scatter, "round-robin", kStar, kStar, kPart, kTotal, kReduceScatter, kReduceScatter,
        [](const Size& s) {
          return alike(s.P - 1, s.P - 1, 1 / s.P, s.P - 1, {s.P - 1, s.rest(), s.rest()});
        }},
    Row{reduce_scatter, "halving", kLog, kLog, kHalf, kTotal, kLogReduceScatter, kLogReduceScatter,
        [](const Size& s) {
          return alike(s.L, s.L, .5, s.P - 1, {s.L, s.rest(), s.rest()});
        }},
    Row{reduce_scatter, "reduce-scatter-composed", kLog, kTwoLog, "n", "(P−1)n + ½·log2 P·n",
        "2·log2 P·α + (log2 P+(P−1)/P)nβ + log2 P·nγ", "2·log2 P·α + (log2 P+(P−1)/P)nβ + log2 P·nγ",
        [](const Size& s) {
          return alike(s.L, 2 * s.L, 1, s.P - 1 + s.L / 2, {2 * s.L, s.L + s.rest(), s.L});
        }},
    Row{all_to_all, "naive", kStar, "1", kPart, kTotal, "α + n/P·β", kGather,
        [](const Size& s) {
          return Numbers{s.P - 1, 1, 1 / s.P, s.P - 1, {1, 1 / s.P, 0}, {s.P - 1, s.rest(), 0}};
        }},
    Row{all_to_all, "round-robin", kStar, kStar, kPart, kTotal, kGather, kGather,
        [](const Size& s) {
          return alike(s.P - 1, s.P - 1, 1 / s.P, s.P - 1, {s.P - 1, s.rest(), 0});
        }},
    Row{all_to_all, "bruck", "2·log2 P−1", kLog, kHalf, "½·P·log2 P·n", "log2 P·(α + n/2·β)", "log2 P·(α + n/2·β)",
        [](const Size& s) {
          return alike(2 * s.L - 1, s.L, .5, s.P * s.L / 2, {s.L, s.L / 2, 0});
        }},
    Row{barrier, "dissemination", "2·log2 P−1", "⌈log2 P⌉", "0", "0", "⌈log2 P⌉α", "⌈log2 P⌉α",
        [](const Size& s) {
          return alike(2 * s.L - 1, s.ceil_L, 0, 0, {s.ceil_L, 0, 0});
        }},
    Row{barrier, "tree", "3", "2⌊log2 P⌋", "0", "0", "2·log2 P·α", "4·log2 P·α",
        [](const Size& s) {
          return Numbers{3, 2 * s.floor_L, 0, 0, {2 * s.L, 0, 0}, {4 * s.L, 0, 0}};
        }},
};

constexpr Row kParameterServer{
    all_reduce, "parameter-server", "P", "2", "n", "2Pn", "2(α + nβ) + Pnγ", "2P(α + nβ) + Pnγ", [](const Size& s) {
      return Numbers{s.P, 2, 1, 2 * s.P, {2, 2, s.P}, {2 * s.P, 2 * s.P, s.P}};
    }};

ClosedForm evaluate(const Row& row, const Symbols& symbols) {
  double P = symbols.ranks, n = symbols.bytes, L = std::log2(P);
  Numbers at = row.numbers({P, L, std::floor(L), std::ceil(L)});
  auto seconds = [&](const Time& time) {
    return time.alpha * symbols.alpha + time.beta * n * symbols.beta + time.gamma * n * symbols.gamma;
  };
  return {{row.wires, at.wires},     {row.rounds, at.rounds},      {row.per_round, at.per_round * n},
          {row.total, at.total * n}, {row.many, seconds(at.many)}, {row.one, seconds(at.one)}};
}

}  // namespace

std::optional<ClosedForm> closed_form(Collective what, std::string_view algorithm, const Symbols& symbols) {
  for (const Row& row : kRows) {
    if (row.what == what && row.name == algorithm) return evaluate(row, symbols);
  }
  return std::nullopt;
}

ClosedForm parameter_server_form(const Symbols& symbols) { return evaluate(kParameterServer, symbols); }

}  // namespace trireme
