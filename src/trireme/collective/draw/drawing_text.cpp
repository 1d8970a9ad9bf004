// A traced call for the terminal: for every round a sentence, who sends what to whom, and what each rank then holds.
#include <fmt/format.h>

#include <algorithm>

#include "trireme/collective/draw/drawing.h"

namespace trireme {
namespace {

constexpr int kRanksSpelled = 36;    // one digit or letter for each
constexpr std::size_t kMargin = 12;  // before what a rank holds
constexpr std::size_t kRowsShown = 16, kRoundsShown = 24;

// Characters on the screen: code points, which all have one column here.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(std::string text, std::size_t width) {
  std::size_t used = columns_of(text);
  if (used < width) text.append(width - used, ' ');
  return text;
}

std::string without_trailing_spaces(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\n') out.erase(out.find_last_not_of(' ') + 1);
    out += c;
  }
  return out;
}

class TextDrawing {
 public:
  TextDrawing(const Trace& trace, const Caption& caption, const TextStyle& style)
      : trace_(trace), caption_(caption), style_(style), ranks_(trace.shape().ranks) {}

  std::string draw() {
    heading();
    int rounds = trace_.rounds();
    bool all = style_.full || rounds <= static_cast<int>(kRoundsShown);
    int head = all ? rounds : static_cast<int>(kRoundsShown) * 2 / 3,
        tail = all ? 0 : static_cast<int>(kRoundsShown) / 3;
    for (int k = 0; k < head; ++k) round(k);
    if (!all)
      out_ += fmt::format("\n… rounds {} to {} go on likewise (--full shows them) …\n", head + 1, rounds - tail);
    for (int k = rounds - tail; k < rounds; ++k) round(k);
    totals();
    return without_trailing_spaces(out_);
  }

 private:
  void heading() {
    out_ += paint("1", caption_.title) + "\n" + caption_.summary + "\n";
    out_ += "\n" + key() + "\n\n" + paint("1", "start") + "\n";
    held_by_ranks(-1);
  }

  std::string key() const {
    if (trace_.shape().what == Collective::barrier) return "Shown after each round: the ranks whose arrival is known.";
    if (rooted()) return "Shown after each round: ● for what has arrived in the output.";
    if (!reduces(trace_.shape().what)) return "Shown after each round: the rank each block of the output came from.";
    if (spelled()) {
      return fmt::format("Shown after each round: the ranks whose contribution {} holds; {} is a finished sum.",
                         uncut() ? "the vector" : "a chunk",
                         paint("32", contribution_text(trace_.values()[everyone()], ranks_)));
    }
    return "Shown after each round: how much of the sum each chunk holds, from ▁ (one rank's) to █ (all).";
  }

  bool rooted() const {
    return trace_.shape().what == Collective::broadcast || trace_.shape().what == Collective::scatter;
  }
  // Whether contributions are written rank by rank: as long as a line holds them.
  bool spelled() const {
    auto ranks = static_cast<std::size_t>(std::max(ranks_, 2));
    std::size_t chunks = trace_.chunks(Buffer::output).size() - 1;
    return ranks_ <= kRanksSpelled && kMargin + chunks * (ranks + 1) <= static_cast<std::size_t>(style_.width);
  }
  bool uncut() const { return piece_word(trace_) == "chunk" && trace_.chunks(Buffer::output).size() == 2; }

  int everyone() const {
    for (std::size_t at = 0; at < trace_.size(Buffer::output); ++at) {
      if (int wanted = trace_.wanted(trace_.shape().root, at)) return wanted;
    }
    return 0;
  }

  void round(int k) {
    out_ += fmt::format("\n{}  {}\n", paint("1", fmt::format("round {} of {}", k + 1, trace_.rounds())),
                        describe_round(trace_, k));
    moves(k);
    held_by_ranks(k);
  }

  // ---- what moves ----

  void moves(int k) {
    std::vector<const Move*> told;
    for (const Move& move : trace_.moves(k)) {
      if (!move.local()) told.push_back(&move);  // the sentence above tells of local steps
    }
    std::stable_sort(told.begin(), told.end(), [](const Move* a, const Move* b) { return a->from < b->from; });
    auto adds = [](const Move* move) { return move->kind == StepKind::recv_reduce; };
    mixed_ = std::any_of(told.begin(), told.end(), adds) && !std::all_of(told.begin(), told.end(), adds);
    std::vector<std::string> lines;
    for (const Move* move : told) lines.push_back(sentence(*move));
    std::size_t shown = style_.full ? lines.size() : std::min(lines.size(), kRowsShown);
    std::size_t widest = 0;
    for (std::size_t i = 0; i < shown; ++i) widest = std::max(widest, columns_of(lines[i]));
    std::size_t abreast = std::max<std::size_t>(1, (static_cast<std::size_t>(style_.width) - 2) / (widest + 4));
    for (std::size_t i = 0; i < shown; ++i) {
      bool last = i + 1 == shown || (i + 1) % abreast == 0;
      out_ += (i % abreast == 0 ? "  " : "    ") + (last ? lines[i] : padded(lines[i], widest)) + (last ? "\n" : "");
    }
    if (shown < lines.size()) out_ += fmt::format("  … and {} more\n", lines.size() - shown);
  }

  std::string sentence(const Move& move) const {
    std::string what = pieces(move.values);
    switch (move.kind) {
      case StepKind::recv:
        return fmt::format("{} → {}  {}", move.from, move.to, what);
      case StepKind::recv_reduce:
        return fmt::format("{} → {}  {}{}", move.from, move.to, what, mixed_ ? ", added" : "");
      case StepKind::read:
        return fmt::format("{} reads {} of {}", move.to, what, move.from);
      case StepKind::reduce_from: {
        std::string whose = move.to == kEveryone    ? "everybody"
                            : move.to == move.actor ? "itself"
                                                    : fmt::format("rank {}", move.to);
        return fmt::format("{} folds {} for {}", move.actor, what, whose);
      }
      default:
        return "";
    }
  }

  // "chunk 2 (01··)" or "blocks 4–7": the distinct pieces among the values, by whose they are.
  // At most so many columns, but for the first.
  std::string pieces(const std::vector<int>& values, std::size_t most = 40) const {
    if (trace_.shape().what == Collective::barrier) return "here";
    std::vector<std::pair<std::string, std::vector<int>>> groups;
    for (int number : values) {
      const Value& value = trace_.values()[number];
      int piece = piece_of(trace_, value);
      if (piece == -1) continue;
      std::string whose = who(value);
      auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& each) { return each.first == whose; });
      if (group == groups.end()) group = groups.insert(group, {whose, {}});
      group->second.push_back(piece);
    }
    if (groups.empty()) return "nothing";
    std::string text;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      auto& [whose, numbers] = groups[i];
      std::string next = named(numbers) + (whose.empty() ? "" : fmt::format(" ({})", whose));
      if (i > 0 && !style_.full && columns_of(text) + columns_of(next) > most) {
        return fmt::format("{}, … {} more", text, groups.size() - i);
      }
      text += (i ? ", " : "") + next;
    }
    return text;
  }

  std::string named(std::vector<int>& numbers) const {
    if (uncut()) return "vector";
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return fmt::format("{}{} {}", piece_word(trace_), numbers.size() > 1 ? "s" : "", runs(numbers));
  }

  std::string who(const Value& value) const {
    if (trace_.shape().what == Collective::all_to_all) return fmt::format("of {}", value.ranks[0]);
    if (!reduces(trace_.shape().what)) return "";  // the place, or the root, says it
    if (spelled()) return contribution_text(value, ranks_);
    return fmt::format("{} of {}", value.ranks.size(), ranks_);
  }

  // 0 1 2 5 → "0–2,5"
  static std::string runs(const std::vector<int>& numbers) {
    std::string text;
    for (std::size_t i = 0; i < numbers.size();) {
      std::size_t j = i;
      while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
      text += text.empty() ? "" : ",";
      text += j > i ? fmt::format("{}–{}", numbers[i], numbers[j]) : fmt::format("{}", numbers[i]);
      i = j + 1;
    }
    return text;
  }

  // ---- what ranks hold ----

  void held_by_ranks(int k) {
    int chunks = static_cast<int>(trace_.chunks(Buffer::output).size()) - 1;
    std::size_t cell = cell_width();
    if (cell > 1 && chunks > 1) {
      out_ += fmt::format("  {:<9}", piece_word(trace_));
      for (int c = 0; c < chunks; ++c)
        out_ += c + 1 < chunks ? fmt::format(" {:<{}}", c, cell) : fmt::format(" {}\n", c);
    }
    int most = style_.full ? ranks_ : static_cast<int>(kRowsShown);
    for (int rank = 0; rank < ranks_; ++rank) {
      if (ranks_ > most && rank == most - 2) {
        out_ += fmt::format("  … {} more ranks …\n", ranks_ - most + 1);
        rank = ranks_ - 1;
      }
      out_ += fmt::format("  rank {:<4}", rank);
      for (int c = 0; c < chunks; ++c) {
        if (cell > 1 || c == 0) out_ += " ";
        out_ += held(k, rank, c, cell);
      }
      out_ += elsewhere(k, rank) + "\n";
    }
  }

  std::size_t cell_width() const {
    if (reduces(trace_.shape().what) || trace_.shape().what == Collective::barrier) {
      return spelled() ? static_cast<std::size_t>(std::max(ranks_, 2)) : 1;
    }
    return ranks_ <= 16 ? 2 : 1;
  }

  std::string held(int k, int rank, int chunk, std::size_t cell) const {
    std::size_t at = trace_.chunks(Buffer::output)[chunk];
    int number = trace_.held(k, rank, Buffer::output, at);
    const Value& value = trace_.values()[number];
    int wanted = trace_.wanted(rank, at);
    bool sums = reduces(trace_.shape().what) || trace_.shape().what == Collective::barrier;
    std::string text;
    if (number == 0 && (cell == 1 || !sums)) {
      text = "·";
    } else if (cell == 1) {
      constexpr std::string_view kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
      std::size_t full = trace_.values()[wanted].ranks.size();
      text = number == wanted || full < 2 ? "█" : kBars[std::min<std::size_t>((value.ranks.size() - 1) * 7 / full, 6)];
    } else if (sums) {
      text = contribution_text(value, ranks_);
    } else {
      text = rooted() ? "●" : fmt::format("{}", value.ranks[0]);
    }
    bool changed = k >= 0 && number != trace_.held(k - 1, rank, Buffer::output, at);
    std::string code = number != 0 && number == wanted ? "32" : number == 0 ? "2" : "33";
    return paint(changed ? "1;" + code : code, padded(text, cell));
  }

  // Data on its way, outside the output.
  std::string elsewhere(int k, int rank) const {
    constexpr std::pair<Buffer, std::string_view> kPlaces[] = {
        {Buffer::input, "input"}, {Buffer::scratch, "scratch"}, {Buffer::stage, "stage"}};
    std::string text;
    for (auto [buffer, word] : kPlaces) {
      if (buffer == Buffer::input && k >= 0 && trace_.shape().what == Collective::barrier) continue;
      std::vector<int> values;
      for (std::size_t at = 0; at < trace_.size(buffer); ++at) {
        if (int number = trace_.held(k, rank, buffer, at)) values.push_back(number);
      }
      if (!values.empty()) text += fmt::format("   {}: {}", word, pieces(values));
    }
    return paint("2", text);
  }

  void totals() {
    out_ += "\n";
    std::size_t widest = 0;
    for (const auto& fact : caption_.facts) widest = std::max(widest, columns_of(fact.first));
    for (const auto& [label, text] : caption_.facts) out_ += padded(label, widest) + "  " + text + "\n";
  }

  std::string paint(std::string_view code, const std::string& text) const {
    return style_.color && !text.empty() ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
  }

  const Trace& trace_;
  const Caption& caption_;
  TextStyle style_;
  int ranks_;
  std::string out_;
  bool mixed_ = false;  // this round adds some of what arrives and keeps the rest
};

}  // namespace

std::string draw_text(const Trace& trace, const Caption& caption, const TextStyle& style) {
  return TextDrawing(trace, caption, style).draw();
}

}  // namespace trireme
