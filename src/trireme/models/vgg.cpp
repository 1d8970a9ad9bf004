// VGG-11 (Simonyan & Zisserman, "Very deep convolutional networks for large-scale image recognition", 2014): layers,
// names and initialization as in torchvision, with batch normalization if asked for. Images of at most 64 pixels a side
// go from the convolutions straight to one linear layer, and a pooling that would leave nothing is left out.
#include "trireme/models/residual.h"
#include "trireme/models/zoo.h"
#include "trireme/nn/dropout.h"
#include "trireme/nn/layers.h"

namespace trireme::models {
namespace {

using nn::Dropout;
using nn::Linear;

constexpr std::int64_t kPool = 0;
constexpr std::int64_t kLayers[] = {64, kPool, 128, kPool, 256, 256, kPool, 512, 512, kPool, 512, 512, kPool};

torch::nn::ReLU relu_layer() { return torch::nn::ReLU(torch::nn::ReLUOptions(true)); }

class Vgg : public ChainModel {
 public:
  Vgg(std::string_view name, const Shape& shape, const Arguments& arguments) {
    Options options(name, arguments);
    bool batch_norm = options.flag("bn", false);
    double dropout = options.share("dropout", 0.5);
    options.done();
    Image image = image_of(name, shape, 8);
    small_ = image.small();

    for (std::int64_t width : kLayers) add(width, image, batch_norm);
    if (small_) {
      classifier_->push_back(Linear(512 * image.height * image.width, shape.classes));
    } else {
      std::int64_t features = 512 * kSide * kSide;
      for (int layer = 0; layer < 2; ++layer) {
        classifier_->push_back(Linear(features, 4096));
        classifier_->push_back(relu_layer());
        classifier_->push_back(Dropout(dropout));
        features = 4096;
      }
      classifier_->push_back(Linear(features, shape.classes));
    }
    register_module("features", features_);
    register_module("classifier", classifier_);
    add_pieces(nn::layers_of(features_, "features."));
    auto last = nn::layers_of(classifier_, "classifier.");
    nn::begin_with(last.front(), [small = small_](const torch::Tensor& x) {
      return (small ? x : torch::adaptive_avg_pool2d(x, {kSide, kSide})).flatten(1);
    });
    add_pieces(last);
    init_convolutions(*this);
    for (auto& part : classifier_->modules(false)) {
      if (auto* linear = part->as<Linear>()) {
        torch::nn::init::normal_(linear->weight, 0, 0.01);
        torch::nn::init::zeros_(linear->bias);
      }
    }
  }

 private:
  static constexpr std::int64_t kSide = 7;

  // Adds one layer; `image` becomes the shape after it.
  void add(std::int64_t width, Image& image, bool batch_norm) {
    if (width == kPool) {
      if (image.height < 2 || image.width < 2) return;
      features_->push_back(nn::MaxPool2d(torch::nn::MaxPool2dOptions(2)));
      image.height /= 2;
      image.width /= 2;
      return;
    }
    features_->push_back(nn::Conv2d(torch::nn::Conv2dOptions(image.channels, width, 3).padding(1)));
    if (batch_norm) features_->push_back(nn::BatchNorm2d(width));
    features_->push_back(relu_layer());
    image.channels = width;
  }

  bool small_ = false;
  torch::nn::Sequential features_, classifier_;
};

}  // namespace

Made make_vgg11(const Shape& shape, const Arguments& arguments) {
  return std::make_shared<Vgg>("vgg11", shape, arguments);
}

}  // namespace trireme::models
