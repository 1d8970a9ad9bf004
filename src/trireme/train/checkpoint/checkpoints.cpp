#include "trireme/train/checkpoint/checkpoints.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <system_error>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/mutex.h"
#include "trireme/train/checkpoint/safetensors.h"

namespace trireme::train {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "step-", kSuffix = ".safetensors";
const std::string kStepKey = "trireme.step", kMetricKey = "trireme.metric";

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

fs::path step_path(const fs::path& folder, std::int64_t step) {
  return folder / fmt::format("{}{:08d}{}", kPrefix, step, kSuffix);
}
fs::path best_path(const fs::path& folder) { return folder / "best.safetensors"; }
bool has_best(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(best_path(folder), ignored);
}

// Newest first.
std::vector<FoundCheckpoint> listed(const fs::path& folder) {
  std::vector<FoundCheckpoint> all;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    auto name = at->path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    auto digits = std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
    if (auto step = parse<std::int64_t>(digits); step && *step >= 0) all.push_back({at->path(), *step});
  }
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.step > b.step; });
  return all;
}

template <typename Number>
std::optional<Number> take(Metadata& metadata, const std::string& key, const fs::path& path) {
  auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  auto value = parse<Number>(found->second);
  if (!value) throw DataError(fmt::format("{}: {} in the header is not a number", path.string(), key));
  metadata.erase(found);
  return value;
}

// What every checkpoint has and other safetensors files have not.
void check_marks(const SafetensorsFile& file, std::optional<std::int64_t> step, const fs::path& path) {
  if (file.has_checksum() && step) return;
  if (file.metadata().contains("trireme.checksum")) {
    throw DataError(
        fmt::format("{}: a checkpoint of an earlier version, whose checksum is not known any more; go on "
                    "with that version, or begin anew",
                    path.string()));
  }
  throw DataError(fmt::format("{}: not a checkpoint: there is no {} in the header", path.string(),
                              step ? std::string(kChecksumKey) : kStepKey));
}

std::int64_t verified_step(const fs::path& path) {
  SafetensorsFile file(path);
  auto metadata = file.metadata();
  auto step = take<std::int64_t>(metadata, kStepKey, path);
  check_marks(file, step, path);
  file.verify();
  return *step;
}

std::optional<double> metric_of(const fs::path& path) {
  auto metadata = SafetensorsFile(path).metadata();
  return take<double>(metadata, kMetricKey, path);
}

// The first that is whole.
CheckpointSearch search(const std::vector<fs::path>& candidates) {
  CheckpointSearch result;
  for (auto& path : candidates) {
    try {
      result.found = FoundCheckpoint{path, verified_step(path)};
      return result;
    } catch (const DataError& error) {
      result.skipped.push_back(fmt::format("skipped a broken checkpoint: {}", error.what()));
    }
  }
  return result;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw Error(fmt::format("cannot remove {}: {}", path.string(), error.message()));
}

// Signals are for the threads that know what to do with them.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

CheckpointSearch latest_checkpoint(const fs::path& folder) {
  std::vector<fs::path> candidates;
  for (auto& checkpoint : listed(folder)) candidates.push_back(checkpoint.path);
  if (has_best(folder)) candidates.push_back(best_path(folder));
  return search(candidates);
}

CheckpointSearch best_checkpoint(const fs::path& folder) {
  if (!has_best(folder)) return {};
  return search({best_path(folder)});
}

LoadedCheckpoint load_checkpoint(const fs::path& path) {
  SafetensorsFile file(path);
  LoadedCheckpoint loaded;
  loaded.metadata = file.metadata();
  auto step = take<std::int64_t>(loaded.metadata, kStepKey, path);
  check_marks(file, step, path);
  loaded.step = *step;
  loaded.metric = take<double>(loaded.metadata, kMetricKey, path);
  loaded.tensors = file.read_all();
  return loaded;
}

struct Checkpoints::Impl {
  Impl(fs::path folder, int keep_last, bool keep_best, bool higher_is_better);
  ~Impl();
  void save(std::int64_t step, const NamedTensors& tensors, Metadata metadata, std::optional<double> metric);
  void wait();
  void forget_after(std::int64_t step);

  struct Job {
    std::int64_t step = 0;
    Metadata metadata;
    bool is_best = false;
  };
  void work(std::stop_token stop);
  void write(const Job& job);
  void stage(const NamedTensors& tensors);

  const std::filesystem::path folder_;
  const int keep_last_;
  const bool keep_best_, higher_is_better_;
  std::optional<double> best_metric_;  // the caller's thread
  NamedTensors staged_;                // the caller's while no job is there, else the worker's; memory is used again

  Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<Job> job_ TRIREME_GUARDED_BY(mutex_);  // there until it is written
  std::exception_ptr failed_ TRIREME_GUARDED_BY(mutex_);
  std::jthread worker_;  // last, so that it ends first
};

Checkpoints::Impl::Impl(fs::path folder, int keep_last, bool keep_best, bool higher_is_better)
    : folder_(std::move(folder)), keep_last_(keep_last), keep_best_(keep_best), higher_is_better_(higher_is_better) {
  if (keep_last < 1) throw ConfigError(fmt::format("cannot keep the last {} checkpoints; keep at least 1", keep_last));
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw_write_error(folder_, error.value());
  remove_stale_drafts(folder_);
  if (auto best = best_checkpoint(folder_).found) best_metric_ = metric_of(best->path);
  worker_ = std::jthread([this](std::stop_token stop) { work(stop); });
}

Checkpoints::Impl::~Impl() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() TRIREME_REQUIRES(mutex_) { return !job_; });
}

void Checkpoints::Impl::wait() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() TRIREME_REQUIRES(mutex_) { return !job_; });
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

void Checkpoints::Impl::save(std::int64_t step, const NamedTensors& tensors, Metadata metadata,
                             std::optional<double> metric) {
  TRIREME_CHECK(step >= 0);
  wait();
  stage(tensors);
  Job job{step, std::move(metadata), false};
  job.metadata[kStepKey] = fmt::to_string(step);
  if (metric && std::isfinite(*metric)) {
    job.metadata[kMetricKey] = fmt::to_string(*metric);
    const bool better = !best_metric_ || (higher_is_better_ ? *metric > *best_metric_ : *metric < *best_metric_);
    job.is_best = keep_best_ && better;
    if (job.is_best) best_metric_ = metric;
  }
  MutexLock lock(mutex_);
  job_ = std::move(job);
  changed_.notify_all();
}

// A tensor keeps its place from save to save as long as its type and shape stay.
void Checkpoints::Impl::stage(const NamedTensors& tensors) {
  torch::NoGradGuard no_grad;
  staged_.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto& [name, copy] = staged_[i];
    auto& from = tensors[i].second;
    name = tensors[i].first;
    if (!copy.defined() || copy.sizes() != from.sizes() || copy.scalar_type() != from.scalar_type()) {
      copy = torch::empty(from.sizes(), torch::dtype(from.scalar_type()));
    }
    copy.copy_(from.detach());
  }
}

void Checkpoints::Impl::work(std::stop_token stop) {
  block_signals();
  MutexLock lock(mutex_);
  while (changed_.wait(lock, stop, [&]() TRIREME_REQUIRES(mutex_) { return job_.has_value(); })) {
    const Job& job = *job_;  // nobody else touches it until it is reset
    lock.unlock();
    std::exception_ptr failed;
    try {
      write(job);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    failed_ = failed;
    job_.reset();
    changed_.notify_all();
  }
}

void Checkpoints::Impl::write(const Job& job) {
  auto path = step_path(folder_, job.step);
  write_safetensors(path, staged_, job.metadata);
  if (job.is_best) link_atomically(path, best_path(folder_));
  // Later ones are of a future that the run has left by going on from an earlier step.
  int kept = 1;
  for (auto& other : listed(folder_)) {
    if (other.path == path) continue;
    if (other.step > job.step || kept >= keep_last_) {
      remove_file(other.path);
    } else {
      ++kept;
    }
  }
}

void Checkpoints::Impl::forget_after(std::int64_t step) {
  wait();
  for (auto& checkpoint : listed(folder_)) {
    if (checkpoint.step > step) remove_file(checkpoint.path);
  }
  auto best = best_checkpoint(folder_);
  if (!best.skipped.empty() || (best.found && best.found->step > step)) {
    remove_file(best_path(folder_));
    best_metric_.reset();
  }
}

Checkpoints::Checkpoints(fs::path folder, int keep_last, bool keep_best, bool higher_is_better)
    : impl_(std::make_unique<Impl>(std::move(folder), keep_last, keep_best, higher_is_better)) {}
Checkpoints::~Checkpoints() = default;
void Checkpoints::save(std::int64_t step, const NamedTensors& tensors, Metadata metadata,
                       std::optional<double> metric) {
  impl_->save(step, tensors, std::move(metadata), metric);
}
void Checkpoints::wait() { impl_->wait(); }
CheckpointSearch Checkpoints::latest() {
  wait();
  return latest_checkpoint(impl_->folder_);
}
CheckpointSearch Checkpoints::best() {
  wait();
  return best_checkpoint(impl_->folder_);
}
void Checkpoints::forget_after(std::int64_t step) { impl_->forget_after(step); }

}  // namespace trireme::train
