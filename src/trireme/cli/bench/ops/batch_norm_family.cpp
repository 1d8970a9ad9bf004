// Batch normalization, with a skip connection and ReLU in the same pass: ops/passes.
#include <fmt/format.h>

#include <memory>

#include "trireme/cli/bench/ops/op_text.h"

namespace trireme::bench {
namespace {

class BatchNormData {
 public:
  explicit BatchNormData(const BatchNormShape& of) : of_(of) {}

  void forward() {
    ops::batch_statistics(of_.rows, x_.data(), mean_, variance_);
    ops::normalization_of(mean_, variance_, kEpsilon, weight_.data(), bias_.data(), scale_, shift_);
    ops::normalize(of_.rows, x_.data(), {scale_.data(), shift_.data(), of_.add ? skip_.data() : nullptr, of_.relu},
                   y_.data());
  }
  void backward() {
    const ops::NormGradients gradients{of_.relu ? y_.data() : nullptr, x_.data(), d_y_.data()};
    const std::vector<float> mean(mean_.begin(), mean_.end());
    ops::norm_sums(of_.rows, gradients, mean.data(), sums_, products_);
    ops::slopes_of(variance_, kEpsilon, of_.rows.rows, sums_, products_, scale_, slope_, offset_);
    ops::norm_backward(of_.rows, gradients, {scale_.data(), mean.data(), slope_.data(), offset_.data()}, d_x_.data(),
                       of_.add ? d_skip_.data() : nullptr);
  }

 private:
  static constexpr double kEpsilon = 1e-5;
  std::vector<double> doubles() const { return std::vector<double>(static_cast<std::size_t>(of_.rows.channels)); }
  std::vector<float> floats() const { return std::vector<float>(static_cast<std::size_t>(of_.rows.channels)); }

  const BatchNormShape of_;
  const int64_t size_ = of_.rows.size();
  ops::AlignedFloats x_ = some_numbers(size_), skip_ = some_numbers(of_.add ? size_ : 0), y_{size_};
  ops::AlignedFloats d_y_ = some_numbers(size_), d_x_{size_}, d_skip_{of_.add ? size_ : 1};
  ops::AlignedFloats weight_ = some_numbers(of_.rows.channels), bias_ = some_numbers(of_.rows.channels);
  std::vector<double> mean_ = doubles(), variance_ = doubles(), sums_ = doubles(), products_ = doubles();
  std::vector<float> scale_ = floats(), shift_ = floats(), slope_ = floats(), offset_ = floats();
};

std::vector<Contender> batch_norm_contenders(const OpShape& of, ops::Pass pass) {
  const auto data = std::make_shared<BatchNormData>(std::get<BatchNormShape>(of));
  if (pass == ops::Pass::forward) return {{"fused", 0, [data] { data->forward(); }}};
  data->forward();
  return {{"fused", 0, [data] { data->backward(); }}};
}

}  // namespace

OpFamily batch_norm_family() {
  return {.name = "batch-norm",
          .form = "ROWSxCHANNELS[,add][,relu]",
          .example = "16384x64,add,relu",
          .memory_bound = true,
          .passes = {{ops::Pass::forward, "forward"}, {ops::Pass::data, "backward"}},
          .implementations = {"fused"},
          .parse = [](const OpFamily& family, std::string_view text) -> OpShape {
            const OpText parsed = parse_op_text(family, text, {2});
            BatchNormShape shape{.rows = {parsed.sizes[0][0], parsed.sizes[0][1]}};
            for (const OpSetting& setting : parsed.settings) {
              if (setting.value.empty() && setting.name == "add") {
                shape.add = true;
              } else if (setting.value.empty() && setting.name == "relu") {
                shape.relu = true;
              } else {
                refuse_setting(family, setting);
              }
            }
            return shape;
          },
          .text =
              [](const OpShape& of) {
                const auto& it = std::get<BatchNormShape>(of);
                return fmt::format("{}x{}{}{}", it.rows.rows, it.rows.channels, it.add ? ",add" : "",
                                   it.relu ? ",relu" : "");
              },
          .work = [](const OpShape& of, ops::Pass pass) -> OpWork {
            const auto& it = std::get<BatchNormShape>(of);
            const auto size = static_cast<double>(it.rows.size());
            const double more = (it.add ? 1 : 0) + (it.relu ? 1 : 0);
            // Moments 4, scale and shift 2; sums 4, the gradient 5. x, y, the skip connection; x, dy, dx, y for ReLU's
            // mask, and the skip connection's gradient.
            if (pass == ops::Pass::forward) return {(6 + more) * size, 4 * (2 + (it.add ? 1 : 0)) * size};
            return {(9 + (it.relu ? 1 : 0)) * size, 4 * (3 + more) * size};
          },
          .contenders = batch_norm_contenders};
}

}  // namespace trireme::bench
