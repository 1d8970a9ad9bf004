#include "trireme/report/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"

namespace trireme::train {
namespace {

using Json = nlohmann::json;

bool kept(const std::string& line, std::int64_t last) {
  auto value = Json::parse(line, nullptr, false);
  if (!value.is_object()) return false;
  auto step = value.find("step");
  return step == value.end() || !step->is_number_integer() || step->get<std::int64_t>() <= last;
}

// Returns the size of what remains.
std::uint64_t cut_after(const std::filesystem::path& path, std::int64_t last) {
  std::ifstream old(path, std::ios::binary);
  if (!old) return 0;
  AtomicFile file(path);
  std::uint64_t size = 0;
  for (std::string line; std::getline(old, line);) {
    // A line without an end was not written whole.
    if (old.eof() || !kept(line, last)) continue;
    line += '\n';
    file.write(line);
    size += line.size();
  }
  if (old.bad()) throw_write_error(path, EIO);
  file.commit();
  return size;
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path, std::optional<std::int64_t> resumed) : path_(std::move(path)) {
  if (resumed) size_ = cut_after(path_, *resumed);
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (resumed ? 0 : O_TRUNC), 0666);
  if (file_ < 0) throw_write_error(path_, errno);
}

MetricsFile::~MetricsFile() { ::close(file_); }

void MetricsFile::append(const Json& line) {
  auto text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (!write_fully(file_, text.data(), text.size(), size_)) {
    int error = errno;
    if (::ftruncate(file_, static_cast<off_t>(size_)) != 0) error = errno;
    throw_write_error(path_, error);
  }
  size_ += text.size();
}

}  // namespace trireme::train
