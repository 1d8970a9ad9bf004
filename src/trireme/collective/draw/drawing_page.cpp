// A traced call as a page: what happened goes in as JSON, pages/collective_*.js draw it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>

#include "trireme/base/error.h"
#include "trireme/collective/draw/drawing.h"
#include "trireme/pages/page.h"

namespace trireme {
namespace {

using Json = nlohmann::json;

constexpr int kMostRanks = 32;
constexpr std::size_t kMostChunks = 64;
constexpr std::pair<Buffer, const char*> kBufferWords[] = {
    {Buffer::input, "input"}, {Buffer::output, "output"}, {Buffer::scratch, "scratch"}, {Buffer::stage, "stage"}};

class Page {
 public:
  Page(const Trace& trace, const Algorithm& algorithm, const Caption& caption)
      : trace_(trace), algorithm_(algorithm), caption_(caption), call_(trace.shape()) {}

  // title, summary, facts; ranks; word (of a piece); sums (pieces are added up), rooted (all come from one rank),
  // barrier; layout, parents; buffers: [{name, chunks}]; values: [[piece, ranks]]; wanted and start: by rank, buffer,
  // chunk; rounds: [{say, moves, changes: [[rank, buffer, chunk, value]]}]
  Json data() {
    find_buffers();
    Json rounds = Json::array();
    for (int k = 0; k < trace_.rounds(); ++k) {
      rounds.push_back({{"say", describe_round(trace_, k)}, {"moves", moves(k)}, {"changes", changes(k)}});
    }
    Json facts = Json::array();
    for (const auto& [label, text] : caption_.facts) facts.push_back({label, text});
    Json result{{"title", caption_.title},
                {"summary", caption_.summary},
                {"facts", facts},
                {"ranks", call_.ranks},
                {"word", piece_word(trace_)},
                {"sums", reduces(call_.what) || call_.what == Collective::barrier},
                {"rooted", call_.what == Collective::broadcast || call_.what == Collective::scatter},
                {"barrier", call_.what == Collective::barrier},
                {"layout", layout()},
                {"buffers", buffers()},
                {"start", snapshot(-1)},
                {"wanted", wanted()},
                {"rounds", rounds}};
    if (in_tree()) result["parents"] = parents();
    Json values = Json::array();
    for (std::size_t number = 0; number < trace_.values().size(); ++number) {
      const Value& value = trace_.values()[static_cast<int>(number)];
      values.push_back({piece_of(trace_, value), value.ranks});
    }
    result["values"] = values;
    return result;
  }

 private:
  // Only buffers that ever hold something worth showing.
  void find_buffers() {
    for (auto [buffer, word] : kBufferWords) {
      bool used = buffer == Buffer::output;
      for (int k = -1; k < trace_.rounds() && !used; ++k) {
        for (int rank = 0; rank < call_.ranks && !used; ++rank) {
          for (std::size_t at = 0; at < trace_.size(buffer) && !used; ++at)
            used = trace_.held(k, rank, buffer, at) != 0;
        }
      }
      if (buffer == Buffer::input && call_.what == Collective::barrier) used = false;
      if (used) {
        places_[buffer] = static_cast<int>(shown_.size());
        shown_.push_back(buffer);
      }
    }
  }

  Json buffers() const {
    Json list = Json::array();
    for (auto [buffer, word] : kBufferWords) {
      if (!places_.contains(buffer)) continue;
      std::string label = call_.what == Collective::barrier ? "knows of" : word;
      list.push_back({{"name", label}, {"output", buffer == Buffer::output}, {"chunks", chunk_count(buffer)}});
    }
    return list;
  }

  int chunk_count(Buffer buffer) const { return static_cast<int>(trace_.chunks(buffer).size()) - 1; }

  int held(int k, int rank, Buffer buffer, int chunk) const {
    // Memory that peers read stays in sight, so that the last picture still shows where the sums came from.
    if (buffer == Buffer::input && algorithm_.shared) k = -1;
    return trace_.held(k, rank, buffer, trace_.chunks(buffer)[chunk]);
  }

  Json snapshot(int k) const {
    Json all = Json::array();
    for (int rank = 0; rank < call_.ranks; ++rank) {
      Json mine = Json::array();
      for (Buffer buffer : shown_) {
        Json cells = Json::array();
        for (int chunk = 0; chunk < chunk_count(buffer); ++chunk) cells.push_back(held(k, rank, buffer, chunk));
        mine.push_back(cells);
      }
      all.push_back(mine);
    }
    return all;
  }

  Json wanted() const {
    Json all = Json::array();
    for (int rank = 0; rank < call_.ranks; ++rank) {
      Json cells = Json::array();
      for (int chunk = 0; chunk < chunk_count(Buffer::output); ++chunk) {
        cells.push_back(trace_.wanted(rank, trace_.chunks(Buffer::output)[chunk]));
      }
      all.push_back(cells);
    }
    return all;
  }

  Json changes(int k) const {
    Json list = Json::array();
    for (int rank = 0; rank < call_.ranks; ++rank) {
      for (Buffer buffer : shown_) {
        for (int chunk = 0; chunk < chunk_count(buffer); ++chunk) {
          int now = held(k, rank, buffer, chunk);
          if (now != held(k - 1, rank, buffer, chunk)) list.push_back({rank, places_.at(buffer), chunk, now});
        }
      }
    }
    return list;
  }

  Json moves(int k) const {
    Json list = Json::array();
    for (const Move* each : in_order(trace_.moves(k))) {
      const Move& move = *each;
      Json values = Json::array();
      for (int chunk : chunks_in(trace_, move.target)) {
        std::size_t start = std::max(trace_.chunks(move.target.buffer)[chunk], move.target.offset);
        values.push_back(move.values[start - move.target.offset]);
      }
      const char* kind = move.kind == StepKind::recv          ? "send"
                         : move.kind == StepKind::recv_reduce ? "add"
                         : move.kind == StepKind::read        ? "read"
                                                              : "fold";
      list.push_back({{"kind", kind}, {"from", move.from}, {"to", move.to}, {"actor", move.actor}, {"values", values}});
    }
    return list;
  }

  static std::vector<const Move*> in_order(const std::vector<Move>& moves) {
    std::vector<const Move*> list;
    for (const Move& move : moves) {
      if (!move.local()) list.push_back(&move);
    }
    std::stable_sort(list.begin(), list.end(), [](const Move* a, const Move* b) {
      return std::pair(a->from, a->to) < std::pair(b->from, b->to);
    });
    return list;
  }

  bool in_tree() const { return algorithm_.pattern == Pattern::tree || algorithm_.pattern == Pattern::spanning; }
  std::string layout() const {
    const Pattern pattern = algorithm_.pattern;
    return in_tree() ? "tree" : pattern == Pattern::folding || pattern == Pattern::pairwise ? "grid" : "ring";
  }

  // Whose child each rank is, in the tree of shortest ways from the root over pairs that ever exchange something.
  Json parents() const {
    std::vector<std::vector<int>> near(call_.ranks);
    for (int k = 0; k < trace_.rounds(); ++k) {
      for (const Move& move : trace_.moves(k)) {
        if (move.local() || move.from < 0 || move.to < 0) continue;
        near[move.from].push_back(move.to);
        near[move.to].push_back(move.from);
      }
    }
    std::vector<int> parent(call_.ranks, -2);
    parent[call_.root] = -1;
    std::queue<int> next({call_.root});
    while (!next.empty()) {
      int rank = next.front();
      next.pop();
      std::sort(near[rank].begin(), near[rank].end());
      for (int peer : near[rank]) {
        if (parent[peer] != -2) continue;
        parent[peer] = rank;
        next.push(peer);
      }
    }
    std::replace(parent.begin(), parent.end(), -2, call_.root);
    parent[call_.root] = -1;
    return parent;
  }

  const Trace& trace_;
  const Algorithm& algorithm_;
  const Caption& caption_;
  const Call& call_;
  std::vector<Buffer> shown_;
  std::map<Buffer, int> places_;
};

}  // namespace

std::string draw_page(const Trace& trace, const Algorithm& algorithm, const Caption& caption) {
  if (trace.shape().ranks > kMostRanks || trace.chunks(Buffer::output).size() > kMostChunks + 1) {
    throw ConfigError(fmt::format("a page holds at most {} ranks and {} chunks, not {} and {}; take fewer", kMostRanks,
                                  kMostChunks, trace.shape().ranks, trace.chunks(Buffer::output).size() - 1));
  }
  return pages::render(pages::View::collective, caption.title, Page(trace, algorithm, caption).data().dump());
}

}  // namespace trireme
