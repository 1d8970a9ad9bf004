#include "trireme/sync/exchange/compressed_mean.h"

#include <cmath>
#include <exception>

#include "trireme/base/clock.h"
#include "trireme/sync/exchange/done.h"
#include "trireme/sync/exchange/rehearsal.h"

namespace trireme::sync {
namespace {

// How often what codes lack is measured: a few passes over the data each time.
constexpr std::int64_t kLookEvery = 32;

double norm(std::span<const float> x, std::span<const float> plus = {}) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = static_cast<double>(x[i]) + (plus.empty() ? 0.0 : static_cast<double>(plus[i]));
    sum += value * value;
  }
  return std::sqrt(sum);
}

}  // namespace

CompressedMean::CompressedMean(Communicator& world, const std::vector<compress::Tensor>& tensors, Codes codes, Op op,
                               NotFinite not_finite)
    : codes_(std::move(codes)),
      op_(op),
      not_finite_(not_finite),
      group_(*world.split(0, world.rank())),
      exchange_(group_, op, not_finite) {
  for (const auto& tensor : tensors) members_.push_back(member_of(tensor));
}

CompressedMean::~CompressedMean() {
  if (std::uncaught_exceptions() > 0) group_.abort("training has failed in the middle of a step");
}

CompressedMean::Member CompressedMean::member_of(const compress::Tensor& tensor) const {
  const auto& choice = codes_.rules.of(tensor);
  compress::Context context{.seed = codes_.seed,
                            .rank = group_.rank(),
                            .workers = group_.size(),
                            .steps_per_epoch = codes_.steps_per_epoch,
                            .momentum = codes_.momentum};
  Member member{tensor, choice.make(tensor, context), nullptr, choice.none()};
  if (member.codec->aggregation() == compress::Aggregation::scatter) {
    const auto share = share_of(tensor.count, member.codec->block(), group_.size(), group_.rank());
    context.seed = ~context.seed;  // draws of its own
    const auto& again = choice.kind->again;
    member.again = (again.empty() ? choice : compress::Choice::parse(again))
                       .make({tensor.name, share.count, 1, tensor.number}, context);
  }
  return member;
}

void CompressedMean::exchange(const std::vector<std::pair<Member*, std::span<float>>>& parts, View whole) {
  dense_bytes_ += 2.0 * (group_.size() - 1) / group_.size() * static_cast<double>(whole.count * size_of(whole.dtype));
  if (std::ranges::all_of(parts, [](const auto& part) { return part.first->none; })) {
    group_.all_reduce(whole, op_);
    return;
  }
  const bool looking = exchanges_++ % kLookEvery == 0;
  std::vector<Coded> coded;
  std::vector<double> before;
  left_.resize(looking ? whole.count : 0);
  for (const auto& [member, x] : parts) {
    coded.push_back({&member->tensor.name, member->codec.get(), member->again.get(), x});
    if (!looking) continue;
    if (member->codec->carried().empty()) {
      coded.back().left = left_.data() + (x.data() - static_cast<float*>(whole.data));
    }
    before.push_back(norm(x, member->codec->carried()));
  }
  exchange_.exchange(coded);
  if (looking) look(coded, before);
}

void CompressedMean::look(const std::vector<Coded>& coded, const std::vector<double>& before) {
  double all = 0, lacking = 0;
  for (std::size_t k = 0; k < coded.size(); ++k) {
    const double lacks = coded[k].left ? norm({coded[k].left, coded[k].x.size()}) : norm(coded[k].codec->carried());
    all += before[k] * before[k];
    lacking += lacks * lacks;
  }
  if (!(all > 0) || !std::isfinite(lacking)) return;
  errors_ += std::sqrt(lacking / all);
  ++looks_;
}

void CompressedMean::exchange(const Bucket& bucket) {
  if (bucket.data.dtype != DType::f32) return group_.all_reduce(bucket.data, op_);
  std::vector<std::pair<Member*, std::span<float>>> parts;
  auto* memory = static_cast<float*>(bucket.data.data);
  for (const Segment& segment : bucket.segments) {
    auto& member = members_.at(static_cast<std::size_t>(segment.parameter));
    TRIREME_CHECK(member.tensor.count == segment.count);
    parts.emplace_back(&member, std::span(memory + segment.offset, segment.count));
  }
  exchange(parts, bucket.data);
}

void CompressedMean::operator()(std::span<float> all) {
  std::vector<std::pair<Member*, std::span<float>>> parts;
  std::size_t at = 0;
  for (Member& member : members_) {
    parts.emplace_back(&member, all.subspan(at, member.tensor.count));
    at += member.tensor.count;
  }
  TRIREME_CHECK(at == all.size());
  exchange(parts, View(all));
}

std::unique_ptr<Pending> CompressedMean::begin(Turn turn, std::function<void()> work) {
  auto guarded = [this, work = std::move(work)] {
    try {
      work();
    } catch (const Error& error) {
      group_.abort(error.what());
      throw;
    }
  };
  if (turn == Turn::background) return background_.start(std::move(guarded));
  const double begin = now_seconds();
  guarded();
  return std::make_unique<Done>(Pending::Times{begin, now_seconds()});
}

std::unique_ptr<Pending> CompressedMean::start(std::span<float> all) {
  return begin(Turn::background, [this, all] { (*this)(all); });
}

std::unique_ptr<Pending> CompressedMean::start(const Bucket& bucket, Turn turn) {
  return begin(turn, [this, bucket] { exchange(bucket); });
}

std::function<void()> CompressedMean::rehearsal(std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  auto member = std::make_shared<Member>(member_of({"rehearsal", count, Rehearsal::rows(count), -1}));
  auto memory = group_.allocate<float>(count);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    memory[static_cast<std::ptrdiff_t>(i)] = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
  }
  auto exchange = std::make_shared<CodeExchange>(group_, op_, not_finite_);
  return [this, member, memory, count, exchange] {
    const auto before = group_.bytes_sent();
    const Coded coded{&member->tensor.name, member->codec.get(), member->again.get(), {memory.get(), count}};
    exchange->exchange({&coded, 1});
    rehearsed_bytes_ += group_.bytes_sent() - before;
  };
}

std::vector<CompressedMean::InUse> CompressedMean::in_use() {
  std::vector<InUse> found;
  for (Member& member : members_) {
    if (member.none) continue;
    const auto share = share_of(member.tensor.count, member.codec->block(), group_.size(), group_.rank());
    found.push_back({&member.tensor.name, member.codec.get(), member.again.get(), member.again ? share : Share{}});
  }
  return found;
}

Compressed CompressedMean::report() const {
  Compressed report{.bytes_before = static_cast<std::uint64_t>(dense_bytes_),
                    .bytes_after = bytes_sent(),
                    .encode_s = exchange_.encode_s(),
                    .decode_s = exchange_.decode_s(),
                    .error = looks_ > 0 ? errors_ / looks_ : 0};
  double square = 0;
  for (const Member& member : members_) square += std::pow(norm(member.codec->carried()), 2);
  report.carried = std::sqrt(square);
  return report;
}

}  // namespace trireme::sync
