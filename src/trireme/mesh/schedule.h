// A pipeline schedule is data: what each stage does, in order. The executor runs it, the checker proves it, the
// simulator times it, `explain` draws it.
//
// A model is cut into stages × chunks parts: part p is chunk p / stages of stage p % stages. Activations go from part p
// to p + 1, gradients back. Micro-batches are numbered from 0.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::pipelines {

struct Action {
  enum class Kind : std::uint8_t {
    receive_activation,  // from the part before; waits until it is there
    forward,
    send_activation,   // to the part after; does not wait
    receive_gradient,  // from the part after; waits until it is there
    backward,          // of inputs and weights; of inputs alone where the schedule has weight_gradient
    send_gradient,     // to the part before; does not wait
    weight_gradient,   // what such a backward left out
    update,            // asynchronous schedules: the optimizer steps with this micro-batch's gradient
  };
  Kind kind{};
  int micro_batch = 0;
  int chunk = 0;
  bool operator==(const Action&) const = default;
};

struct Schedule {
  std::string name;
  int stages = 1, micro_batches = 1, chunks = 1;
  bool synchronous = true;                   // equal to no pipeline: weights change only after the last action
  bool splits_backward = false;              // has weight_gradient
  std::vector<std::vector<Action>> actions;  // by stage
};

struct PipelineKind {
  std::string_view name;
  std::string_view summary;
  bool synchronous = true;
  bool splits_backward = false;
  bool in_chunks = false;  // several parts a stage
  Schedule (*make)(int stages, int micro_batches, int chunks);
  // The most activations that a stage holds at once, from a forward to its backward (to its weight gradient where that
  // is apart): one for each micro-batch and chunk.
  int (*most_held)(int stages, int micro_batches, int chunks, int stage);
  // The share of time that stages idle where all parts take the same time, messages none, and where backward is split
  // its halves as long as a forward. S stages, M micro-batches, v chunks.
  std::string_view bubble_text;
  std::optional<double> (*bubble)(int stages, int micro_batches, int chunks);  // nothing where the formula is not exact
};
// gpipe, 1f1b, interleaved, zero-bubble, pipedream: one file each.
std::span<const PipelineKind> kinds();

// Throws ConfigError that lists the names.
const PipelineKind& find_kind(std::string_view name);

// Throws ConfigError: lists the names, or says what is wrong with the numbers and what is possible. `chunks` counts
// for kinds that are in chunks only.
Schedule make(std::string_view name, int stages, int micro_batches, int chunks = 2);

// ---- the stream of an asynchronous pipeline: steps follow each other and nothing is drained between them ----

// What a stage does in a step of pipedream that feeds micro-batches [first, first + micro_batches) of a stream that
// began at 0: each forward is followed by the backward and update of the micro-batch that is then due.
std::vector<Action> step_of_stream(int stages, int stage, int first_micro_batch, int micro_batches);
// What is still in flight in a stage after `forwards_done` micro-batches were fed. Steps and drain, one after the
// other, are what make("pipedream", …) gives for the whole stream.
std::vector<Action> drain_of_stream(int stages, int stage, int forwards_done);

// "backward", "receive_gradient", …
std::string_view name(Action::Kind kind);

}  // namespace trireme::pipelines
