// powersgd: a matrix as the product of two thin ones (Vogels, Karimireddy, Jaggi, "PowerSGD: Practical Low-Rank
// Gradient Compression for Distributed Optimization", 2019): one step of power iteration that goes on where the last
// ended.
//   M         the tensor, m × n; r the rank; Q from the step before, at first drawn from a seed that all workers share
//   round 1   P = M·Q, the mean over workers, its columns made orthonormal: P̂
//   round 2   Q = Mᵀ·P̂, the mean over workers;  M̂ = P̂·Qᵀ, the workers' mean M as far as P̂ spans it
//   left      M − P̂·(Mᵀ·P̂)ᵀ with the worker's own M: the mean over workers of that and M̂ add up to the mean of M
//   terms     r·m and r·n f32, added on the way
//   message   m as u32, P̂ and Q as f32, column after column. A piece of a tensor, or a vector, of N elements is a
//             matrix of ⌊√N⌋ rows and as many columns as it takes, its last row filled with zeros.
//   bytes     4·r·(m + n), a message 4 more; r is at most m, n and what makes no message longer than the elements
//   error     Σ(x − x̂)² ≤ Σx², to rounding; a matrix of rank r or less is as it was, to 10⁻⁵·max|x|
//   cost      2·r multiplications per element to encode, r to decode, r to know what is left
// So that no sum overflows, Q has columns of size ½ over all workers, and Q travels smaller by a power of two, 2ᵉ.
#include <bit>
#include <cmath>
#include <map>

#include "trireme/compress/check.h"
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/factors.h"
#include "trireme/compress/random.h"
#include "trireme/compress/state.h"

namespace trireme::compress {
namespace {

using kernels::Expand;
using kernels::Matrix;

// 2ᵉ is at least 2·r·workers·√m: as much as r products of a column of length 1 and m numbers of P workers may grow.
int exponent_of(const Matrix& shape, std::size_t rank, int workers) {
  const auto factor = 2 * rank * static_cast<std::size_t>(workers);
  const int half = (std::bit_width(shape.rows) + 1) / 2;
  return half + std::bit_width(factor);
}

class PowerSgd : public Codec {
 public:
  PowerSgd(std::size_t rank, const Tensor& tensor, const Context& context)
      : most_rank_(rank),
        count_(tensor.count),
        rows_(tensor.rows),
        workers_(context.workers),
        key_(shared_key(tensor, context)) {}

  Aggregation aggregation() const override { return Aggregation::sum; }

  std::size_t most_bytes(std::size_t count) const override {
    return count == 0 ? 0 : message_bytes(shape_of(count), rank_of(shape_of(count)));
  }
  std::size_t encode(std::size_t offset, std::span<const float> x, std::byte* message, float* left) override;
  void decode(std::span<const std::byte> message, std::span<float> out) const override {
    read(message, Expand::put, 1, out);
  }
  void add(std::span<const std::byte> message, float factor, std::span<float> out) const override {
    read(message, Expand::add, factor, out);
  }

  int rounds() const override { return 2; }
  std::size_t terms(int round) const override {
    const Matrix shape = shape_of(count_);
    return count_ == 0 ? 0 : rank_of(shape) * (round == 0 ? shape.rows : shape.cols);
  }
  void give(int round, std::span<const float> x, std::byte* terms) override;
  void take(int round, const std::byte* means, std::span<float> out) override;
  void leave(std::span<float> x) const override;

  void keep(StateWriter& to) const override;
  void recall(StateReader& from) override;

 private:
  // What is kept of a matrix from step to step.
  struct Kept {
    Matrix shape;
    std::size_t rank;
    Factor p, q, own;  // P̂; Q, of all workers; this worker's Q
  };

  Matrix shape_of(std::size_t count) const {
    if (count == 0) return {0, 0, 0};
    if (count == count_ && rows_ > 1 && rows_ < count && count % rows_ == 0) return {rows_, count / rows_, count};
    auto rows = static_cast<std::size_t>(std::sqrt(static_cast<double>(count)));
    return {rows, (count + rows - 1) / rows, count};
  }
  std::size_t rank_of(const Matrix& shape) const {
    const std::size_t fits =
        (shape.count + kHeader / sizeof(float) - 1) / std::max<std::size_t>(1, shape.rows + shape.cols);
    return std::max<std::size_t>(1, std::min({most_rank_, shape.rows, shape.cols, fits}));
  }
  static std::size_t message_bytes(const Matrix& shape, std::size_t rank) {
    return sizeof(std::uint32_t) + Factor::bytes(shape.rows + shape.cols, rank);
  }

  Kept fresh(std::size_t count) const;
  Kept& kept(std::size_t offset, std::size_t count);
  // P ← M·Q, to be added up over so many workers.
  void project(Kept& kept, const float* x, int workers) const;
  // own ← Mᵀ·P̂, P̂ made of P.
  void project_back(Kept& kept, const float* x, int workers) const;
  void read(std::span<const std::byte> message, Expand how, float factor, std::span<float> out) const;

  const std::size_t most_rank_, count_, rows_;
  const int workers_;
  const std::uint64_t key_;
  std::map<std::size_t, Kept> kept_;  // by the offset of a piece; the whole tensor's is at 0
};

PowerSgd::Kept PowerSgd::fresh(std::size_t count) const {
  const Matrix shape = shape_of(count);
  const std::size_t rank = rank_of(shape);
  return {shape, rank, {shape.rows, rank}, {shape.cols, rank}, {shape.cols, rank}};
}

PowerSgd::Kept& PowerSgd::kept(std::size_t offset, std::size_t count) {
  auto found = kept_.find(offset);
  if (found != kept_.end() && found->second.shape.count == count) return found->second;
  return kept_.insert_or_assign(offset, fresh(count)).first->second;
}

// Of each piece Q alone goes on to the next step.
void PowerSgd::keep(StateWriter& to) const {
  to.begin("powersgd");
  to.put(kept_.size());
  for (const auto& [offset, all] : kept_) {
    to.put(offset);
    to.put(all.shape.count);
    to.put(all.rank);
    for (std::size_t k = 0; k < all.rank; ++k) to.put(all.q.column(k));
  }
}

void PowerSgd::recall(StateReader& from) {
  from.begin("powersgd");
  std::map<std::size_t, Kept> kept;
  for (auto pieces = from.get<std::size_t>(); pieces > 0; --pieces) {
    const auto offset = from.get<std::size_t>(), count = from.get<std::size_t>(), rank = from.get<std::size_t>();
    if (count == 0 || offset > count_ || count > count_ - offset || rank != rank_of(shape_of(count))) {
      throw DataError("powersgd: factors of a matrix of another size or rank");
    }
    Kept all = fresh(count);
    for (std::size_t k = 0; k < rank; ++k) std::ranges::copy(from.floats(all.shape.cols), all.q.column(k).begin());
    kept.insert_or_assign(offset, std::move(all));
  }
  from.end();
  kept_ = std::move(kept);
}

void PowerSgd::project(Kept& kept, const float* x, int workers) const {
  normalize(kept.q, 0.5 / workers, key_);
  kernels::times(kept.shape, x, kept.q.data(), kept.rank, kept.p.data());
}

void PowerSgd::project_back(Kept& kept, const float* x, int workers) const {
  Factor small(kept.shape.rows, kept.rank);
  std::copy_n(kept.p.data(), kept.rank * kernels::column_stride(kept.shape.rows), small.data());
  shrink(small, exponent_of(kept.shape, kept.rank, workers));
  kernels::transposed_times(kept.shape, x, small.data(), kept.rank, kept.own.data());
}

std::size_t PowerSgd::encode(std::size_t offset, std::span<const float> x, std::byte* message, float* left) {
  check_finite(x);
  if (x.empty()) return 0;
  Kept& all = kept(offset, x.size());
  project(all, x.data(), 1);
  orthonormalize(all.p, key_);
  project_back(all, x.data(), 1);
  const auto rows = static_cast<std::uint32_t>(all.shape.rows);
  std::memcpy(message, &rows, sizeof rows);
  all.p.write(message + sizeof rows);
  all.own.write(message + sizeof rows + Factor::bytes(all.shape.rows, all.rank));
  std::swap(all.q, all.own);
  if (left) {
    if (left != x.data()) std::ranges::copy(x, left);
    kernels::expand(all.shape, all.p.data(), all.q.data(), all.rank, exponent_of(all.shape, all.rank, 1),
                    Expand::take_off, 1, left);
  }
  return message_bytes(all.shape, all.rank);
}

void PowerSgd::read(std::span<const std::byte> message, Expand how, float factor, std::span<float> out) const {
  if (out.empty()) return check_length("powersgd", message, 0);
  std::uint32_t rows = 0;
  if (message.size() >= sizeof rows) std::memcpy(&rows, message.data(), sizeof rows);
  const std::size_t count = out.size();
  if (rows == 0 || rows > count) throw ProtocolError("powersgd: a message for a matrix of another size");
  const Matrix shape{rows, (count + rows - 1) / rows, count};
  if ((shape.rows - 1) * shape.cols >= count) throw ProtocolError("powersgd: a message for a matrix of another size");
  const std::size_t rank = rank_of(shape);
  check_length("powersgd", message, message_bytes(shape, rank));
  Factor p(shape.rows, rank), q(shape.cols, rank);
  p.read(message.data() + sizeof rows);
  q.read(message.data() + sizeof rows + Factor::bytes(shape.rows, rank));
  for (std::size_t k = 0; k < rank; ++k) {
    if (kernels::first_not_finite(p.column(k).data(), shape.rows) < shape.rows ||
        kernels::first_not_finite(q.column(k).data(), shape.cols) < shape.cols) {
      throw ProtocolError("powersgd: a factor holds what is no number");
    }
  }
  kernels::expand(shape, p.data(), q.data(), rank, exponent_of(shape, rank, 1), how, factor, out.data());
}

void PowerSgd::give(int round, std::span<const float> x, std::byte* terms) {
  TRIREME_CHECK(x.size() == count_);
  if (round == 0) check_finite(x);
  if (x.empty()) return;
  Kept& all = kept(0, count_);
  if (round == 0) {
    project(all, x.data(), workers_);
    all.p.write(terms);
  } else {
    project_back(all, x.data(), workers_);
    all.own.write(terms);
  }
}

void PowerSgd::take(int round, const std::byte* means, std::span<float> out) {
  if (count_ == 0) return;
  Kept& all = kept(0, count_);
  if (round == 0) {
    all.p.read(means);
    orthonormalize(all.p, key_);
  } else {
    all.q.read(means);
    kernels::expand(all.shape, all.p.data(), all.q.data(), all.rank, exponent_of(all.shape, all.rank, workers_),
                    Expand::put, 1, out.data());
  }
}

void PowerSgd::leave(std::span<float> x) const {
  if (x.empty()) return;
  const Kept& all = kept_.at(0);
  kernels::expand(all.shape, all.p.data(), all.own.data(), all.rank, exponent_of(all.shape, all.rank, workers_),
                  Expand::take_off, 1, x.data());
}

}  // namespace

CodecKind powersgd() {
  return {.name = "powersgd",
          .summary = "a matrix as the product of two thin ones; vectors travel as they are",
          .settings = {{"rank", "4", "columns of the thin matrices", whole_number(1, 64)}},
          .error = CodecKind::Error::fed_back,
          .matrices_only = true,
          .make = [](const Values& values, const Tensor& tensor, const Context& context) -> std::unique_ptr<Codec> {
            return std::make_unique<PowerSgd>(static_cast<std::size_t>(values.integer("rank")), tensor, context);
          }};
}

}  // namespace trireme::compress
