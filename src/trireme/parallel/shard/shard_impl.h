// What Sharded is made of.
//
// Invariant: every collective is started at a place that depends on nothing but the calls of the stage and the options,
// so that all workers of the axis start the same ones in the same order.
#pragma once
#include <map>

#include "trireme/parallel/shard/flat_gradients.h"
#include "trireme/parallel/shard/flat_parameters.h"
#include "trireme/parallel/shard/shard.h"
#include "trireme/parallel/shard/use_order.h"

namespace trireme::parallel {

struct Sharded::Impl {
  // In `notes`, behind what the caller tells; from kUsed on one for each that learns.
  enum Note : std::size_t { kBad = kTold, kUsed };
  // Parameters of one type that the same segments use.
  struct Unit {
    Unit(Exchange& exchange, std::vector<FlatPart> parts, bool learning, std::vector<std::size_t> segments,
         const ShardOptions& options);
    std::vector<std::size_t> segments;  // ascending
    FlatParameters flat;
    std::optional<FlatGradients> gradients;  // of those that learn
    std::size_t first_part = 0;              // the number of its first among all that learn
    int users = 0;                           // uses of its weights that have begun and not ended
    std::size_t lasts = 0;                   // segments whose last backward of the step has been
    bool needs_scatter = false;              // something was collected since it was last scattered
  };
  // A piece that this worker steps.
  struct Piece {
    std::size_t unit, part;
  };

  Impl(std::vector<nn::Named> units, Communicator& data, const ShardOptions& wanted);
  // Nothing may be under way when its memory goes: what does not end soon is given up, for all workers.
  ~Impl();
  void build(const std::vector<nn::Named>& given);
  void find_pieces();

  bool sharded_weights() const { return options.what == ShardKind::parameters; }
  bool whole_until_last() const { return options.what == ShardKind::optimizer || options.accumulate_whole; }
  void enter(std::size_t segment, bool backward);
  void leave(std::size_t segment);
  void prefetch();
  void begin_step();
  void after_backward(std::size_t segment, bool last);
  void collect(Unit& unit);
  void scatter(Unit& unit);
  void finish();
  void exchange_notes();
  void give_gradients();

  // Where a name leads: to a unit and a part of it; null if nowhere.
  struct Place {
    Unit* unit = nullptr;
    const FlatPart* part = nullptr;
  };
  Place place_of(const std::string& parameter) const;
  // Of a quantity, "<parameter>.<quantity>".
  Place place_of_quantity(const std::string& name) const;

  Communicator& comm;
  const ShardOptions options;
  Exchange exchange;
  UseOrder order;
  std::vector<std::unique_ptr<Unit>> units;          // in the order of their first use
  std::vector<std::vector<Unit*>> of_segment;        // that a segment uses
  std::vector<std::pair<std::string, Place>> names;  // all that were given, in order
  std::map<std::string, Place> places;
  std::vector<std::string> learning;  // names of the parameters that learn
  nn::Named shards;
  std::vector<Piece> pieces;                        // as shards
  std::vector<std::unique_ptr<SegmentWatch>> ears;  // of stages whose segments are not counted from 0

  bool stepping = false;       // a backward has come since finish()
  bool foresees = true;        // weights are not about to change: segments may be fetched that are needed in a while
  Unit* on_its_way = nullptr;  // the one whose gradients are being added up
  int bad_here = -1;           // the first that is not finite, of those that learn
  std::vector<float> notes;    // what the caller tells, whether something is bad, whether each that learns was used
  std::array<float, kTold> told{};
  std::vector<BadGradient> bad;
  ShardTimes times;
};

}  // namespace trireme::parallel
