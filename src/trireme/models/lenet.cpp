// LeNet-5 (LeCun et al., "Gradient-based learning applied to document recognition", 1998) as it is written today: the
// sizes of the paper, ReLU and max pooling; the first convolution pads 28x28 to the paper's 32x32.
#include "trireme/models/options.h"
#include "trireme/models/zoo.h"
#include "trireme/nn/layers.h"
#include "trireme/operators/pooling.h"

namespace trireme::models {
namespace {

using nn::Conv2d;
using nn::Linear;
using torch::nn::Conv2dOptions;

class LeNet : public ChainModel {
 public:
  LeNet(const Shape& shape, const Arguments& arguments) {
    Options("lenet", arguments).done();
    Image image = image_of("lenet", shape, 12);
    auto after = [](std::int64_t side) { return (side / 2 - 4) / 2; };
    std::int64_t features = 16 * after(image.height) * after(image.width);
    auto conv1 = register_module("conv1", Conv2d(Conv2dOptions(image.channels, 6, 5).padding(2)));
    auto conv2 = register_module("conv2", Conv2d(Conv2dOptions(6, 16, 5)));
    auto fc1 = register_module("fc1", Linear(features, 120));
    auto fc2 = register_module("fc2", Linear(120, 84));
    auto fc3 = register_module("fc3", Linear(84, shape.classes));
    for (auto& [name, conv] : {std::pair{"conv1", conv1}, {"conv2", conv2}}) {
      add_piece(name, {conv},
                [conv = conv](torch::Tensor x) { return operators::relu_max_pool(conv->forward(x), 2, 2); });
    }
    add_piece("fc1", {fc1}, [=](torch::Tensor x) { return relu_inplace(fc1->forward(x.flatten(1))); });
    add_piece("fc2", {fc2}, [=](torch::Tensor x) { return relu_inplace(fc2->forward(x)); });
    add_piece("fc3", {fc3}, [=](torch::Tensor x) { return fc3->forward(x); });
  }
};

}  // namespace

Made make_lenet(const Shape& shape, const Arguments& arguments) { return std::make_shared<LeNet>(shape, arguments); }

}  // namespace trireme::models
