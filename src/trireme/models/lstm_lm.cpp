// A recurrent language model (Zaremba et al., "Recurrent neural network regularization", 2014): embedding, LSTM layers
// with dropout between them, scores of the next token at every place. `tied` uses the embedding for the scores as well
// (Press & Wolf, 2016). Every sample starts from a zero state.
#include "trireme/models/options.h"
#include "trireme/models/zoo.h"
#include "trireme/nn/dropout.h"

namespace trireme::models {
namespace {

using nn::Dropout;

class LstmLm : public Model {
 public:
  LstmLm(std::string_view name, const Shape& shape, const Arguments& arguments) {
    Options options(name, arguments);
    std::int64_t width = options.integer("width", 256, 1, 1 << 16);
    std::int64_t layers = options.integer("layers", 2, 1, 64);
    bool tied = options.flag("tied", true);
    double dropout = options.share("dropout", 0.2);
    options.done();
    text_length_of(name, shape);

    embedding_ = register_module("embedding", torch::nn::Embedding(shape.classes, width));
    torch::nn::init::uniform_(embedding_->weight, -0.1, 0.1);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      layers_.push_back(torch::nn::LSTM(torch::nn::LSTMOptions(width, width).batch_first(true)));
      register_module("lstm" + std::to_string(layer), layers_.back());
    }
    dropout_ = register_module("dropout", Dropout(dropout));
    if (!tied) {
      head_weight_ = register_parameter("head_weight", torch::empty({shape.classes, width}));
      torch::nn::init::uniform_(head_weight_, -0.1, 0.1);
    }
    head_bias_ = register_parameter("head_bias", torch::zeros({shape.classes}));
  }

  torch::Tensor forward(torch::Tensor tokens) override {
    torch::Tensor x = dropout_->forward(embedding_->forward(tokens));
    for (auto& layer : layers_) x = dropout_->forward(std::get<0>(layer->forward(x)));
    return torch::linear(x, head_weight_.defined() ? head_weight_ : embedding_->weight, head_bias_);
  }

 private:
  torch::nn::Embedding embedding_{nullptr};
  std::vector<torch::nn::LSTM> layers_;
  Dropout dropout_{nullptr};
  torch::Tensor head_weight_, head_bias_;
};

}  // namespace

Made make_lstm_lm(const Shape& shape, const Arguments& arguments) {
  return std::make_shared<LstmLm>("lstm-lm", shape, arguments);
}

}  // namespace trireme::models
