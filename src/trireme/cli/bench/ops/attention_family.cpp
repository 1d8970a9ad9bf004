// Attention of many heads: the tiles of ops/attention.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "trireme/base/text/size.h"
#include "trireme/cli/bench/ops/op_text.h"
#include "trireme/ops/attention/attention.h"

namespace trireme::bench {
namespace {

// [batch][length][q k v][head][dim], as one linear layer leaves them.
struct AttentionData {
  explicit AttentionData(const ops::AttentionShape& of) : shape(of) {}
  template <class T>
  ops::HeadsView<T> view(ops::AlignedFloats& x, int64_t length, int64_t tensors, int64_t which) const {
    const int64_t row = tensors * shape.heads * shape.dim;
    return {x.data() + which * shape.heads * shape.dim, length * row, shape.dim, row};
  }
  template <class T>
  ops::HeadsView<T> queries(ops::AlignedFloats& x) const {
    return view<T>(x, shape.queries, 1, 0);
  }
  template <class T>
  ops::HeadsView<T> keys(ops::AlignedFloats& x, int64_t which) const {
    return view<T>(x, shape.keys, 2, which);
  }
  void forward() {
    ops::attention_forward(shape, {queries<const float>(q), keys<const float>(k_v, 0), keys<const float>(k_v, 1),
                                   queries<float>(output), sums.data()});
  }
  void backward() {
    ops::attention_backward(shape, {queries<const float>(q), keys<const float>(k_v, 0), keys<const float>(k_v, 1),
                                    queries<const float>(output), sums.data(), queries<const float>(d_output),
                                    queries<float>(d_q), keys<float>(d_k_v, 0), keys<float>(d_k_v, 1)});
  }

  ops::AttentionShape shape;
  int64_t query_size = shape.batch * shape.queries * shape.heads * shape.dim;
  int64_t key_size = 2 * shape.batch * shape.keys * shape.heads * shape.dim;
  ops::AlignedFloats q = some_numbers(query_size), k_v = some_numbers(key_size), output{query_size};
  ops::AlignedFloats sums{shape.sums_size()};
  ops::AlignedFloats d_output = some_numbers(query_size), d_q{query_size}, d_k_v{key_size};
};

std::vector<Contender> attention_contenders(const OpShape& of, ops::Pass pass) {
  const auto& shape = std::get<ops::AttentionShape>(of);
  const auto data = std::make_shared<AttentionData>(shape);
  if (pass == ops::Pass::forward) return {{"tiled", 4 * shape.sums_size(), [data] { data->forward(); }}};
  data->forward();
  return {{"tiled", 0, [data] { data->backward(); }}};
}

OpShape parse_attention(const OpFamily& family, std::string_view text) {
  const OpText parsed = parse_op_text(family, text, {4});
  const auto& sizes = parsed.sizes[0];
  ops::AttentionShape shape{.batch = sizes[0],
                            .heads = sizes[1],
                            .queries = sizes[2],
                            .keys = sizes[2],
                            .dim = sizes[3],
                            .scale = 1 / std::sqrt(static_cast<float>(sizes[3])),
                            .seed = 1};
  for (const OpSetting& setting : parsed.settings) {
    if (setting.name == "causal" && setting.value.empty()) {
      shape.causal = true;
    } else if (setting.name == "keys") {
      shape.keys = number_of(family, setting, 1, 1 << 20);
    } else if (setting.name == "dropout") {
      shape.dropout = static_cast<float>(parse_number(std::string(setting.value), "--shape: dropout"));
    } else {
      refuse_setting(family, setting);
    }
  }
  check(shape);
  return shape;
}

}  // namespace

OpFamily attention_family() {
  return {.name = "attention",
          .form = "BATCHxHEADSxLENGTHxDIM[,causal][,keys=][,dropout=]",
          .example = "8x4x128x64,causal",
          .passes = {{ops::Pass::forward, "forward"}, {ops::Pass::data, "backward"}},
          .implementations = {"tiled"},
          .parse = parse_attention,
          .text =
              [](const OpShape& of) {
                const auto& it = std::get<ops::AttentionShape>(of);
                std::string text = fmt::format("{}x{}x{}x{}", it.batch, it.heads, it.queries, it.dim);
                if (it.causal) text += ",causal";
                if (it.keys != it.queries) text += fmt::format(",keys={}", it.keys);
                if (it.dropout > 0) text += fmt::format(",dropout={}", it.dropout);
                return text;
              },
          .work = [](const OpShape& of, ops::Pass pass) -> OpWork {
            const auto& it = std::get<ops::AttentionShape>(of);
            const double row = static_cast<double>(it.batch * it.heads * it.dim);
            const double queries = row * static_cast<double>(it.queries), keys = row * static_cast<double>(it.keys);
            // Two products forward, five backward; q, k, v and the output, and their gradients.
            if (pass == ops::Pass::forward) return {it.forward_flops(), 4 * (2 * queries + 2 * keys)};
            return {2.5 * it.forward_flops(), 4 * (4 * queries + 4 * keys)};
          },
          .contenders = attention_contenders};
}

}  // namespace trireme::bench
