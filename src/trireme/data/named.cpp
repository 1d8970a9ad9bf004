// The named data sets: each is a format in a known folder, with the names of its classes.
#include "trireme/data/formats/formats.h"

namespace trireme::data {
namespace {

Splits renamed(Splits splits, std::string_view name) {
  splits.name = name;
  return splits;
}

}  // namespace

Splits open_fashion_mnist(std::string_view name, const OpenOptions& options) {
  return renamed(open_idx_as(folder_of(name, options), options,
                             {"t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
                              "ankle boot"}),
                 name);
}

Splits open_mnist(std::string_view name, const OpenOptions& options) {
  return renamed(open_idx_as(folder_of(name, options), options, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}),
                 name);
}

Splits open_cifar10(std::string_view name, const OpenOptions& options) {
  return renamed(open_cifar(folder_of(name, options), options), name);
}

Splits open_corpus(std::string_view name, const OpenOptions& options) {
  return renamed(open_text(folder_of(name, options) / (std::string(name) + ".txt"), options), name);
}

}  // namespace trireme::data
