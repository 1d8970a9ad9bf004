// Every algorithm of every collective on every transport against the oracle: ranks 1 to 9, sizes from nothing to more
// than a segment, all types and operators, heap and private memory, in place and not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/collective/oracle.h"
#include "tests/collective/worlds.h"
#include "tests/sanitized.h"
#include "trireme/base/error.h"
#include "trireme/collective/run/communicator_impl.h"

namespace trireme {
namespace {

using namespace trireme::test;

struct Case {
  Collective what;
  std::string algorithm;
  DType dtype = DType::f32;
  Op op = Op::sum;
  int root = 0;
  std::size_t count = 0;
  bool heap = false;
};

std::string describe(const Case& c, int rank, int ranks) {
  return fmt::format("{} {} {} {} root {} count {} {} rank {} of {}", name(c.what), c.algorithm, name(c.dtype),
                     name(c.op), c.root, c.count, c.heap ? "heap" : "private", rank, ranks);
}

void call(Communicator& comm, const Case& c, ConstView in, View out) {
  switch (c.what) {
    case Collective::broadcast:
      return comm.broadcast(out, c.root);
    case Collective::scatter:
      return comm.scatter(in, out, c.root);
    case Collective::gather:
      return comm.gather(in, out, c.root);
    case Collective::reduce:
      return comm.reduce(in, out, c.op, c.root);
    case Collective::all_gather:
      return comm.all_gather(in, out);
    case Collective::reduce_scatter:
      return comm.reduce_scatter(in, out, c.op);
    case Collective::all_reduce:
      return comm.all_reduce(in, out, c.op);
    case Collective::all_to_all:
      return comm.all_to_all(in, out);
    case Collective::barrier:
      return comm.barrier();
  }
}

// Runs one case; false at the first wrong element.
bool run_case(Communicator& comm, const Case& c, bool in_place = false) {
  const int rank = comm.rank(), ranks = comm.size();
  const auto ins = input_elements(c.what, rank, ranks, c.root, c.count);
  const auto outs = output_elements(c.what, rank, ranks, c.root, c.count);
  const auto element = size_of(c.dtype);
  std::vector<std::byte> private_in(ins * element + 8), private_out(outs * element + 8);
  std::shared_ptr<std::byte[]> heap_in, heap_out;
  std::byte *in = private_in.data(), *out = private_out.data();
  if (c.heap) {
    heap_in = comm.allocate_bytes(ins * element + 8);
    heap_out = comm.allocate_bytes(outs * element + 8);
    in = heap_in.get();
    out = heap_out.get();
  }
  if (in_place) in = out;
  std::memset(out, 0x5A, outs * element);
  for (std::size_t i = 0; i < ins; ++i) put(c.dtype, in, i, input_value(rank, i, reduces(c.what) ? c.op : Op::sum));
  if (c.what == Collective::broadcast && rank == c.root) std::memcpy(out, in, outs * element);
  comm.set_algorithm(name(c.what), c.algorithm);
  call(comm, c, {in, ins, c.dtype}, {out, outs, c.dtype});
  for (std::size_t i = 0; i < outs; ++i) {
    const double want = expected(c.what, c.dtype, c.op, rank, ranks, c.root, c.count, i);
    const double got = get(c.dtype, out, i);
    const double slack = c.op == Op::avg && is_float(c.dtype) ? std::abs(want) * (element == 2 ? 0.01 : 1e-6) : 0;
    if (std::abs(got - want) > slack) {
      ADD_FAILURE() << describe(c, rank, ranks) << (in_place ? " in place" : "") << ": element " << i << " is " << got
                    << ", not " << want;
      return false;
    }
  }
  return true;
}

class Collectives : public ::testing::TestWithParam<WorldFactory> {};

TEST_P(Collectives, EveryAlgorithmGivesTheOraclesResult) {
  for (int ranks : {1, 2, 3, 4, 5, 8, 9}) {
    if (test::kSanitized && ranks > 5) continue;
    run_ranks(GetParam().make(ranks),
              [&](Communicator& comm) {
                const bool shared = comm.transport() != "tcp";
                for (const Algorithm& algorithm : algorithms()) {
                  if (algorithm.shared && !shared) continue;
                  std::set<int> roots{0, ranks - 1, ranks / 2};
                  if (!has_root(algorithm.what)) roots = {0};
                  for (int root : roots) {
                    for (std::size_t count : {0, 1, 2, ranks, 3 * ranks + 1, 700}) {
                      for (bool heap : {false, true}) {
                        Case c{algorithm.what, std::string(algorithm.name), DType::f32, Op::sum, root, count, heap};
                        ASSERT_TRUE(run_case(comm, c));
                      }
                    }
                  }
                }
              },
              {});
  }
}

TEST_P(Collectives, LongVectorsGoInSegments) {
  constexpr std::size_t kLong = test::kSanitized ? 70'001 : 300'001;
  run_ranks(GetParam().make(3),
            [&](Communicator& comm) {
              for (const Algorithm& algorithm : algorithms()) {
                if (algorithm.shared && comm.transport() == "tcp") continue;
                for (bool heap : {false, true}) {
                  ASSERT_TRUE(run_case(
                      comm, {algorithm.what, std::string(algorithm.name), DType::f32, Op::sum, 1, kLong, heap}));
                }
              }
            },
            {});
}

TEST_P(Collectives, EveryTypeAndOperator) {
  run_ranks(GetParam().make(3),
            [&](Communicator& comm) {
              for (DType dtype : kDTypes) {
                for (Op op : kOps) {
                  if (!defined(dtype, op)) continue;
                  for (auto what : {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter}) {
                    for (const Algorithm* algorithm : algorithms_for(what)) {
                      if (algorithm->shared && comm.transport() == "tcp") continue;
                      ASSERT_TRUE(run_case(comm, {what, std::string(algorithm->name), dtype, op, 2, 37, true}));
                    }
                  }
                }
              }
            },
            {});
}

TEST_P(Collectives, InPlaceAllReduce) {
  run_ranks(
      GetParam().make(4),
      [&](Communicator& comm) {
        for (const Algorithm* algorithm : algorithms_for(Collective::all_reduce)) {
          if (algorithm->shared && comm.transport() == "tcp") continue;
          for (std::size_t count : {1, 5, 1000, 100'000}) {
            for (bool heap : {false, true}) {
              ASSERT_TRUE(run_case(
                  comm, {Collective::all_reduce, std::string(algorithm->name), DType::f32, Op::sum, 0, count, heap},
                  true));
            }
          }
        }
      },
      {});
}

TEST_P(Collectives, BitwiseOnFloatsIsAnError) {
  run_ranks(GetParam().make(2),
            [](Communicator& comm) {
              std::vector<float> x(4);
              EXPECT_THROW(comm.all_reduce(x, Op::bxor), ConfigError);
              EXPECT_THROW(comm.reduce(x, x, Op::band, 7), ConfigError);
            },
            {});
}

TEST_P(Collectives, SeveralInFlightOnSeveralLanes) {
  Options options;
  options.lanes = 3;
  run_ranks(
      GetParam().make(3),
      [](Communicator& comm) {
        constexpr int kCalls = 40;
        std::vector<std::vector<float>> data(kCalls);
        std::vector<Work> works;
        for (int i = 0; i < kCalls; ++i) {
          data[i].assign(static_cast<std::size_t>(i) * 97 + 1, static_cast<float>(comm.rank() + i));
          works.push_back(comm.async().all_reduce(data[i]));
        }
        std::vector<float> inline_call(10, 1);
        comm.all_reduce(inline_call);
        EXPECT_EQ(inline_call[9], 3);
        for (int i = 0; i < kCalls; ++i) {
          works[i].wait();
          EXPECT_TRUE(works[i].done());
          for (float v : data[i]) ASSERT_EQ(v, static_cast<float>(3 * i + 3));
        }
      },
      options);
}

TEST_P(Collectives, PointToPointBothWays) {
  run_ranks(GetParam().make(3),
            [](Communicator& comm) {
              const int next = (comm.rank() + 1) % 3, previous = (comm.rank() + 2) % 3;
              for (std::size_t count : {0u, 1u, 1000u, 500'000u}) {
                std::vector<float> out(count, static_cast<float>(comm.rank())), in(count, -1.0f);
                Work sending = comm.send_async(out, next, 5);
                comm.recv(in, previous, 5);
                sending.wait();
                for (float v : in) ASSERT_EQ(v, static_cast<float>(previous));
              }
            },
            {});
}

TEST_P(Collectives, SplitMakesIndependentGroups) {
  run_ranks(GetParam().make(5),
            [](Communicator& comm) {
              auto half = comm.split(comm.rank() % 2, -comm.rank());
              ASSERT_TRUE(half.has_value());
              EXPECT_EQ(half->size(), comm.rank() % 2 == 0 ? 3 : 2);
              EXPECT_EQ(half->rank(), half->size() - 1 - comm.rank() / 2);
              std::vector<float> x(100, static_cast<float>(comm.rank()));
              half->all_reduce(x);
              EXPECT_EQ(x[50], comm.rank() % 2 == 0 ? 6.0f : 4.0f);
              comm.all_reduce(x);
              EXPECT_EQ(x[50], 26.0f);
              auto none = comm.split(comm.rank() == 0 ? -1 : 0);
              EXPECT_EQ(none.has_value(), comm.rank() != 0);
              if (none) none->barrier();
            },
            {});
}

INSTANTIATE_TEST_SUITE_P(, Collectives, ::testing::ValuesIn(world_factories()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace trireme
