// Runs schedules on numbers, rank after rank in a random order, and compares with a plain computation: an oracle that
// shares nothing with the checker.
#pragma once
#include <string>

#include "tests/collective/recorded.h"

namespace trireme::test {

enum class Place { apart, in_place };

// Empty if every rank ends with the right numbers, else what is wrong. Canonical algorithms are run with an operator
// that is neither associative nor commutative, the others with addition. Which rank goes on when is drawn from `seed`.
// Steps must lie within their buffers.
std::string run_on_numbers(const Recorded& recorded, Place place, unsigned seed);

}  // namespace trireme::test
