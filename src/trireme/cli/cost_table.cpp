#include "trireme/cli/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/base/text/size.h"

namespace trireme::cli {
namespace {

constexpr int kNarrow = 96;  // below, names and forms get lines of their own

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string left(std::string text, std::size_t width) {
  std::size_t used = columns_of(text);
  return used < width ? text.append(width - used, ' ') : text;
}

std::string right(const std::string& text, std::size_t width) {
  std::size_t used = columns_of(text);
  return used < width ? std::string(width - used, ' ') + text : text;
}

// 13107200 → "12.5M", 1.1e9 → "1.024G": four digits, powers of 1,024.
std::string size_text(double bytes) {
  constexpr std::string_view kUnits[] = {"", "K", "M", "G", "T", "P"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return fmt::format("{:.4g}{}", bytes, kUnits[unit]);
}

// Whole numbers as they are, others with two digits after the point.
std::string number_text(double value) {
  return value == std::round(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

class Tables {
 public:
  Tables(const std::vector<CostRow>& rows, const CostTableStyle& style) : rows_(rows), style_(style) {}

  std::string draw() {
    comparison();
    forms();
    shared();
    return std::move(out_);
  }

 private:
  bool narrow() const { return style_.width < kNarrow; }
  std::string paint(std::string_view code, const std::string& text) const {
    return style_.color ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
  }
  void heading(const std::string& text) { out_ += (out_.empty() ? "" : "\n") + paint("1", text) + "\n"; }

  // ---- all-reduce: wires, rounds, data, time ----

  void comparison() {
    bool begun = false;
    for (const CostRow& row : rows_) {
      if (row.what() != Collective::all_reduce || row.shared()) continue;
      if (!begun) comparison_head(row.priced.wires);
      begun = true;
      const Count& count = row.priced.count;
      if (row.priced.algorithm) {
        numbers(std::string(row.name()), count.wires, count.rounds, static_cast<double>(count.bytes_per_round),
                static_cast<double>(count.total_bytes), row.seconds_one, row.priced.seconds);
      }
      const ClosedForm& form = *row.priced.form;
      numbers(row.priced.algorithm ? "  formula" : std::string(row.name()), form.wires.value, form.rounds.value,
              form.bytes_per_round.value, form.total_bytes.value, form.time_one.value,
              form.time(row.priced.wires).value);
      note(row);
    }
  }

  void comparison_head(Wires wires) {
    heading("All-reduce by algorithm: counted from the schedule, and by closed form");
    std::string line = left(narrow() ? "" : "algorithm", name_width()) + right("wires", 6) + right("rounds", 8) +
                       right("per round", 11) + right("total", 11);
    if (style_.both) line += right("one wire", 13);
    line += right(wires == Wires::one ? "one wire" : "many wires", 13);
    out_ += paint("2", line) + "\n";
  }

  std::size_t name_width() const { return narrow() ? 2 : 20; }

  void numbers(const std::string& label, double wires, double rounds, double per_round, double total, double one,
               double seconds) {
    std::string line = right(number_text(wires), 6) + right(number_text(rounds), 8) + right(size_text(per_round), 11) +
                       right(size_text(total), 11);
    if (style_.both) line += right(format_seconds(one), 13);
    line += right(format_seconds(seconds), 13);
    bool formula = label.starts_with(' ');
    std::string start = narrow() ? label + "\n" + left("", name_width()) : left(label, name_width());
    out_ += formula ? paint("2", start + line) + "\n" : start + line + "\n";
  }

  // ---- every collective: the form of its time ----

  void forms() {
    const CostRow* last = nullptr;
    for (const CostRow& row : rows_) {
      if (row.shared() || !row.priced.form || !row.priced.algorithm) continue;
      if (!last) {
        heading(fmt::format("Time: closed form, counted, and by formula ({})",
                            row.priced.wires == Wires::one ? "one wire per rank" : "a wire to every peer"));
      }
      if (!last || last->what() != row.what()) out_ += std::string(trireme::name(row.what())) + "\n";
      last = &row;
      const Form& form = row.priced.form->time(row.priced.wires);
      std::string times = right(format_seconds(row.priced.seconds), 12) + right(format_seconds(form.value), 12);
      std::string start = "  " + left(std::string(row.name()), 24);
      if (narrow()) {
        out_ += start + times + "\n    " + paint("2", std::string(form.text)) + "\n";
      } else {
        out_ += start + left(std::string(form.text), 46) + times + "\n";
      }
      if (row.what() != Collective::all_reduce) note(row);
    }
  }

  // ---- shared memory ----

  void shared() {
    const CostRow* last = nullptr;
    for (const CostRow& row : rows_) {
      if (!row.shared()) continue;
      if (!last) {
        heading("On shared memory: traffic of all ranks together, and time");
        out_ += paint("2", left("", 26) + right("rounds", 8) + right("loaded", 12) + right("stored", 12) +
                               right("time", 12)) +
                "\n";
      }
      if (!last || last->what() != row.what()) out_ += std::string(trireme::name(row.what())) + "\n";
      last = &row;
      const Count& count = row.priced.count;
      out_ += "  " + left(std::string(row.name()), 24) + right(fmt::format("{}", count.rounds), 8) +
              right(size_text(static_cast<double>(count.loaded)), 12) +
              right(size_text(static_cast<double>(count.stored)), 12) + right(format_seconds(row.priced.seconds), 12) +
              "\n";
    }
  }

  // Wrapped at the width, indented.
  void note(const CostRow& row) {
    if (row.note.empty()) return;
    std::string line = "    ↳";
    for (std::size_t at = 0; at < row.note.size();) {
      std::size_t end = std::min(row.note.find(' ', at), row.note.size());
      std::string word = row.note.substr(at, end - at);
      if (columns_of(line) + 1 + columns_of(word) > static_cast<std::size_t>(std::max(style_.width, 40))) {
        out_ += paint("33", line) + "\n";
        line = "     ";
      }
      line += " " + word;
      at = end + 1;
    }
    out_ += paint("33", line) + "\n";
  }

  const std::vector<CostRow>& rows_;
  CostTableStyle style_;
  std::string out_;
};

}  // namespace

std::string cost_tables(const std::vector<CostRow>& rows, const CostTableStyle& style) {
  return Tables(rows, style).draw();
}

}  // namespace trireme::cli
