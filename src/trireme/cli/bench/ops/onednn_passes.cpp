// oneDNN's passes over numbers.
#include "trireme/cli/bench/ops/onednn.h"

#ifdef TRIREME_HAS_ONEDNN

namespace trireme::bench {
namespace {

constexpr OneDnnOperand kForwardPass[] = {{dnnl_query_src_md, DNNL_ARG_SRC}, {dnnl_query_dst_md, DNNL_ARG_DST}};

std::vector<Contender> onednn_eltwise(std::string_view name, const OpShape& of, ops::Pass pass,
                                      dnnl_alg_kind_t function) {
  static constexpr OneDnnOperand kBackward[] = {{dnnl_query_src_md, DNNL_ARG_SRC},
                                                {dnnl_query_diff_dst_md, DNNL_ARG_DIFF_DST},
                                                {dnnl_query_diff_src_md, DNNL_ARG_DIFF_SRC}};
  const auto& shape = std::get<ops::RowShape>(of);
  const OneDnn& dnn = onednn();
  const dnnl_memory_desc_t rows = plain_rows(shape.rows, shape.channels);
  dnnl_eltwise_desc_t forward, backward;
  if (dnn.dnnl_eltwise_forward_desc_init(&forward, dnnl_forward_training, function, &rows, 0, 0) != dnnl_success ||
      dnn.dnnl_eltwise_backward_desc_init(&backward, function, &rows, &rows, 0, 0) != dnnl_success) {
    return {};
  }
  const dnnl_primitive_desc_t hint = describe_onednn(&forward);
  if (pass == ops::Pass::forward || hint == nullptr) return onednn_contender(name, hint, kForwardPass);
  return onednn_contender(name, describe_onednn(&backward, hint), kBackward);
}

}  // namespace

std::vector<Contender> onednn_relu(const OpShape& shape, ops::Pass pass) {
  return onednn_eltwise("eltwise_relu", shape, pass, dnnl_eltwise_relu);
}

std::vector<Contender> onednn_gelu(const OpShape& shape, ops::Pass pass) {
  return onednn_eltwise("eltwise_gelu_erf", shape, pass, dnnl_eltwise_gelu_erf);
}

std::vector<Contender> onednn_softmax(const OpShape& of, ops::Pass pass) {
  static constexpr OneDnnOperand kBackward[] = {{dnnl_query_dst_md, DNNL_ARG_DST},
                                                {dnnl_query_diff_dst_md, DNNL_ARG_DIFF_DST},
                                                {dnnl_query_diff_src_md, DNNL_ARG_DIFF_SRC}};
  const auto& shape = std::get<ops::RowShape>(of);
  const OneDnn& dnn = onednn();
  const dnnl_memory_desc_t rows = plain_rows(shape.rows, shape.channels);
  dnnl_softmax_desc_t forward, backward;
  if (dnn.dnnl_softmax_forward_desc_init(&forward, dnnl_forward_training, &rows, 1) != dnnl_success ||
      dnn.dnnl_softmax_backward_desc_init(&backward, &rows, &rows, 1) != dnnl_success) {
    return {};
  }
  const dnnl_primitive_desc_t hint = describe_onednn(&forward);
  if (pass == ops::Pass::forward || hint == nullptr) return onednn_contender("softmax", hint, kForwardPass);
  return onednn_contender("softmax", describe_onednn(&backward, hint), kBackward);
}

}  // namespace trireme::bench
#endif
