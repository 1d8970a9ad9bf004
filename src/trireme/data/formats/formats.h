// The formats, one file each: `is_…` tells from the names of the files, `open_…` reads them or throws DataError.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data/open.h"

namespace trireme::data {

using Path = std::filesystem::path;

bool is_idx(const Path& path);
Splits open_idx(const Path& folder, const OpenOptions& options);
// With the names of the classes; a label beyond them is an error.
Splits open_idx_as(const Path& folder, const OpenOptions& options, std::vector<std::string> labels);

bool is_cifar(const Path& path);
Splits open_cifar(const Path& folder, const OpenOptions& options);

bool is_image_folder(const Path& path);
Splits open_image_folder(const Path& folder, const OpenOptions& options);

bool is_npz(const Path& path);
Splits open_npz(const Path& path, const OpenOptions& options);
bool is_npy(const Path& path);
Splits open_npy(const Path& path, const OpenOptions& options);

bool is_csv(const Path& path);
Splits open_csv(const Path& path, const OpenOptions& options);

bool is_text(const Path& path);
Splits open_text(const Path& path, const OpenOptions& options);

bool is_synthetic(std::string_view spec);
Splits open_synthetic(std::string_view spec, const OpenOptions& options);

// The named ones, named.cpp.
Splits open_fashion_mnist(std::string_view name, const OpenOptions& options);
Splits open_mnist(std::string_view name, const OpenOptions& options);
Splits open_cifar10(std::string_view name, const OpenOptions& options);
Splits open_corpus(std::string_view name, const OpenOptions& options);

}  // namespace trireme::data
