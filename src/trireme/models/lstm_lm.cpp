// A recurrent language model (Zaremba et al., "Recurrent neural network regularization", 2014): embedding, LSTM layers
// with dropout between them, scores of the next token at every place. `tied` uses the embedding for the scores as well
// (Press & Wolf, 2016). Every sample starts from a zero state.
#include "trireme/models/options.h"
#include "trireme/models/zoo.h"
#include "trireme/nn/dropout.h"
#include "trireme/nn/layers.h"

namespace trireme::models {
namespace {

using nn::Dropout;

class LstmLm : public ChainModel {
 public:
  LstmLm(std::string_view name, const Shape& shape, const Arguments& arguments) {
    Options options(name, arguments);
    std::int64_t width = options.integer("width", 256, 1, 1 << 16);
    std::int64_t layers = options.integer("layers", 2, 1, 64);
    bool tied = options.flag("tied", true);
    double dropout = options.share("dropout", 0.2);
    options.done();
    text_length_of(name, shape);

    auto drop = Dropout(dropout);
    auto embedding = register_module("embedding", nn::Embedding(shape.classes, width));
    torch::nn::init::uniform_(embedding->weight, -0.1, 0.1);
    add_piece("embedding", {embedding},
              [=](torch::Tensor tokens) mutable { return drop->forward(embedding->forward(tokens)); });
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const auto place = "lstm" + std::to_string(layer);
      auto lstm = register_module(place, torch::nn::LSTM(torch::nn::LSTMOptions(width, width).batch_first(true)));
      add_piece(place, {lstm}, [=](torch::Tensor x) mutable { return drop->forward(std::get<0>(lstm->forward(x))); });
    }
    register_module("dropout", drop);
    torch::Tensor weight;
    if (!tied) {
      weight = register_parameter("head_weight", torch::empty({shape.classes, width}));
      torch::nn::init::uniform_(weight, -0.1, 0.1);
    }
    auto bias = register_parameter("head_bias", torch::zeros({shape.classes}));
    auto scores = [=](nn::Values values) {
      values[0] = weight.defined() ? torch::linear(values[0], weight, bias) : embedding->scores(values[0], bias);
      return values;
    };
    if (tied) {
      add_pieces({{"head", {embedding}, scores, {bias}}});
    } else {
      add_pieces({{"head", {}, scores, {weight, bias}}});
    }
  }
};

}  // namespace

Made make_lstm_lm(const Shape& shape, const Arguments& arguments) {
  return std::make_shared<LstmLm>("lstm-lm", shape, arguments);
}

}  // namespace trireme::models
