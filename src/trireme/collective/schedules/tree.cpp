// Binary trees. P ranks, n bytes, D the depth of the tree.
//   tree          rank i's parent is (i−1)/2; D = ⌊log2 P⌋
//   double-tree   Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
//                 2009, in NCCL's form: two trees carry half of the vector each. In the first, odd ranks are leaves;
//                 the second is its mirror image (P even) or the first shifted by one (P odd), so that a rank is an
//                 inner node in only one of them (but for rank 0 when P is odd); D = ⌈log2 P⌉
//   all-reduce    D rounds up: a node adds its children's vectors to its own and sends the sum to its parent; then D
//   rounds
//                 down: the sum goes from parent to children
//   broadcast     the D rounds down, with ranks counted from the root
// Cost of an all-reduce: 2D·(α + n·β) + D·n·γ, wires 3; the double tree halves n. Of two children's vectors one is
// added as it comes, the other waits in scratch.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/steps.h"

namespace trireme::schedules {

namespace {

constexpr int kNobody = -1;

// One rank's place in a tree.
struct Node {
  int parent = kNobody;
  int left = kNobody, right = kNobody;
  int depth = 0;
};

Node heap_node(int i, int P) {
  Node node;
  if (i > 0) node.parent = (i - 1) / 2;
  if (2 * i + 1 < P) node.left = 2 * i + 1;
  if (2 * i + 2 < P) node.right = 2 * i + 2;
  node.depth = floor_log2(i + 1);
  return node;
}

// In the alternating tree the lowest set bit tells the height: odd places are leaves, 0 is the root above the largest
// power of two.
int alternating_parent(int i, int P) {
  const int bit = i & -i;
  const int parent = (i ^ bit) | (bit << 1);
  return parent < P ? parent : i ^ bit;
}

Node alternating_node(int i, int P) {
  Node node;
  for (int up = i; up != 0; up = alternating_parent(up, P)) ++node.depth;
  if (i == 0) {
    if (P > 1) node.left = 1 << (ceil_log2(P) - 1);
    return node;
  }
  node.parent = alternating_parent(i, P);
  int reach = (i & -i) / 2;
  if (reach > 0) node.left = i - reach;
  while (reach > 0 && i + reach >= P) reach /= 2;
  if (reach > 0) node.right = i + reach;
  return node;
}

// The second tree: places are ranks mirrored or shifted.
Node second_node(int rank, int P) {
  const bool mirrored = P % 2 == 0;
  const auto rank_at = [=](int place) {
    if (place == kNobody) return kNobody;
    return mirrored ? P - 1 - place : (place + 1) % P;
  };
  Node node = alternating_node(mirrored ? P - 1 - rank : wrap(rank - 1, P), P);
  node.parent = rank_at(node.parent);
  node.left = rank_at(node.left);
  node.right = rank_at(node.right);
  return node;
}

// Level d sends down to level d + 1.
void fill_down(const Node& node, int level, Slice vector, Round& out) {
  if (node.depth == level) {
    if (node.left != kNobody) send(out, node.left, vector);
    if (node.right != kNobody) send(out, node.right, vector);
  }
  if (node.depth == level + 1) recv(out, node.parent, vector);
}

// `spare` is as long as `vector`; it holds what the right child sends until the next round.
Schedule tree_phase(Node node, int D, Slice vector, Slice spare) {
  Schedule tree;
  tree.rounds = 2 * D;
  tree.scratch = node.right == kNobody ? 0 : spare.offset + spare.count;
  tree.fill = [=](int k, Round& out) {
    const int sender = D - k;  // the level that sends up
    if (node.depth == sender && node.right != kNobody) reduce(out, spare, vector);
    if (k >= D) return fill_down(node, k - D, vector, out);
    if (node.depth == sender) send(out, node.parent, vector);
    if (node.depth == sender - 1) {
      if (node.left != kNobody) recv_reduce(out, node.left, vector);
      if (node.right != kNobody) recv(out, node.right, spare);
    }
  };
  return tree;
}

Schedule from_input(const Call& call, Schedule schedule) {
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), whole(Buffer::output, call)); }, schedule);
}

}  // namespace

Schedule tree_all_reduce(const Call& call) {
  return from_input(call, tree_phase(heap_node(call.rank, call.ranks), floor_log2(call.ranks),
                                     whole(Buffer::output, call), whole(Buffer::scratch, call)));
}

Schedule double_tree_all_reduce(const Call& call) {
  const Partition half = parts_of(Buffer::output, call.count, 2), spare = parts_of(Buffer::scratch, call.count, 2);
  const int D = ceil_log2(call.ranks);
  return from_input(call, together(tree_phase(alternating_node(call.rank, call.ranks), D, half[0], spare[0]),
                                   tree_phase(second_node(call.rank, call.ranks), D, half[1], spare[1])));
}

Schedule tree_broadcast(const Call& call) {
  const int P = call.ranks;
  Node node = heap_node(wrap(call.rank - call.root, P), P);
  for (int* relative : {&node.parent, &node.left, &node.right})
    if (*relative != kNobody) *relative = (*relative + call.root) % P;
  Schedule down;
  down.rounds = floor_log2(P);
  down.fill = [=](int k, Round& out) { fill_down(node, k, whole(Buffer::output, call), out); };
  return call.rank == call.root ? from_input(call, down) : down;
}

// Signals up, then down.
Schedule tree_barrier(const Call& call) {
  const Node node = heap_node(call.rank, call.ranks);
  const int D = floor_log2(call.ranks);
  Schedule tree;
  tree.rounds = 2 * D;
  tree.fill = [=](int k, Round& out) {
    const bool up = k < D;
    const int upper = up ? D - k - 1 : k - D;  // the level nearer to the root
    if (node.depth == upper + 1) up ? send_signal(out, node.parent) : recv_signal(out, node.parent);
    for (int child : {node.left, node.right})
      if (node.depth == upper && child != kNobody) up ? recv_signal(out, child) : send_signal(out, child);
  };
  return tree;
}

}  // namespace trireme::schedules
