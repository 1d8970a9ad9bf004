// oneDNN as a rival in benchmarks: loaded when asked for, in the layouts that it likes best, whose conversion is not
// counted. Where its headers are not there this file is empty.
#pragma once

#if __has_include(<oneapi/dnnl/dnnl.h>)
#define TRIREME_HAS_ONEDNN 1
#include <oneapi/dnnl/dnnl.h>

#include <initializer_list>
#include <span>

#include "trireme/cli/bench/ops/op_family.h"

namespace trireme::bench {

// The functions of the library that are used, by their own names. Throws ConfigError where it cannot be loaded.
struct OneDnn {
  OneDnn();
  void* library;
#define TRIREME_ONEDNN(name) decltype(::name)* name = find<decltype(::name)>(#name)
  TRIREME_ONEDNN(dnnl_version);
  TRIREME_ONEDNN(dnnl_engine_create);
  TRIREME_ONEDNN(dnnl_stream_create);
  TRIREME_ONEDNN(dnnl_stream_wait);
  TRIREME_ONEDNN(dnnl_memory_desc_init_by_tag);
  TRIREME_ONEDNN(dnnl_memory_desc_get_size);
  TRIREME_ONEDNN(dnnl_convolution_forward_desc_init);
  TRIREME_ONEDNN(dnnl_convolution_backward_data_desc_init);
  TRIREME_ONEDNN(dnnl_convolution_backward_weights_desc_init);
  TRIREME_ONEDNN(dnnl_inner_product_forward_desc_init);
  TRIREME_ONEDNN(dnnl_inner_product_backward_data_desc_init);
  TRIREME_ONEDNN(dnnl_inner_product_backward_weights_desc_init);
  TRIREME_ONEDNN(dnnl_softmax_forward_desc_init);
  TRIREME_ONEDNN(dnnl_softmax_backward_desc_init);
  TRIREME_ONEDNN(dnnl_eltwise_forward_desc_init);
  TRIREME_ONEDNN(dnnl_eltwise_backward_desc_init);
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

 private:
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }
  void* symbol(const char* name) const;
};
const OneDnn& onednn();

// f32 in the layout that the primitive likes best, or row by row.
dnnl_memory_desc_t any_layout(std::initializer_list<int64_t> sizes);
dnnl_memory_desc_t plain_rows(int64_t rows, int64_t columns);

// A primitive's tensor: which of its memories, and as which argument.
struct OneDnnOperand {
  dnnl_query_t query;
  int argument;
};
// Of what has weights.
std::span<const OneDnnOperand> weighted_operands(ops::Pass pass);

// `hint`: of the forward pass, for a backward one, which is destroyed; or null. Null where there is no such
// implementation.
dnnl_primitive_desc_t describe_onednn(const void* operation, dnnl_primitive_desc_t hint = nullptr);
// Destroys the description; none where it is null.
std::vector<Contender> onednn_contender(std::string_view implementation, dnnl_primitive_desc_t description,
                                        std::span<const OneDnnOperand> operands);

std::vector<Contender> onednn_conv(const OpShape& shape, ops::Pass pass);     // onednn_layers.cpp
std::vector<Contender> onednn_linear(const OpShape& shape, ops::Pass pass);   // likewise
std::vector<Contender> onednn_softmax(const OpShape& shape, ops::Pass pass);  // onednn_passes.cpp
std::vector<Contender> onednn_relu(const OpShape& shape, ops::Pass pass);     // likewise
std::vector<Contender> onednn_gelu(const OpShape& shape, ops::Pass pass);     // likewise

}  // namespace trireme::bench
#endif
