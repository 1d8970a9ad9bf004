// Messages under way at once, each at its fair share of the links it crosses: a fluid network in virtual time.
//
// A message first takes a wire of both its nodes, where these are limited, and else waits for them in the order of
// starting; then its latency; then its bytes flow, never faster than they would alone. When a message comes or goes
// only the rates that this changes are solved anew.
#pragma once
#include <cstdint>
#include <vector>

#include "trireme/base/indexed_heap.h"
#include "trireme/cluster/network.h"
#include "trireme/cluster/sim/fair_share.h"

namespace trireme::cluster {

class Flows {
 public:
  explicit Flows(const Network& network);

  // `at` is not before what step() has come to. `id` comes back when the message has ended; any, but one at a time.
  void start(double at, int from, int to, double bytes, int id);
  // When something happens next here; infinity if nothing is under way.
  double next();
  // Goes on to next() and appends the messages that end there.
  void step(std::vector<int>& ended);
  double now() const { return now_; }

 private:
  enum class Stage : unsigned char { idle, asked, waits_for_wires, latency, flows, fixed };
  struct Message {
    int from = 0, to = 0;
    double bytes = 0;       // left
    double since = 0;       // when `bytes` was true
    double rate = 0;        // that events_ reckons with
    double transfer_s = 0;  // alone
    double latency_s = 0;
    int flow = -1;
    std::uint64_t order = 0;  // of starting
    Stage stage = Stage::idle;
  };
  struct Wires {
    int limit = 0, sending = 0, receiving = 0;
    std::vector<int> waiting;  // messages that want one, in order
  };

  void pass(double last, std::vector<int>& ended);
  void arrive(int id);
  bool take_wires(int id);
  void depart(int id);
  void drop_wires(int id);
  void settle();

  Network network_;
  std::vector<int> number_;  // by link: among those that are shared; −1
  FairShare shares_;
  std::vector<Message> messages_;
  std::vector<int> message_of_;  // by flow
  std::vector<Wires> wires_;     // by node
  IndexedHeap events_;           // of messages
  std::vector<int> links_, asked_;
  std::uint64_t started_ = 0;
  double now_ = 0;
  bool settled_ = true;
};

}  // namespace trireme::cluster
