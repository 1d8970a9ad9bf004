// What each fetched package is turned into; `package` is its unpacked folder, `to` an empty one.
#pragma once
#include <filesystem>

namespace trireme::data {

void convert_mnist(const std::filesystem::path& package, const std::filesystem::path& to);
// Six PNGs of 1024 pixels a row, one 32x32 image each, and the labels as JSON become CIFAR's binary form.
void convert_cifar10(const std::filesystem::path& package, const std::filesystem::path& to);
// The chapters, or the speeches by year, one after another.
void convert_sotu(const std::filesystem::path& package, const std::filesystem::path& to);
void convert_moby_dick(const std::filesystem::path& package, const std::filesystem::path& to);

}  // namespace trireme::data
