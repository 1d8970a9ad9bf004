// What the exchanges of a real run were made of, read off its trace.json: every rank's buckets with their bytes, and
// how long each waited for the channel.
//
// The ranks of a bucket leave together, so whoever came last saw how long the exchange itself took; what the others
// took longer, they waited. Buckets of different sizes tell α from β by least squares.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "trireme/cluster/diff/step_account.h"

namespace trireme::cluster {

// Nothing where the trace has no buckets. Throws DataError naming the file where it is no trace.
std::optional<ExchangeShares> shares_of_trace(std::string_view json, const std::string& file);

}  // namespace trireme::cluster
