// The entries of the list in strategies.cpp, each in the file of its name.
#pragma once
#include "trireme/sync/strategies.h"

namespace trireme::sync {

Kind allreduce();
Kind ps_bsp();
Kind ps_ssp();
Kind ps_async();
Kind hogwild();
Kind local_sgd();
Kind post_local_sgd();
Kind easgd();
Kind average_at_end();
Kind diloco();
Kind sma();
Kind gossip_dpsgd();
Kind gossip_adpsgd();
Kind gossip_sgp();
Kind stale_allreduce();

// Steps, rounds: as many as anyone could mean.
inline constexpr double kMany = 1e9;

}  // namespace trireme::sync
