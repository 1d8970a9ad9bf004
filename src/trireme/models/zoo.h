// The makers of the models, for the table in models.cpp.
#pragma once
#include "trireme/models/model.h"

namespace trireme::models {

using Made = std::shared_ptr<Model>;

Made make_mlp(const Shape& shape, const Arguments& arguments);
Made make_mlp_wide(const Shape& shape, const Arguments& arguments);
Made make_lenet(const Shape& shape, const Arguments& arguments);
Made make_alexnet_small(const Shape& shape, const Arguments& arguments);
Made make_local_cnn(const Shape& shape, const Arguments& arguments);
Made make_vgg11(const Shape& shape, const Arguments& arguments);
Made make_resnet18(const Shape& shape, const Arguments& arguments);
Made make_resnet32(const Shape& shape, const Arguments& arguments);
Made make_resnet50(const Shape& shape, const Arguments& arguments);
Made make_lstm_lm(const Shape& shape, const Arguments& arguments);
Made make_gpt_small(const Shape& shape, const Arguments& arguments);

// A TorchScript file. Loading it runs its code.
Made load_script(const std::string& file, const Shape& shape, const Arguments& arguments);

}  // namespace trireme::models
