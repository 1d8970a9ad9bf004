// Started calls that must end before the memory they work on goes. Declare it after that memory.
#pragma once
#include <exception>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/collective/run/communicator.h"

namespace trireme::sync {

class UnderWay {
 public:
  explicit UnderWay(Communicator& world) : world_(world) {}
  // When something has failed here, the others may never take their part: they are told.
  ~UnderWay() {
    if (!works_.empty() && std::uncaught_exceptions() > 0) world_.abort("training has failed in the middle of a step");
    for (Work& work : works_) {
      try {
        work.wait();
      } catch (const Error&) {  // whoever waits for the next call hears of it
      }
    }
  }
  UnderWay(const UnderWay&) = delete;

  void add(Work work) { works_.push_back(std::move(work)); }
  // In the order added; waits for the first `count`, or all.
  void wait_first(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) works_[i].wait();
    works_.erase(works_.begin(), works_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  void wait() { wait_first(works_.size()); }

 private:
  Communicator& world_;
  std::vector<Work> works_;
};

}  // namespace trireme::sync
