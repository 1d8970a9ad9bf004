// A parameter server in one include, without LibTorch; link trireme::trireme. Servers keep the weights and apply an
// update, workers push gradients, whole or of some rows, and pull weights.
//
//   ps::Coordinator coordinator({.workers = 2, .servers = 1});           // one per job, in any process
//   ps::Server server({.at = coordinator.endpoint()});                   // as many as wanted: threads of any process
//   ps::Client client({.at = coordinator.endpoint()});                   // one per worker
//   client.declare({tensors, update, consistency}, initial, deadline);   // returns when all are there
//   client.wait(client.push_pull(gradient, lr, weights), deadline);
//
// All of a job have the same key (net/join/key.h). Clients leave first, then servers; the coordinator ends last.
// examples/parameter_server.cpp is a whole program.
#pragma once
#include "trireme/ps/client/client.h"
#include "trireme/ps/coordinator/coordinator.h"
#include "trireme/ps/server/server.h"
#include "trireme/ps/server/update.h"
