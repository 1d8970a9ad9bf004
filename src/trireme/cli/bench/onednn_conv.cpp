#include "trireme/cli/bench/onednn_conv.h"

#include "trireme/base/error.h"

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <dlfcn.h>
#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <vector>

namespace trireme::bench {
namespace {

constexpr const char* kOneDnn = "libdnnl.so.2";

template <class Function>
Function* symbol(void* library, const char* name) {
  void* const at = dlsym(library, name);
  if (at == nullptr) throw ConfigError(fmt::format("--peers onednn: {} has no {}; another version?", kOneDnn, name));
  return reinterpret_cast<Function*>(at);
}

// The functions of the library that are used, by their own names.
struct OneDnn {
#define TRIREME_ONEDNN(name) decltype(::name)* name = symbol<decltype(::name)>(library, #name)
  void* library = open();
  TRIREME_ONEDNN(dnnl_engine_create);
  TRIREME_ONEDNN(dnnl_stream_create);
  TRIREME_ONEDNN(dnnl_stream_wait);
  TRIREME_ONEDNN(dnnl_memory_desc_init_by_tag);
  TRIREME_ONEDNN(dnnl_memory_desc_get_size);
  TRIREME_ONEDNN(dnnl_convolution_forward_desc_init);
  TRIREME_ONEDNN(dnnl_convolution_backward_data_desc_init);
  TRIREME_ONEDNN(dnnl_convolution_backward_weights_desc_init);
  TRIREME_ONEDNN(dnnl_primitive_desc_create);
  TRIREME_ONEDNN(dnnl_primitive_desc_destroy);
  TRIREME_ONEDNN(dnnl_primitive_desc_query);
  TRIREME_ONEDNN(dnnl_primitive_desc_query_md);
  TRIREME_ONEDNN(dnnl_primitive_create);
  TRIREME_ONEDNN(dnnl_primitive_destroy);
  TRIREME_ONEDNN(dnnl_primitive_execute);
  TRIREME_ONEDNN(dnnl_memory_create);
  TRIREME_ONEDNN(dnnl_memory_destroy);
  TRIREME_ONEDNN(dnnl_memory_get_data_handle);
#undef TRIREME_ONEDNN
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;

  OneDnn() {
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success) {
      throw ConfigError("--peers onednn: oneDNN finds no CPU to run on");
    }
  }

 private:
  static void* open() {
    if (void* const library = dlopen(kOneDnn, RTLD_NOW)) return library;
    throw ConfigError(fmt::format("--peers onednn: cannot load {}; install libdnnl2", kOneDnn));
  }
};

const OneDnn& onednn() {
  static const OneDnn library;
  return library;
}

// What a pass reads and writes: which of the primitive's memories, and as which argument.
struct Operand {
  dnnl_query_t query;
  int argument;
};
std::vector<Operand> operands_of(ops::Pass pass) {
  if (pass == ops::Pass::forward) {
    return {{dnnl_query_src_md, DNNL_ARG_SRC},
            {dnnl_query_weights_md, DNNL_ARG_WEIGHTS},
            {dnnl_query_dst_md, DNNL_ARG_DST}};
  }
  if (pass == ops::Pass::data) {
    return {{dnnl_query_diff_src_md, DNNL_ARG_DIFF_SRC},
            {dnnl_query_weights_md, DNNL_ARG_WEIGHTS},
            {dnnl_query_diff_dst_md, DNNL_ARG_DIFF_DST}};
  }
  return {{dnnl_query_src_md, DNNL_ARG_SRC},
          {dnnl_query_diff_weights_md, DNNL_ARG_DIFF_WEIGHTS},
          {dnnl_query_diff_dst_md, DNNL_ARG_DIFF_DST}};
}

// Null where there is no such implementation.
dnnl_primitive_desc_t describe(const ops::ConvShape& it, ops::Pass pass, dnnl_alg_kind_t algorithm) {
  const OneDnn& dnn = onednn();
  const auto any = [&](std::initializer_list<int64_t> sizes) {
    dnnl_dims_t dims{};
    std::ranges::copy(sizes, dims);
    dnnl_memory_desc_t memory;
    dnn.dnnl_memory_desc_init_by_tag(&memory, static_cast<int>(sizes.size()), dims, dnnl_f32, dnnl_format_tag_any);
    return memory;
  };
  const dnnl_memory_desc_t input = any({it.batch, it.in_channels, it.height, it.width});
  const dnnl_memory_desc_t weight = any({it.out_channels, it.in_channels, it.kernel[0], it.kernel[1]});
  const dnnl_memory_desc_t output = any({it.batch, it.out_channels, it.out_height(), it.out_width()});
  const dnnl_dims_t strides{it.stride[0], it.stride[1]}, before{it.padding[0], it.padding[1]};
  const dnnl_dims_t after{(it.out_height() - 1) * it.stride[0] + it.kernel[0] - it.height - it.padding[0],
                          (it.out_width() - 1) * it.stride[1] + it.kernel[1] - it.width - it.padding[1]};
  dnnl_convolution_desc_t forward, backward;
  dnnl_primitive_desc_t made = nullptr, hint = nullptr;
  if (dnn.dnnl_convolution_forward_desc_init(&forward, dnnl_forward_training, algorithm, &input, &weight, nullptr,
                                             &output, strides, before, after) != dnnl_success ||
      dnn.dnnl_primitive_desc_create(&hint, &forward, nullptr, dnn.engine, nullptr) != dnnl_success) {
    return nullptr;
  }
  if (pass == ops::Pass::forward) return hint;
  const dnnl_status_t status =
      pass == ops::Pass::data ? dnn.dnnl_convolution_backward_data_desc_init(&backward, algorithm, &input, &weight,
                                                                             &output, strides, before, after)
                              : dnn.dnnl_convolution_backward_weights_desc_init(
                                    &backward, algorithm, &input, &weight, nullptr, &output, strides, before, after);
  if (status == dnnl_success) dnn.dnnl_primitive_desc_create(&made, &backward, nullptr, dnn.engine, hint);
  dnn.dnnl_primitive_desc_destroy(hint);
  return made;
}

class LoadedConv final : public OneDnnConv {
 public:
  LoadedConv(dnnl_primitive_desc_t description, ops::Pass pass) {
    const OneDnn& dnn = onednn();
    for (const auto& [query, argument] : operands_of(pass)) {
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
  ~LoadedConv() override {
    for (const dnnl_exec_arg_t& argument : arguments_) onednn().dnnl_memory_destroy(argument.memory);
    onednn().dnnl_primitive_destroy(primitive_);
  }
  LoadedConv(const LoadedConv&) = delete;
  LoadedConv& operator=(const LoadedConv&) = delete;

  void run() override {
    const OneDnn& dnn = onednn();
    dnn.dnnl_primitive_execute(primitive_, dnn.stream, static_cast<int>(arguments_.size()), arguments_.data());
    dnn.dnnl_stream_wait(dnn.stream);
  }
  int64_t workspace() const override { return workspace_; }

 private:
  dnnl_primitive_t primitive_ = nullptr;
  std::vector<dnnl_exec_arg_t> arguments_;
  int64_t workspace_ = 0;
};

}  // namespace

std::unique_ptr<OneDnnConv> make_onednn_conv(const ops::ConvShape& shape, ops::Pass pass, std::string_view algorithm) {
  onednn();
  if (shape.groups != 1 || shape.dilation != std::array<int64_t, 2>{1, 1}) return nullptr;
  const dnnl_alg_kind_t kind = algorithm == kOneDnnAlgorithms[1] ? dnnl_convolution_winograd : dnnl_convolution_direct;
  const dnnl_primitive_desc_t description = describe(shape, pass, kind);
  return description == nullptr ? nullptr : std::make_unique<LoadedConv>(description, pass);
}

}  // namespace trireme::bench

#else

namespace trireme::bench {

std::unique_ptr<OneDnnConv> make_onednn_conv(const ops::ConvShape&, ops::Pass, std::string_view) {
  throw ConfigError(
      "--peers onednn: this program was built without oneDNN's headers; run ./trireme packages peers, then build "
      "again");
}

}  // namespace trireme::bench
#endif
