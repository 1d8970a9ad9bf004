// LeNet-5 (LeCun et al., "Gradient-based learning applied to document recognition", 1998) as it is written today: the
// sizes of the paper, ReLU and max pooling; the first convolution pads 28x28 to the paper's 32x32.
#include "trireme/models/options.h"
#include "trireme/models/zoo.h"

namespace trireme::models {
namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Linear;

class LeNet : public Model {
 public:
  LeNet(const Shape& shape, const Arguments& arguments) {
    Options("lenet", arguments).done();
    Image image = image_of("lenet", shape, 12);
    auto after = [](std::int64_t side) { return (side / 2 - 4) / 2; };
    std::int64_t features = 16 * after(image.height) * after(image.width);
    conv1_ = register_module("conv1", Conv2d(Conv2dOptions(image.channels, 6, 5).padding(2)));
    conv2_ = register_module("conv2", Conv2d(Conv2dOptions(6, 16, 5)));
    fc1_ = register_module("fc1", Linear(features, 120));
    fc2_ = register_module("fc2", Linear(120, 84));
    fc3_ = register_module("fc3", Linear(84, shape.classes));
  }

  torch::Tensor forward(torch::Tensor x) override {
    x = torch::max_pool2d(relu_inplace(conv1_->forward(x)), 2);
    x = torch::max_pool2d(relu_inplace(conv2_->forward(x)), 2).flatten(1);
    x = relu_inplace(fc1_->forward(x));
    x = relu_inplace(fc2_->forward(x));
    return fc3_->forward(x);
  }

 private:
  Conv2d conv1_{nullptr}, conv2_{nullptr};
  Linear fc1_{nullptr}, fc2_{nullptr}, fc3_{nullptr};
};

}  // namespace

Made make_lenet(const Shape& shape, const Arguments& arguments) { return std::make_shared<LeNet>(shape, arguments); }

}  // namespace trireme::models
