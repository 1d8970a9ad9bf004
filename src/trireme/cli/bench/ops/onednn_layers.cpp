// oneDNN's convolution and inner product.
#include "trireme/cli/bench/ops/onednn.h"

#ifdef TRIREME_HAS_ONEDNN
#include <algorithm>

namespace trireme::bench {
namespace {

// Null where there is no such implementation.
dnnl_primitive_desc_t describe_conv(const ops::ConvShape& it, ops::Pass pass, dnnl_alg_kind_t algorithm) {
  const OneDnn& dnn = onednn();
  const dnnl_memory_desc_t input = any_layout({it.batch, it.in_channels, it.height, it.width});
  const dnnl_memory_desc_t weight = any_layout({it.out_channels, it.in_channels, it.kernel[0], it.kernel[1]});
  const dnnl_memory_desc_t output = any_layout({it.batch, it.out_channels, it.out_height(), it.out_width()});
  const dnnl_dims_t strides{it.stride[0], it.stride[1]}, before{it.padding[0], it.padding[1]};
  const dnnl_dims_t after{(it.out_height() - 1) * it.stride[0] + it.kernel[0] - it.height - it.padding[0],
                          (it.out_width() - 1) * it.stride[1] + it.kernel[1] - it.width - it.padding[1]};
  dnnl_convolution_desc_t forward, backward;
  if (dnn.dnnl_convolution_forward_desc_init(&forward, dnnl_forward_training, algorithm, &input, &weight, nullptr,
                                             &output, strides, before, after) != dnnl_success) {
    return nullptr;
  }
  const dnnl_primitive_desc_t hint = describe_onednn(&forward);
  if (pass == ops::Pass::forward || hint == nullptr) return hint;
  const dnnl_status_t status =
      pass == ops::Pass::data ? dnn.dnnl_convolution_backward_data_desc_init(&backward, algorithm, &input, &weight,
                                                                             &output, strides, before, after)
                              : dnn.dnnl_convolution_backward_weights_desc_init(
                                    &backward, algorithm, &input, &weight, nullptr, &output, strides, before, after);
  if (status == dnnl_success) return describe_onednn(&backward, hint);
  dnn.dnnl_primitive_desc_destroy(hint);
  return nullptr;
}

}  // namespace

std::vector<Contender> onednn_conv(const OpShape& of, ops::Pass pass) {
  const auto& shape = std::get<ops::ConvShape>(of);
  std::vector<Contender> all;
  if (shape.groups != 1 || shape.dilation != std::array<int64_t, 2>{1, 1}) return all;
  for (const auto& [name, algorithm] : {std::pair{"convolution_direct", dnnl_convolution_direct},
                                        std::pair{"convolution_winograd", dnnl_convolution_winograd}}) {
    std::ranges::move(onednn_contender(name, describe_conv(shape, pass, algorithm), weighted_operands(pass)),
                      std::back_inserter(all));
  }
  return all;
}

std::vector<Contender> onednn_linear(const OpShape& of, ops::Pass pass) {
  const auto& at = std::get<LinearShape>(of);
  const OneDnn& dnn = onednn();
  const dnnl_memory_desc_t x = any_layout({at.m, at.k}), weight = any_layout({at.n, at.k}),
                           y = any_layout({at.m, at.n});
  dnnl_inner_product_desc_t forward, backward;
  if (dnn.dnnl_inner_product_forward_desc_init(&forward, dnnl_forward_training, &x, &weight, nullptr, &y) !=
      dnnl_success) {
    return {};
  }
  dnnl_primitive_desc_t description = describe_onednn(&forward);
  if (pass != ops::Pass::forward && description != nullptr) {
    const dnnl_status_t status =
        pass == ops::Pass::data
            ? dnn.dnnl_inner_product_backward_data_desc_init(&backward, &x, &weight, &y)
            : dnn.dnnl_inner_product_backward_weights_desc_init(&backward, &x, &weight, nullptr, &y);
    if (status != dnnl_success) {
      dnn.dnnl_primitive_desc_destroy(description);
      return {};
    }
    description = describe_onednn(&backward, description);
  }
  return onednn_contender("inner_product", description, weighted_operands(pass));
}

}  // namespace trireme::bench
#endif
