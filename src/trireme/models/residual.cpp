#include "trireme/models/residual.h"

#include "trireme/operators/epilogue.h"
#include "trireme/operators/pooling.h"

namespace trireme::models {

nn::Conv2d plain_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

nn::Conv2d stem_conv(const Image& image, std::int64_t width) {
  return image.small() ? plain_conv(image.channels, width, 3) : plain_conv(image.channels, width, 7, 2);
}

torch::Tensor pool_stem(const torch::Tensor& x) { return operators::relu_max_pool(x, 3, 2, 1); }

torch::Tensor norm_relu(nn::BatchNorm2d norm, const torch::Tensor& x, const torch::Tensor& skip) {
  return operators::with_epilogue([&] { return norm->forward(x); }, {.add = skip, .relu = true});
}

nn::Piece first_of_block(const std::string& name, nn::Conv2d conv, nn::BatchNorm2d norm) {
  return {name, {conv.ptr(), norm.ptr()}, [=](nn::Values values) mutable {
            auto x = values[0];
            values[0] = norm_relu(norm, conv->forward(x));
            values.push_back(x);
            return values;
          }};
}

nn::Piece middle_of_block(const std::string& name, nn::Conv2d conv, nn::BatchNorm2d norm) {
  return {name, {conv.ptr(), norm.ptr()}, [=](nn::Values values) mutable {
            values[0] = norm_relu(norm, conv->forward(values[0]));
            return values;
          }};
}

nn::Piece last_of_block(const std::string& name, nn::Conv2d conv, nn::BatchNorm2d norm,
                        const std::vector<std::shared_ptr<torch::nn::Module>>& others, Shortcut shortcut) {
  nn::Piece piece{name, {conv.ptr(), norm.ptr()}, [=](nn::Values values) mutable {
                    auto y = conv->forward(values[0]);
                    values[0] = norm_relu(norm, y, shortcut ? shortcut(values.back()) : values.back());
                    values.pop_back();
                    return values;
                  }};
  piece.modules.insert(piece.modules.end(), others.begin(), others.end());
  return piece;
}

void init_convolutions(torch::nn::Module& module) {
  for (auto& part : module.modules(false)) {
    if (auto* conv = part->as<torch::nn::Conv2d>()) {
      torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
      if (conv->bias.defined()) torch::nn::init::zeros_(conv->bias);
    }
  }
}

}  // namespace trireme::models
