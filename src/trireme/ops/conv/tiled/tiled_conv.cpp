#include "trireme/ops/conv/tiled/tiled_conv.h"

#include "trireme/ops/conv/tiled/filtering.h"
#include "trireme/ops/conv/tiled/weight_gradient.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops::tiled {
namespace {

// Slots of an element of a transform, real or complex, with its way through the cache.
constexpr double kRealTransform = 8;
constexpr double kComplexTransform = 30;
constexpr double kFilterTouches = 2;  // transformed filters or their sums are written and read

}  // namespace

bool TiledConv::takes(const ConvShape& shape, Pass) const {
  constexpr std::array<int64_t, 2> one{1, 1};
  return shape.stride == one && shape.dilation == one && shape.groups == 1 && takes_kernel(shape.kernel);
}

OpCost TiledConv::cost(const ConvShape& shape, Pass pass) const {
  const auto it = transform(shape, pass);
  const bool weights = pass == Pass::weights;
  const Tiles tiles = weights ? WeightGradient(shape, *it).tiles() : Filtering(shape, pass, *it).tiles();
  const int64_t from = pass == Pass::data ? shape.out_channels : shape.in_channels;
  const int64_t to = pass == Pass::data ? shape.in_channels : shape.out_channels;
  const auto channels = [](int64_t from_, int64_t to_) { return static_cast<double>(from_ + to_); };
  const auto planes = static_cast<double>(it->planes);
  // A complex product is four.
  const double matrices = static_cast<double>(tiles.count()) * static_cast<double>(it->parts) * planes;
  const double products = matrices * planes * static_cast<double>(from * to);
  const bool few = it->planes == 1 && few_tiles(from, to, tiles.count());
  const double filters = few ? 0 : static_cast<double>(it->parts * from * to) * planes * planes;
  const auto elements = static_cast<double>(shape.input_size() + shape.output_size() + shape.weight_size());
  return {.multiplications = products,
          .additions = products + it->n * matrices * channels(from, to),  // about: a sum of n/2 in each direction
          .slots = matrices * planes * static_cast<double>(from * wide(to)) +
                   (it->planes == 1 ? kRealTransform : kComplexTransform) * matrices * channels(wide(from), wide(to)),
          .bytes = 4 * (elements + kFilterTouches * filters),
          .workspace = weights ? WeightGradient(shape, *it).workspace(threads())
                               : Filtering(shape, pass, *it).workspace(threads())};
}

void TiledConv::run(const ConvShape& shape, Pass pass, const ConvTensors& tensors,
                    std::span<std::byte> workspace) const {
  const auto it = transform(shape, pass);
  if (pass == Pass::weights) return WeightGradient(shape, *it).run(tensors, workspace);
  if (shape.batch > 0) Filtering(shape, pass, *it).run(tensors, workspace);
}

}  // namespace trireme::ops::tiled
