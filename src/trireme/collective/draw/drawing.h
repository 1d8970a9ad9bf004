// Pictures of a schedule, for people: a traced call as text for the terminal and as a page for the browser.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "trireme/collective/draw/trace.h"

namespace trireme {

// What is told about an algorithm besides its rounds.
struct Caption {
  std::string title;                                       // "ring all-reduce, 4 ranks"
  std::string summary;                                     // one sentence
  std::vector<std::pair<std::string, std::string>> facts;  // label and value: totals, formulas
};

struct TextStyle {
  bool color = false;
  bool full = false;  // leave nothing out, however long
  int width = 100;    // columns
};

std::string draw_text(const Trace& trace, const Caption& caption, const TextStyle& style);

// One self-contained HTML page. Throws ConfigError for more ranks than fit.
std::string draw_page(const Trace& trace, const Algorithm& algorithm, const Caption& caption);

// ---- what both share ----

// Chunks of `slice`, as indices into trace.chunks(slice.buffer).
std::vector<int> chunks_in(const Trace& trace, const Slice& slice);
// Which piece of the caller's data a value is: the index of a chunk or a block; -1 for nothing.
int piece_of(const Trace& trace, const Value& value);
// "chunk" or "block".
std::string_view piece_word(const Trace& trace);
// Ranks that contributed, one character for each rank of the world: "01·3". Only for few ranks.
std::string contribution_text(const Value& value, int ranks);
// One sentence on what happens in a round, found from its moves.
std::string describe_round(const Trace& trace, int round);

}  // namespace trireme
