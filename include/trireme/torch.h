// Data, tensor and pipeline parallelism and sharding for LibTorch programs in one include; link trireme::torch.
//
//   auto world = trireme::init();                          // one rank if nothing launched us
//   auto net = trireme::data_parallel(model, world);       // owns its hooks; the model stays yours
//   ... loss.backward(); optimizer.step();                 // unchanged
//
// and any other way to synchronize by trireme::synchronize(). A program that is `trireme train` with models and data of
// its own includes trireme/train.h.
#pragma once
#include "trireme/data/torch_sampler.h"
#include "trireme/grad/autocast.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/nn/layers.h"
#include "trireme/nn/locally_connected.h"
#include "trireme/optimize.h"
#include "trireme/parallel/pipeline/pipeline.h"
#include "trireme/parallel/shard/sharded_net.h"
#include "trireme/parallel/tensor/maps.h"
#include "trireme/parallel/tensor/tensor_parallel.h"
#include "trireme/train/synchronize.h"
#include "trireme/trireme.h"

namespace trireme {

using data::DistributedSampler;

}  // namespace trireme
