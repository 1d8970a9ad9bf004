#include "trireme/data/open.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "trireme/base/error.h"
#include "trireme/base/registry.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/data/formats/formats.h"

namespace trireme::data {
namespace {

template <bool (*Is)(const Path&)>
bool takes(std::string_view spec) {
  return Is(Path(spec));
}

template <Splits (*Open)(const Path&, const OpenOptions&)>
Splits path(std::string_view spec, const OpenOptions& options) {
  return Open(Path(spec), options);
}

// The first that takes a name or path opens it; names come before formats.
Registry<Source>& registry() {
  static const Source kBuiltIn[] = {
      {"fashion-mnist", "60,000 and 10,000 grey images of clothes, 28x28, 10 classes", nullptr, open_fashion_mnist,
       "apt install dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist"},
      {"mnist", "60,000 and 10,000 grey images of digits, 28x28, 10 classes", nullptr, open_mnist,
       "trireme data get mnist"},
      {"cifar10", "50,000 and 10,000 colour images of things, 32x32, 10 classes", nullptr, open_cifar10,
       "trireme data get cifar10"},
      {"sotu",
       "text: speeches of the presidents on the State of the Union, 10.8 MB",
       nullptr,
       open_corpus,
       "trireme data get sotu",
       {},
       kLength | kTestFraction},
      {"moby-dick",
       "text: the novel, 1.2 MB",
       nullptr,
       open_corpus,
       "trireme data get moby-dick",
       {},
       kLength | kTestFraction},
      {"synthetic:SHAPE",
       "made up: synthetic:3x32x32,classes=10,samples=50000 or synthetic:text,vocabulary=256",
       is_synthetic,
       open_synthetic,
       {},
       {},
       kLength},
      {"FOLDER of IDX", "train-images-idx3-ubyte, train-labels-idx1-ubyte, the same with t10k-; plain or .gz",
       takes<is_idx>, path<open_idx>},
      {"FOLDER of CIFAR", "data_batch_*.bin and test_batch.bin", takes<is_cifar>, path<open_cifar>},
      {"FOLDER of arrays",
       "x_train.npy, y_train.npy, perhaps x_test.npy, y_test.npy",
       takes<is_npy>,
       path<open_npy>,
       {},
       {},
       kTestFraction},
      {"FOLDER of images",
       "train/CLASS/*.png or .jpg, test/CLASS/…; or only CLASS/…",
       takes<is_image_folder>,
       path<open_image_folder>,
       {},
       {},
       kImageSize | kTestFraction},
      {"FILE.npz",
       "arrays x_train, y_train, perhaps x_test, y_test",
       takes<is_npz>,
       path<open_npz>,
       {},
       {},
       kTestFraction},
      {"FILE.csv",
       "numbers and a class, or a number to predict, by default in the last column",
       takes<is_csv>,
       path<open_csv>,
       {},
       {},
       kLabelColumn | kTestFraction},
      {"FILE.txt",
       "UTF-8 text, to predict the next symbol",
       takes<is_text>,
       path<open_text>,
       {},
       {},
       kLength | kTestFraction},
  };
  static Registry<Source> all("data set", {std::begin(kBuiltIn), std::end(kBuiltIn)});
  return all;
}

}  // namespace

std::span<const Source> sources() { return registry().all(); }
void add_source(Source source) { registry().add(std::move(source)); }

const Source* find_source(std::string_view spec) {
  for (const auto& source : sources()) {
    if (source.takes ? source.takes(spec) : source.name == spec) return &source;
  }
  return nullptr;
}

Splits open(std::string_view spec, const OpenOptions& options) {
  std::error_code error;
  if (const auto* source = find_source(spec)) {
    if (!source->get.empty() && !std::filesystem::is_directory(folder_of(source->name, options), error)) {
      throw DataError(fmt::format("{} is not here: no folder {}; `{}` brings it", source->name,
                                  folder_of(source->name, options).string(), source->get));
    }
    return source->open(spec, options);
  }
  if (std::filesystem::exists(Path(spec), error)) {
    throw DataError(fmt::format("{}: not a data set in any known format; `trireme data list` shows them", spec));
  }
  if (spec.find_first_of("/.") != std::string_view::npos) {
    throw DataError(fmt::format("{}: no such file or folder", spec));
  }
  std::vector<std::string_view> names;
  for (const auto& source : sources()) {
    if (!source.takes) names.push_back(source.name);
  }
  const auto all = fmt::format("{}, synthetic:SHAPE, or a path", fmt::join(names, ", "));
  names.push_back("synthetic");
  throw ConfigError(fmt::format("no data set '{}': {}there are {}", clipped(spec),
                                did_you_mean(spec.substr(0, spec.find(':')), names), all));
}

std::filesystem::path folder_of(std::string_view name, const OpenOptions& options) {
  if (!options.root.empty()) return Path(options.root) / name;
  for (const auto& source : sources()) {
    if (source.name == name && !source.folder.empty()) return source.folder;
  }
  return cache_folder() / name;
}

std::filesystem::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return Path(value == nullptr ? "" : value);
  };
  if (const auto cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "trireme" / "data";
  const auto home = variable("HOME");
  return (home.empty() ? Path("/tmp") : home / ".cache") / "trireme" / "data";
}

}  // namespace trireme::data
