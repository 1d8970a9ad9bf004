#include "trireme/data/loader.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <thread>
#include <utility>

#include "trireme/base/mutex.h"

namespace trireme::data {
namespace {

// A plain copy: that of LibTorch would wake its thread pool, which belongs to compute.
torch::Tensor pin(const torch::Tensor& from) {
  auto to = torch::empty(from.sizes(), from.options().pinned_memory(true));
  std::memcpy(to.data_ptr(), from.data_ptr(), from.nbytes());
  return to;
}

}  // namespace

struct Loader::Impl {
  Impl(std::shared_ptr<const Dataset> set, Source source, const LoaderOptions& options)
      : set_(std::move(set)),
        options_(options),
        thread_([this, moved = std::move(source)](const std::stop_token& stop) { run(stop, moved); }) {}

  std::optional<Item> next();
  void run(const std::stop_token& stop, const Source& source);
  Item assemble(const Share& share) const;
  bool wait_for_room(const std::stop_token& stop);
  void put(std::optional<Item> item);

  const std::shared_ptr<const Dataset> set_;
  const LoaderOptions options_;
  double waited_ = 0;

  Mutex mutex_;
  StoppableCondVar changed_;
  std::deque<std::optional<Item>> ready_ TRIREME_GUARDED_BY(mutex_);  // nothing: the end of an epoch
  bool wanted_ TRIREME_GUARDED_BY(mutex_) = false;                    // somebody waits, and none is ready
  bool done_ TRIREME_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ TRIREME_GUARDED_BY(mutex_);

  std::jthread thread_;  // last: it uses all the others
};

Loader::Loader(std::shared_ptr<const Dataset> set, Source source, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(set), std::move(source), options)) {}
Loader::~Loader() = default;
std::optional<Item> Loader::next() { return impl_->next(); }
double Loader::waited() const { return impl_->waited_; }

std::optional<Item> Loader::Impl::next() {
  MutexLock lock(mutex_);
  if (ready_.empty() && !done_ && !failure_) {
    const auto before = std::chrono::steady_clock::now();
    wanted_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this]() TRIREME_REQUIRES(mutex_) { return !ready_.empty() || done_ || failure_; });
    wanted_ = false;
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return std::nullopt;
  }
  auto item = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return item;
}

void Loader::Impl::run(const std::stop_token& stop, const Source& source) {
  try {
    for (std::int64_t epochs = 0; options_.epochs == 0 || epochs < options_.epochs;) {
      if (!wait_for_room(stop)) return;
      std::optional<Item> item;
      if (const auto share = source()) item = assemble(*share);
      if (!item) ++epochs;
      put(std::move(item));
    }
    const MutexLock lock(mutex_);
    done_ = true;
  } catch (...) {
    const MutexLock lock(mutex_);
    failure_ = std::current_exception();
  }
  changed_.notify_all();
}

Item Loader::Impl::assemble(const Share& share) const {
  Item item{.here = static_cast<std::int64_t>(share.indices.size()),
            .globally = share.globally,
            .epoch = share.epoch,
            .position = share.position};
  item.batch = set_->draw(share.indices, share.epoch);
  if (options_.pinned) item.batch = {pin(item.batch.input), pin(item.batch.target)};
  return item;
}

// False: told to stop before there was any.
bool Loader::Impl::wait_for_room(const std::stop_token& stop) {
  const std::size_t depth = !options_.ahead || options_.ahead() ? std::max<std::size_t>(1, options_.depth) : 0;
  MutexLock lock(mutex_);
  return changed_.wait(lock, stop,
                       [&]() TRIREME_REQUIRES(mutex_) { return ready_.size() < depth || (wanted_ && ready_.empty()); });
}

void Loader::Impl::put(std::optional<Item> item) {
  {
    const MutexLock lock(mutex_);
    ready_.push_back(std::move(item));
  }
  changed_.notify_all();
}

}  // namespace trireme::data
