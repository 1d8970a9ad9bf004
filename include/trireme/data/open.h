// Opens a data set by name or by path; the list of sources drives `--help`, `trireme data list` and the tests.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "trireme/data/dataset.h"

namespace trireme::data {

// What the targets of a data set are taken for.
enum class Targets {
  as_given,  // classes, but for arrays of floats with fractions: those are values
  classes,
  values,    // numbers to predict, for regression
  zero_one,  // values, each 0 or 1
};

struct OpenOptions {
  std::string root;  // where the named data sets lie, as root/NAME; empty: where each is installed or fetched
  std::int64_t image_size = 0;  // image folders: cut to a square and scaled to this; 0: all images have one size
  double test_fraction = 0.1;   // of what comes without a test part; text gives its end, the rest is drawn by seed
  std::string label_column;     // CSV: a name or a number from 1; empty: the last
  std::int64_t length = 64;     // text: symbols in a sequence
  bool augment = false;         // images: draw() shifts and mirrors at random, by (seed, epoch, index)
  std::uint64_t seed = 1;       // of augmentation and of the split
  // Formats that have classes only ignore it: Shape::values of what was opened says what came of it.
  Targets targets = Targets::as_given;

  bool wants_values() const { return targets == Targets::values || targets == Targets::zero_one; }
};

// Which of the options mean something for a source.
enum Heeds : unsigned { kNone = 0, kImageSize = 1, kLabelColumn = 2, kLength = 4, kTestFraction = 8 };

// One line of the list.
struct Source {
  std::string_view name;  // as written on the command line
  std::string_view what;
  std::function<bool(std::string_view spec)> takes;  // empty: the name and nothing else
  std::function<Splits(std::string_view spec, const OpenOptions& options)> open;
  std::string_view get = {};     // the command that brings what is not here; empty: nothing to bring
  std::string_view folder = {};  // where that command puts it; empty: the cache folder
  unsigned heeds = kNone;        // of Heeds
};

std::span<const Source> sources();
// One more, before any is opened. Throws ConfigError for a name that is taken.
void add_source(Source source);
// The one that opens this; null where none does.
const Source* find_source(std::string_view spec);

// Throws ConfigError for a name nobody knows, DataError naming file and place for what is missing or broken.
Splits open(std::string_view spec, const OpenOptions& options = {});

// ${XDG_CACHE_HOME:-~/.cache}/trireme/data, where `trireme data get` puts what it fetches.
std::filesystem::path cache_folder();

// The folder in which the named set is looked for.
std::filesystem::path folder_of(std::string_view name, const OpenOptions& options = {});

}  // namespace trireme::data
