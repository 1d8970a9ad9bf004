// Looking at the system's BLAS in a child process: what it picks is fixed once it is loaded, and kernels that the CPU
// does not have end whoever calls them.
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "trireme/base/hardware/blas_core.h"

namespace trireme {
namespace {

using Text = char* (*)();
using Sgemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                       const int*, const float*, const int*, const float*, float*, const int*);

struct Answer {  // crosses the pipe as it is
  std::array<char, 512> library, config;
  std::array<char, 64> core;
  double gflops;
};

// Of products as training has them: a square one, and a narrow one with the first factor transposed.
double measured_gflops(Sgemm sgemm) {
  using Clock = std::chrono::steady_clock;
  constexpr int kSide = 512, kNarrow = 64, kRepeats = 4;
  const std::vector<float> a(kSide * kSide, 0.5F), b(kSide * kSide, 0.25F);
  std::vector<float> c(kSide * kSide);
  const float one = 1, zero = 0;
  double seconds = 0, operations = 0;
  for (const int columns : {kSide, kNarrow}) {
    double fastest = 1e9;
    for (int k = 0; k < kRepeats; ++k) {
      const auto begin = Clock::now();
      sgemm(columns == kSide ? "N" : "T", "N", &kSide, &columns, &kSide, &one, a.data(), &kSide, b.data(), &kSide,
            &zero, c.data(), &kSide);
      fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    const double weight = columns == kSide ? 1 : 8;  // both count as much
    seconds += weight * fastest;
    operations += weight * 2.0 * kSide * kSide * columns;
  }
  return operations / seconds / 1e9;
}

template <std::size_t N>
void copy_text(std::array<char, N>& to, const char* text) {
  std::snprintf(to.data(), N, "%s", text == nullptr ? "" : text);
}

[[noreturn]] void answer_and_end(int out, const std::string& core, bool measure) {
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  if (core.empty()) {
    unsetenv("OPENBLAS_CORETYPE");
  } else {
    setenv("OPENBLAS_CORETYPE", core.c_str(), 1);
  }
  void* library = dlopen("libblas.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) _exit(1);
  const auto corename = reinterpret_cast<Text>(dlsym(library, "openblas_get_corename"));
  const auto config = reinterpret_cast<Text>(dlsym(library, "openblas_get_config"));
  const auto sgemm = reinterpret_cast<Sgemm>(dlsym(library, "sgemm_"));
  Dl_info place{};
  if (corename == nullptr || config == nullptr || sgemm == nullptr) _exit(1);
  if (dladdr(reinterpret_cast<void*>(corename), &place) == 0) _exit(1);
  Answer answer{};
  copy_text(answer.library, place.dli_fname);
  copy_text(answer.config, config());
  copy_text(answer.core, corename());
  if (measure) answer.gflops = measured_gflops(sgemm);
  _exit(write(out, &answer, sizeof answer) == static_cast<ssize_t>(sizeof answer) ? 0 : 1);
}

}  // namespace

std::optional<BlasProbe> probe_blas(const std::string& core, bool measure) {
  constexpr int kPatience_ms = 1000;
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    answer_and_end(ends[1], core, measure);
  }
  close(ends[1]);
  Answer answer{};
  bool whole = false;
  if (child > 0) {
    pollfd wait{ends[0], POLLIN, 0};
    whole = poll(&wait, 1, kPatience_ms) > 0 &&
            read(ends[0], &answer, sizeof answer) == static_cast<ssize_t>(sizeof answer);
    kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  if (!whole) return std::nullopt;
  return BlasProbe{answer.library.data(), answer.config.data(), answer.core.data(), answer.gflops};
}

std::string blas_in_use() {
  const auto text = [](const char* name) { return reinterpret_cast<Text>(dlsym(RTLD_DEFAULT, name)); };
  if (const auto config = text("openblas_get_config"), core = text("openblas_get_corename"); config && core) {
    const std::string all = config();  // "OpenBLAS 0.3.21 …"
    const auto words = all.find(' ', all.find(' ') + 1);
    return all.substr(0, words) + ", " + core();
  }
  using Version = void (*)(char*, int);
  if (const auto version = reinterpret_cast<Version>(dlsym(RTLD_DEFAULT, "mkl_serv_get_version_string"))) {
    std::array<char, 256> all{};
    version(all.data(), static_cast<int>(all.size()) - 1);
    const std::string line = all.data();  // "… Math Kernel Library Version 2024.2-Product Build …"
    const auto begin = line.find_first_of("0123456789");
    return begin == line.npos ? "MKL"
                              : "MKL " + line.substr(begin, line.find_first_not_of("0123456789.", begin) - begin);
  }
  return dlsym(RTLD_DEFAULT, "sgemm_") != nullptr ? "unknown" : "none";
}

}  // namespace trireme
