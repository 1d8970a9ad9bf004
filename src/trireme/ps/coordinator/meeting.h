// Where workers meet in small things: sums over all of them, and counters they share. No sockets: answers are returned.
#pragma once
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/ps/view.h"

namespace trireme::ps {

class Meeting {
 public:
  struct Answer {
    std::uint64_t link = 0, request = 0;
    std::string body;
  };
  // A worker's numbers for the sum called `name`. It is answered when all of `workers` are there, each worker's numbers
  // added in order of their ids; late ones of a sum that is done get its result.
  std::vector<Answer> sum(std::uint64_t link, std::uint64_t request, WorkerId worker, Unpacker& from,
                          const std::vector<WorkerId>& workers);
  // The next number, from 0, of the counter called so, while it is below the limit; else where it is. The counters that
  // were not asked for longest are forgotten.
  Answer ticket(std::uint64_t link, std::uint64_t request, Unpacker& from);
  // After somebody died or time has passed: sums that are complete now, or overdue.
  std::vector<Answer> review(const std::vector<WorkerId>& workers);
  void forget(WorkerId worker);

 private:
  struct Party {
    std::uint64_t link, request;
    WorkerId worker;
    std::vector<double> values;
    Deadline deadline;
  };
  struct Sum {
    std::string name;
    std::vector<Party> waiting;
    bool done = false;
    std::uint32_t parties = 0;
    std::vector<double> result;
  };
  void conclude(Sum& sum, const std::vector<WorkerId>& workers, std::vector<Answer>& answers);

  std::list<Sum> sums_;  // newest last
  struct Counter {
    std::string name;
    std::uint64_t next = 0;
  };
  std::list<Counter> counters_;  // the one last asked for last
};

}  // namespace trireme::ps
