#include "trireme/report/header.h"

#include <fmt/format.h>

#include "trireme/net/emulated_network.h"
#include "trireme/sync/pace_with_codes.h"
#include "trireme/train/learner/strategy.h"
#include "trireme/train/learner/tables.h"

namespace trireme::train {

RunHeader header_of(const Config& config, const Workload& work, const Communicator& world, const WorkerGroup& group,
                    const sync::Strategy& strategy, Learners& learners) {
  RunHeader header;
  header.model = config.model;
  header.parameters = learners.held().parameter_count();
  header.data = fmt::format("{}, {} training and {} test samples", work.data.name, work.data.train->size(),
                            work.data.test->size());
  header.workers = group.size();
  header.launch = config.launch;
  header.threads = torch::get_num_threads();
  header.device = config.device;
  if (strategy.traits().in_backward) {
    header.algorithm = config.deterministic ? "the canonical order (deterministic)" : config.algorithm;
    header.buckets = learners.first().exchange->describe();
  } else {
    header.strategy = sync::Choice::parse(config.strategy).text();
    if (config.sparse) header.strategy += "; " + describe(tables_of(*work.model));
  }
  header.mesh = learners.held().describe();
  if (world.size() == group.size()) header.transport = world.transport();
  auto network = net::parse_emulated_network(config.hosts, config.bandwidth, config.latency);
  if (network.hosts > 0) header.transport = "tcp over " + net::describe(network);
  header.optimizer = fmt::format("{}, lr {}, {}", config.optimizer, config.lr, config.schedule);
  header.out = config.out;
  if (config.loss != "auto" || work.objective.targets != data::Targets::classes) header.loss = work.objective.loss_text;
  if (const compress::Rules rules(config.compress, config.compress_rule); !rules.none()) header.compress = rules.text();
  if (const auto pace = pace_of(config, strategy); pace.momentum != momentum_of(config)) {
    header.optimizer +=
        fmt::format("; because of the strategy or codec momentum {:g}, {:g} times the rate", pace.momentum, pace.rate);
    if (const double clip = own_clip(config, strategy, 1); clip != config.clip) {
      header.optimizer += fmt::format(", gradients of norm {:g} at most", clip);
    }
  }
  return header;
}

}  // namespace trireme::train
