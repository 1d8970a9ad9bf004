// The mean, or the sum, of all ranks' tensors, sent as codes (compress/). One codec per tensor, by the rules; in
// buckets while backward runs, or all tensors of a model at once.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trireme/sync/exchange/background.h"
#include "trireme/sync/exchange/bucket_exchange.h"
#include "trireme/sync/exchange/code_exchange.h"
#include "trireme/sync/exchange/codes.h"
#include "trireme/sync/report.h"

namespace trireme::sync {

class CompressedMean : public BucketExchange {
 public:
  // For these tensors, in the order of their numbers. `op`: avg or sum. Collective: takes a group of its own, so that
  // its calls and others do not meet. `world` must outlive it.
  CompressedMean(Communicator& world, const std::vector<compress::Tensor>& tensors, Codes codes, Op op,
                 NotFinite not_finite = NotFinite::is_an_error);
  // When something has failed in the middle of an exchange, the others are told.
  ~CompressedMean() override;
  CompressedMean(const CompressedMean&) = delete;

  // Exchanges a bucket whose segments are whole tensors. Those that are not of f32 go as they are.
  std::unique_ptr<Pending> start(const Bucket& bucket, Turn turn) override;
  // All tensors, one after the other.
  void operator()(std::span<float> all);
  // The same, returning at once.
  std::unique_ptr<Pending> start(std::span<float> all);

  // What an exchange of so many bytes costs: made ready, to be called and timed. Touches nothing of the tensors.
  // Collective, as are the calls.
  std::function<void()> rehearsal(std::size_t bytes) override;

  // What it has done so far. While no exchange is under way.
  Compressed report() const;
  // The codecs, for what they remember. While no exchange is under way.
  struct InUse {
    const std::string* parameter;
    compress::Codec* codec;
    compress::Codec* again;  // of the share that this rank merges, where there is one
    Share share;
  };
  std::vector<InUse> in_use();
  Op op() const { return op_; }
  int workers() const { return group_.size(); }

  // By this rank, without rehearsals.
  std::uint64_t bytes_sent() const { return group_.bytes_sent() - rehearsed_bytes_; }

 private:
  struct Member {
    compress::Tensor tensor;
    std::unique_ptr<compress::Codec> codec, again;
    bool none = false;
  };
  Member member_of(const compress::Tensor& tensor) const;
  void exchange(const std::vector<std::pair<Member*, std::span<float>>>& parts, View whole);
  void exchange(const Bucket& bucket);
  void look(const std::vector<Coded>& coded, const std::vector<double>& before);
  std::unique_ptr<Pending> begin(Turn turn, std::function<void()> work);

  const Codes codes_;
  const Op op_;
  const NotFinite not_finite_;
  Communicator group_;
  std::vector<Member> members_;
  CodeExchange exchange_;
  // Of what was looked at, and of all.
  std::int64_t exchanges_ = 0;
  double errors_ = 0, looks_ = 0, dense_bytes_ = 0;
  std::uint64_t rehearsed_bytes_ = 0;
  std::vector<float> left_;
  Background background_;  // last: its thread uses all of the above
};

}  // namespace trireme::sync
