#include "trireme/cluster/sim/job/buckets_in_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/base/infinite_time.h"
#include "trireme/sync/exchange/bucket_layout.h"
#include "trireme/sync/exchange/rehearsal.h"
#include "trireme/sync/exchange/step_notes.h"

namespace trireme::cluster {
BucketsInTime::BucketsInTime(Simulation& simulation) : sim_(simulation) {
  lanes_.assign(static_cast<std::size_t>(sim_.job.lanes), std::vector<double>(static_cast<std::size_t>(sim_.ranks)));
  plan();
}

// The sizes that the runtime measures, played instead.
sync::BucketCosts BucketsInTime::costs() {
  using sync::Rehearsal;
  const std::size_t most = Rehearsal::longest(static_cast<std::size_t>(sim_.model_bytes));
  const bool many = sim_.network.shared() && sim_.ranks > 256;  // each takes its time there
  sync::RehearsedSeconds seconds;
  for (std::size_t bytes = many ? 128 << 10 : Rehearsal::kFirst; bytes <= most || seconds.size() < 2;
       bytes *= Rehearsal::kTimes) {
    seconds.add(bytes, sim_.clock.alone(sim_.coding.rehearsal(bytes)));
  }
  return {seconds, sim_.theft, sim_.profile.pack_s_per_byte};
}

void BucketsInTime::plan() {
  const auto& gradients = sim_.profile.gradients;
  const auto choice = sync::parse_bucket_plan(sim_.job.bucket_plan);
  std::vector<sync::Gradient> run;
  double ready = 0;
  for (const auto& gradient : gradients) {
    ready = std::max(ready, gradient.ready_s.p50);
    run.push_back({ready, sizeof(float) * gradient.elements, true});
  }
  // Ready times count from the first one, as the runtime's do.
  const double zero = run.front().ready_s;
  auto relative = run;
  for (auto& gradient : relative) gradient.ready_s -= zero;
  std::size_t begin = 0;
  for (std::size_t end : sync::plan_buckets(choice, relative, choice.measured ? costs() : sync::BucketCosts{})) {
    OneBucket bucket;
    for (std::size_t j = begin; j < end; ++j) bucket.bytes += static_cast<double>(run[j].bytes);
    bucket.ready_s = std::min(run[end - 1].ready_s, sim_.cost.backward);
    bucket.gradients = static_cast<int>(end - begin);
    bucket.pack_s = bucket.gradients > 1 && !sim_.job.own ? bucket.bytes * sim_.profile.pack_s_per_byte : 0;
    bucket.legs = sim_.coding.legs(begin, end);
    if (sim_.coding.none()) {
      std::size_t elements = 0;
      for (std::size_t j = begin; j < end; ++j) {
        elements = sync::padded(elements, sync::bucket_line(sizeof(float))) + gradients[j].elements;
      }
      bucket.legs = plain_legs(elements);
      if (end == gradients.size()) {
        notes_apart_ = !sync::carries_notes(bucket.gradients, sizeof(float) * elements);
        if (!notes_apart_) bucket.legs.legs[0].count += sync::note_count(gradients.size());
      }
    }
    bucket.alone_s = sim_.clock.alone(bucket.legs);
    bucket.latency_s = sim_.clock.latency(bucket.legs);
    buckets_.push_back(std::move(bucket));
    begin = end;
  }
}

BucketsInTime::Told BucketsInTime::backward(std::span<double> now, std::span<const double> factor) {
  Told told;
  told.exposed.assign(now.size(), 0.0);
  last_.assign(buckets_.size(), {});
  sim_.in_line ? in_line(now, factor, told) : in_background(now, factor, told);
  return told;
}

void BucketsInTime::in_line(std::span<double> now, std::span<const double> factor, Told& told) {
  double computed = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const auto& bucket = buckets_[b];
    auto& times = last_[b];
    for (std::size_t r = 0; r < now.size(); ++r) {
      now[r] += (bucket.ready_s - computed) * factor[r] + bucket.pack_s;
    }
    computed = bucket.ready_s;
    times.full.assign(now.begin(), now.end());
    times.begin = times.full;
    sim_.clock.run(bucket.legs, now);
    times.end.assign(now.begin(), now.end());
    for (std::size_t r = 0; r < now.size(); ++r) told.exposed[r] += times.end[r] - times.begin[r];
    account(bucket, times, told);
  }
  for (std::size_t r = 0; r < now.size(); ++r) now[r] += (sim_.cost.backward - computed) * factor[r];
  notes(now, told);
}

void BucketsInTime::walk(Computing& on, std::size_t r, std::size_t buckets, double undisturbed, double at) const {
  while (on.done < undisturbed && on.now < at) {
    double until = at, rate = 1;
    if (on.bucket < buckets) {
      const auto& times = last_[on.bucket];
      if (on.now >= times.end[r]) {
        ++on.bucket;
        continue;
      }
      const bool travels = on.now >= times.begin[r];
      if (travels) rate = times.rate[r];
      until = std::min(at, travels ? times.end[r] : times.begin[r]);
    }
    const double needs = rate > 0 ? (undisturbed - on.done) / rate : kNever;
    if (needs <= until - on.now) {
      on.now += needs;
      on.done = undisturbed;
      return;
    }
    on.done += rate * (until - on.now);
    on.now = until;
  }
}

double BucketsInTime::computed(std::size_t r, double undisturbed, std::size_t buckets) {
  walk(computing_[r], r, buckets, undisturbed, kNever);
  return computing_[r].now;
}

double BucketsInTime::left(std::size_t r, double undisturbed, std::size_t buckets, double at) const {
  auto then = computing_[r];
  walk(then, r, buckets, undisturbed, at);
  return undisturbed - then.done;
}

void BucketsInTime::in_background(std::span<double> now, std::span<const double> factor, Told& told) {
  const std::vector<double> zero(now.begin(), now.end());
  std::vector<double> wire(now.size(), 0.0);
  double packed = 0;
  computing_.clear();
  for (double time : zero) computing_.push_back({time, time, 0});
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const auto& bucket = buckets_[b];
    auto& times = last_[b];
    auto& lane = lanes_[b % lanes_.size()];
    packed += bucket.pack_s;
    times.full.resize(now.size());
    for (std::size_t r = 0; r < now.size(); ++r) {
      times.full[r] = computed(r, zero[r] + bucket.ready_s * factor[r] + packed, b);
    }
    times.begin = times.full;
    for (std::size_t r = 0; r < now.size(); ++r) times.begin[r] = std::max({times.begin[r], lane[r], wire[r]});
    times.end = times.begin;
    sim_.clock.run(bucket.legs, times.end);
    times.rate.resize(now.size());
    Simulation::Slowdown longer;
    double of = -1;  // most ranks have as much left as the one before
    for (std::size_t r = 0; r < now.size(); ++r) {
      const double rest = left(r, zero[r] + sim_.cost.backward * factor[r] + packed, b, times.begin[r]);
      if (rest != std::exchange(of, rest)) longer = sim_.slowdown(bucket.legs, rest);
      times.end[r] += longer.exchange_s;
      const double meanwhile = std::min(times.end[r] - times.begin[r], rest + longer.compute_s);
      times.rate[r] = meanwhile > 0 ? 1 - std::min(1.0, longer.compute_s / meanwhile) : 1;
    }
    lane = times.end;
    // Exchanges on several lanes share the wire, not the waiting for it.
    if (lanes_.size() > 1) {
      for (std::size_t r = 0; r < now.size(); ++r) wire[r] = times.end[r] - bucket.latency_s;
    }
    account(bucket, times, told);
  }
  for (std::size_t r = 0; r < now.size(); ++r) {
    now[r] = computed(r, zero[r] + sim_.cost.backward * factor[r] + packed, buckets_.size());
  }
  const std::vector<double> ends(now.begin(), now.end());
  notes(now, told);
  for (std::size_t r = 0; r < now.size(); ++r) {
    for (const auto& times : last_) now[r] = std::max(now[r], times.end[r]);
    told.exposed[r] = now[r] - ends[r];
  }
}

// Where no bucket carries them the notes go on their own, once all were handed over.
void BucketsInTime::notes(std::span<double> now, Told& told) {
  if (!notes_apart_ || sim_.ranks == 1) return;
  const std::vector<double> begins(now.begin(), now.end());
  sim_.clock.run(Leg{Collective::all_reduce, sync::note_count(sim_.profile.gradients.size()), sizeof(float), 0}, now);
  told.communication += now[0] - begins[0];
  if (!sim_.in_line) return;
  for (std::size_t r = 0; r < now.size(); ++r) told.exposed[r] += now[r] - begins[r];
}

void BucketsInTime::account(const OneBucket& bucket, const Times& times, Told& told) const {
  const double took = times.end[0] - times.begin[0];
  told.communication += took;
  told.parts.latency += bucket.latency_s;
  told.parts.coding += bucket.legs.coding_s;
  told.parts.bandwidth += std::max(0.0, bucket.alone_s - bucket.latency_s - bucket.legs.coding_s);
  told.parts.waiting += std::max(0.0, took - bucket.alone_s);
  told.parts.queueing += times.begin[0] - times.full[0];
}

void BucketsInTime::trace(Simulated& result, std::int64_t step) const {
  if (!sim_.job.trace) return;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const auto name = fmt::format("bucket {}", b);
    for (int r = 0; r < sim_.ranks; ++r) {
      const auto place = static_cast<std::size_t>(r);
      const auto& times = last_[b];
      sim_.event(result, name.c_str(), "communication", r, times.begin[place], times.end[place], step,
                 {{"bytes", buckets_[b].bytes},
                  {"gradients", buckets_[b].gradients},
                  {"waited_ms", 1e3 * (times.begin[place] - times.full[place])}});
    }
  }
}

}  // namespace trireme::cluster
