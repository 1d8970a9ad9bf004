// The entries of the list in strategies.cpp, each in the file of its name.
#pragma once
#include "trireme/sync/strategies.h"

namespace trireme::sync {

StrategyKind allreduce();
StrategyKind ps_bsp();
StrategyKind ps_ssp();
StrategyKind ps_async();
StrategyKind hogwild();
StrategyKind local_sgd();
StrategyKind post_local_sgd();
StrategyKind easgd();
StrategyKind average_at_end();
StrategyKind diloco();
StrategyKind sma();
StrategyKind gossip_dpsgd();
StrategyKind gossip_adpsgd();
StrategyKind gossip_sgp();
StrategyKind stale_allreduce();

// Steps, rounds: as many as anyone could mean.
inline constexpr double kMany = 1e9;

}  // namespace trireme::sync
