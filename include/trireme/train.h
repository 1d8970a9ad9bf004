// A program of your own that is `trireme train`, `compare`, `eval`, `predict`, `profile` and `data`, with every flag,
// and with what it brings beside what there is; link trireme::torch.
//
//   int main(int argc, char** argv) {
//     return trireme::train_main(argc, argv, {
//         .models = {{"my-net", "one line of help", "width=64", make_my_net}},
//         .data = {{.name = "my-data", .what = "one line of help", .open = open_my_data}}});
//   }
//
//   ./mine --workers 4 --strategy local-sgd      ./mine compare --vary strategy allreduce local-sgd      ./mine --help
//
// Workers are processes of this very program, started with its arguments: what main() does before the call, each of
// them does as well. Meshes take models that are a row of pieces: a ChainModel, or model_of(a torch::nn::Sequential).
#pragma once
#include <vector>

#include "trireme/base/error.h"
#include "trireme/compress/codecs.h"
#include "trireme/data/loader.h"
#include "trireme/data/open.h"
#include "trireme/models/model.h"
#include "trireme/models/wrap.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/checkpoint/checkpoints.h"
#include "trireme/train/objective/loss.h"
#include "trireme/train/objective/metric.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme {

using models::ChainModel;
using models::Model;
using models::model_of;

// One more member of a family each, for train_main() and synchronize(). Before anything else of Trireme is used, by one
// thread. Throws ConfigError for a name that is taken, or that no command line could have.
using compress::add_codec;
using data::add_source;
using models::add_model;
using sync::add_strategy;
using train::add_loss;
using train::add_metric;
using train::add_optimizer;

// Of models and data the first is what is trained, and on what, where nothing else is asked for.
struct Additions {
  std::vector<models::Entry> models;
  std::vector<data::Source> data;
  std::vector<train::LossKind> losses;
  std::vector<train::MetricKind> metrics;
  std::vector<train::OptimizerEntry> optimizers;
  std::vector<sync::StrategyKind> strategies;
  std::vector<compress::CodecKind> codecs;
};

// Runs the command line: its first word may be one of the commands above, else it is `train`. Returns the exit code,
// with what went wrong in one line on standard error; throws nothing.
int train_main(int argc, char** argv, const Additions& mine = {});

}  // namespace trireme
