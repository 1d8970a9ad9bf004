// The functions behind the list in members.inc.
#pragma once
#include "trireme/sync/strategies.h"

namespace trireme::sync {

#define STRATEGY(row) StrategyKind row();
#include "trireme/sync/strategies/members.inc"
#undef STRATEGY

// Steps, rounds: as many as anyone could mean.
inline constexpr double kMany = 1e9;

}  // namespace trireme::sync
