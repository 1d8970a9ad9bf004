// What a simulation tells of messages: each as it was sent, or what went over each link in all.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace trireme::cluster {

class Network;

// How a collective was timed, from the coarsest to the finest; all are exact where they are taken.
enum class Tier : std::uint8_t { closed_form, max_plus, flows };
std::string_view name(Tier tier);  // "closed form", "max-plus", "flows"

struct Message {
  int from = 0, to = 0, round = 0;
  std::uint64_t bytes = 0;
  double begin_s = 0, end_s = 0;
};
using Observer = std::function<void(const Message&)>;

// What went over each link.
struct Traffic {
  std::vector<std::uint64_t> bytes;  // by link of the topology
  std::uint64_t inside = 0;          // between workers of one node
  std::uint64_t messages = 0;

  void add(const Network& network, int from, int to, std::uint64_t size, std::uint64_t times = 1);
  void add(const Traffic& other, std::uint64_t times = 1);
  // The link that needs longest for its bytes; −1 if nothing went over any.
  int busiest(const Network& network) const;
  // Of the time `seconds`, how much that link was busy.
  double utilisation(const Network& network, int link, double seconds) const;
};

}  // namespace trireme::cluster
