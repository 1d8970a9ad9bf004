// A queue of numbered things by time, where a thing's time may change. Earliest first; of equal times any.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace trireme {

class IndexedHeap {
 public:
  bool empty() const { return heap_.empty(); }
  double time() const { return heap_.front().time; }
  int top() const { return heap_.front().id; }

  // New, or moved to another time.
  void set(int id, double time) {
    if (static_cast<std::size_t>(id) >= where_.size()) where_.resize(static_cast<std::size_t>(id) + 1, kAbsent);
    std::size_t at = where_[id];
    if (at == kAbsent) {
      at = heap_.size();
      heap_.push_back({time, id});
    }
    heap_[at] = {time, id};
    where_[id] = at;
    down(up(at));
  }
  void erase(int id) {
    if (static_cast<std::size_t>(id) >= where_.size() || where_[id] == kAbsent) return;
    const std::size_t at = std::exchange(where_[id], kAbsent);
    const Item last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size()) return;
    heap_[at] = last;
    where_[last.id] = at;
    down(up(at));
  }
  void pop() { erase(top()); }

 private:
  struct Item {
    double time;
    int id;
  };
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

  void swap(std::size_t a, std::size_t b) {
    std::swap(heap_[a], heap_[b]);
    where_[heap_[a].id] = a;
    where_[heap_[b].id] = b;
  }
  std::size_t up(std::size_t at) {
    for (; at > 0 && heap_[at].time < heap_[(at - 1) / 4].time; at = (at - 1) / 4) swap(at, (at - 1) / 4);
    return at;
  }
  void down(std::size_t at) {
    for (;;) {
      std::size_t least = at;
      for (std::size_t child = 4 * at + 1; child <= 4 * at + 4 && child < heap_.size(); ++child) {
        if (heap_[child].time < heap_[least].time) least = child;
      }
      if (least == at) return;
      swap(at, least);
      at = least;
    }
  }

  std::vector<Item> heap_;
  std::vector<std::size_t> where_;  // by id
};

}  // namespace trireme
