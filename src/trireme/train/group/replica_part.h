// Where a worker stands among those that train.
#pragma once

namespace trireme::train {

// Which replica of the model a worker has, and which part of the layers that are cut.
struct ReplicaPart {
  int replica = 0, replicas = 1, part = 0, parts = 1;
};

}  // namespace trireme::train
