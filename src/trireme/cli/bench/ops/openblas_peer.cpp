// OpenBLAS's matrix product, loaded when asked for.
#include <dlfcn.h>
#include <fmt/format.h>

#include <memory>

#include "trireme/base/error.h"
#include "trireme/cli/bench/ops/op_peer.h"
#include "trireme/cli/bench/ops/op_text.h"
#include "trireme/ops/parallel.h"

namespace trireme::bench {
namespace {

constexpr const char* kOpenBlas = "libopenblas.so.0";
// Of cblas.h.
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;

struct OpenBlas {
  using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                         const float* b, int ldb, float beta, float* c, int ldc);
  Sgemm sgemm = nullptr;
  void (*set_threads)(int) = nullptr;
  std::string version;  // "OpenBLAS 0.3.21, SkylakeX"

  OpenBlas() {
    void* const library = dlopen(kOpenBlas, RTLD_NOW);
    if (library == nullptr) {
      throw ConfigError(fmt::format("--peers openblas: cannot load {}; install libopenblas0-pthread", kOpenBlas));
    }
    sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
    set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
    if (sgemm == nullptr || set_threads == nullptr) {
      throw ConfigError(fmt::format("--peers openblas: {} has no cblas_sgemm; another library?", kOpenBlas));
    }
    set_threads(ops::threads());
    const auto text_of = [&](const char* name) {
      const auto function = reinterpret_cast<const char* (*)()>(dlsym(library, name));
      return std::string(function != nullptr ? function() : "");
    };
    const std::string config = text_of("openblas_get_config");  // "OpenBLAS 0.3.21 NO_LAPACKE …"
    version = fmt::format("{}, {}", config.substr(0, config.find(' ', config.find(' ') + 1)),
                          text_of("openblas_get_corename"));
  }
};

const OpenBlas& openblas() {
  static const OpenBlas library;
  return library;
}

std::vector<Contender> openblas_linear(const OpShape& of, ops::Pass pass) {
  struct Data {
    ops::AlignedFloats x, weight, y;
  };
  const auto& at = std::get<LinearShape>(of);
  const auto data =
      std::make_shared<Data>(Data{some_numbers(at.m * at.k), some_numbers(at.n * at.k), some_numbers(at.m * at.n)});
  const auto sgemm = openblas().sgemm;
  const int m = static_cast<int>(at.m), n = static_cast<int>(at.n), k = static_cast<int>(at.k);
  if (pass == ops::Pass::forward) {
    return {{"cblas_sgemm", 0, [=] {
               sgemm(kRowMajor, kNoTrans, kTrans, m, n, k, 1, data->x.data(), k, data->weight.data(), k, 0,
                     data->y.data(), n);
             }}};
  }
  if (pass == ops::Pass::data) {
    return {{"cblas_sgemm", 0, [=] {
               sgemm(kRowMajor, kNoTrans, kNoTrans, m, k, n, 1, data->y.data(), n, data->weight.data(), k, 0,
                     data->x.data(), k);
             }}};
  }
  return {{"cblas_sgemm", 0, [=] {
             sgemm(kRowMajor, kTrans, kNoTrans, n, k, m, 1, data->y.data(), n, data->x.data(), k, 0,
                   data->weight.data(), k);
           }}};
}

}  // namespace

OpPeer openblas_peer() {
  return {.name = "openblas",
          .what = "cblas_sgemm of OpenBLAS",
          .require = [] { openblas(); },
          .version = [] { return openblas().version; },
          .operators = {{"matmul", openblas_linear}}};
}

}  // namespace trireme::bench
