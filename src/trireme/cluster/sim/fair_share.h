// Max-min fair rates of flows over links. Bertsekas and Gallager, "Data Networks", 1992, 6.5.2.
//
// Rates are max-min fair exactly when every flow is at its own limit or has a bottleneck: a link that is full and on
// which nobody is faster. When flows come and go, only those whose bottleneck was on a link they touched are solved
// anew, against what the others leave; then everyone they meet is asked whether its bottleneck still holds, and those
// whose does not join, until all do. What was not asked has not changed, so the result is that of solving everything.
#pragma once
#include <span>
#include <utility>
#include <vector>

namespace trireme::cluster {

class FairShare {
 public:
  explicit FairShare(std::vector<double> capacities) : links_(capacities.size()) {
    for (std::size_t i = 0; i < capacities.size(); ++i) links_[i].capacity = capacities[i];
  }

  // A flow over these links, each at most once, of at most `limit`; its number is free for others once removed.
  int add(std::span<const int> links, double limit);
  void remove(int flow);
  // Solves for all that was added and removed since; the flows whose rate it changed, valid until the next call.
  std::span<const int> solve();
  double rate(int flow) const { return flows_[flow].rate; }

 private:
  struct Hop {
    int link, position;  // of this flow in the link's list
  };
  struct Flow {
    std::vector<Hop> hops;
    double limit = 0, rate = 0, before = 0;
    int bottleneck = -1;  // link; −1: its limit
    bool open = false;    // is solved for, and has no rate yet
    bool chosen = false;  // is solved for
    bool added = false;
  };
  struct Entry {
    int flow, hop;
  };
  struct Link {
    double capacity = 0;
    std::vector<Entry> flows;
    double used = 0;     // sum of their rates, as last solved
    int changes = 0;     // of that sum since it was made
    int bound = 0;       // flows whose bottleneck it is
    double left = 0;     // while solving: capacity less the rates that are settled
    int open = 0;        // and the flows that have none yet
    int chosen = 0;      // flows that are solved for
    double level = -1;   // at which it became full; −1: it did not
    double fastest = 0;  // of the flows solved for
    bool dirty = false, touched = false;
  };

  void choose(int flow);
  void bind(Flow& flow, int link);
  static void change_used(Link& link, double by);
  void make_exact(Link& link);
  void fill();
  void settle(int flow, double rate, int bottleneck);
  void ask_others();

  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<int> free_;     // numbers of flows
  std::vector<int> dirty_;    // links that a flow left or joined
  std::vector<int> chosen_;   // flows
  std::vector<int> touched_;  // links of chosen flows
  std::vector<int> changed_;
  std::vector<std::pair<double, int>> queue_;  // links by the share they would give
  std::vector<int> by_limit_;
};

}  // namespace trireme::cluster
