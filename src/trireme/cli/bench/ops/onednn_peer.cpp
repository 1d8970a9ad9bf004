#include "trireme/base/error.h"
#include "trireme/cli/bench/ops/onednn.h"
#include "trireme/cli/bench/ops/op_peer.h"

#ifdef TRIREME_HAS_ONEDNN
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace trireme::bench {
namespace {

constexpr const char* kOneDnn = "libdnnl.so.2";

void* open_onednn() {
  if (void* const library = dlopen(kOneDnn, RTLD_NOW)) return library;
  throw ConfigError(fmt::format("--peers onednn: cannot load {}; install libdnnl2", kOneDnn));
}

class OneDnnPrimitive {
 public:
  OneDnnPrimitive(dnnl_primitive_desc_t description, std::span<const OneDnnOperand> operands) {
    const OneDnn& dnn = onednn();
    for (const auto& [query, argument] : operands) {
      const dnnl_memory_desc_t* const layout = dnn.dnnl_primitive_desc_query_md(description, query, 0);
      dnnl_memory_t memory = nullptr;
      if (dnn.dnnl_memory_create(&memory, layout, dnn.engine, DNNL_MEMORY_ALLOCATE) != dnnl_success)
        throw Error("oneDNN cannot allocate the tensors");
      arguments_.push_back({argument, memory});
      void* data = nullptr;
      dnn.dnnl_memory_get_data_handle(memory, &data);
      std::fill_n(static_cast<float*>(data), dnn.dnnl_memory_desc_get_size(layout) / sizeof(float), 0.5f);
    }
    dnn.dnnl_primitive_desc_query(description, dnnl_query_memory_consumption_s64, 0, &workspace_);
    const dnnl_status_t status = dnn.dnnl_primitive_create(&primitive_, description);
    dnn.dnnl_primitive_desc_destroy(description);
    if (status != dnnl_success) throw Error("oneDNN cannot make the primitive that it described");
  }
  ~OneDnnPrimitive() {
    for (const dnnl_exec_arg_t& argument : arguments_) onednn().dnnl_memory_destroy(argument.memory);
    onednn().dnnl_primitive_destroy(primitive_);
  }
  OneDnnPrimitive(const OneDnnPrimitive&) = delete;
  OneDnnPrimitive& operator=(const OneDnnPrimitive&) = delete;

  void run() const {
    const OneDnn& dnn = onednn();
    dnn.dnnl_primitive_execute(primitive_, dnn.stream, static_cast<int>(arguments_.size()), arguments_.data());
    dnn.dnnl_stream_wait(dnn.stream);
  }
  int64_t workspace() const { return workspace_; }

 private:
  dnnl_primitive_t primitive_ = nullptr;
  std::vector<dnnl_exec_arg_t> arguments_;
  int64_t workspace_ = 0;
};

}  // namespace

OneDnn::OneDnn() : library(open_onednn()) {
  if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
      dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success) {
    throw ConfigError("--peers onednn: oneDNN finds no CPU to run on");
  }
}

void* OneDnn::symbol(const char* name) const {
  void* const at = dlsym(library, name);
  if (at == nullptr) throw ConfigError(fmt::format("--peers onednn: {} has no {}; another version?", kOneDnn, name));
  return at;
}

const OneDnn& onednn() {
  static const OneDnn library;
  return library;
}

namespace {

dnnl_memory_desc_t onednn_layout(std::initializer_list<int64_t> sizes, dnnl_format_tag_t tag) {
  dnnl_dims_t dims{};
  std::ranges::copy(sizes, dims);
  dnnl_memory_desc_t memory;
  onednn().dnnl_memory_desc_init_by_tag(&memory, static_cast<int>(sizes.size()), dims, dnnl_f32, tag);
  return memory;
}

}  // namespace

dnnl_memory_desc_t any_layout(std::initializer_list<int64_t> sizes) {
  return onednn_layout(sizes, dnnl_format_tag_any);
}
dnnl_memory_desc_t plain_rows(int64_t rows, int64_t columns) { return onednn_layout({rows, columns}, dnnl_ab); }

std::span<const OneDnnOperand> weighted_operands(ops::Pass pass) {
  static constexpr OneDnnOperand kForward[] = {
      {dnnl_query_src_md, DNNL_ARG_SRC}, {dnnl_query_weights_md, DNNL_ARG_WEIGHTS}, {dnnl_query_dst_md, DNNL_ARG_DST}};
  static constexpr OneDnnOperand kData[] = {{dnnl_query_diff_src_md, DNNL_ARG_DIFF_SRC},
                                            {dnnl_query_weights_md, DNNL_ARG_WEIGHTS},
                                            {dnnl_query_diff_dst_md, DNNL_ARG_DIFF_DST}};
  static constexpr OneDnnOperand kWeights[] = {{dnnl_query_src_md, DNNL_ARG_SRC},
                                               {dnnl_query_diff_weights_md, DNNL_ARG_DIFF_WEIGHTS},
                                               {dnnl_query_diff_dst_md, DNNL_ARG_DIFF_DST}};
  if (pass == ops::Pass::forward) return kForward;
  if (pass == ops::Pass::data) return kData;
  return kWeights;
}

dnnl_primitive_desc_t describe_onednn(const void* operation, dnnl_primitive_desc_t hint) {
  const OneDnn& dnn = onednn();
  dnnl_primitive_desc_t made = nullptr;
  const dnnl_status_t status = dnn.dnnl_primitive_desc_create(&made, operation, nullptr, dnn.engine, hint);
  if (hint != nullptr) dnn.dnnl_primitive_desc_destroy(hint);
  return status == dnnl_success ? made : nullptr;
}

std::vector<Contender> onednn_contender(std::string_view implementation, dnnl_primitive_desc_t description,
                                        std::span<const OneDnnOperand> operands) {
  if (description == nullptr) return {};
  const auto it = std::make_shared<OneDnnPrimitive>(description, operands);
  return {{std::string(implementation), it->workspace(), [it] { it->run(); }}};
}

OpPeer onednn_peer() {
  return {.name = "onednn",
          .what = "oneDNN's primitives, in their own layouts",
          .require = [] { onednn(); },
          .version =
              [] {
                const dnnl_version_t& it = *onednn().dnnl_version();
                return fmt::format("oneDNN {}.{}.{}", it.major, it.minor, it.patch);
              },
          .operators = {{"conv", onednn_conv},
                        {"matmul", onednn_linear},
                        {"softmax", onednn_softmax},
                        {"relu", onednn_relu},
                        {"gelu", onednn_gelu}}};
}

}  // namespace trireme::bench

#else

namespace trireme::bench {

OpPeer onednn_peer() {
  return {.name = "onednn",
          .what = "oneDNN's primitives, in their own layouts",
          .require =
              [] {
                throw ConfigError(
                    "--peers onednn: this program was built without oneDNN's headers; run ./trireme packages peers, "
                    "then build again");
              },
          .version = [] { return std::string(); },
          .operators = {}};
}

}  // namespace trireme::bench
#endif
