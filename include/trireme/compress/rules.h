// Which codec each tensor of a model has: --compress for all, --compress-rule for those whose names match.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/compress/codecs.h"

namespace trireme::compress {

class Rules {
 public:
  Rules() : Rules("none", "") {}
  // `rules`: "fc*=topk:0.01,*.bias=none"; * stands for any characters, ? for one; of those that match a name the first
  // counts, else `codec`. A part that begins with the name of a setting of the codec before it belongs to that codec:
  // "fc*=topk:0.01,ef=off,*.bias=none" are two rules. Throws ConfigError.
  Rules(std::string_view codec, std::string_view rules = {});

  // Whether nothing is compressed.
  bool none() const;
  // Below so many elements a tensor travels as it is: what codes would save, their headers and calls cost.
  static constexpr std::size_t kSmall = 1024;
  // The codec of a tensor. One that is too small, a vector where the codec is for matrices, and what a rule says
  // 'none' of are not compressed: none, or, beside a codec that takes the momentum, that one with all elements sent.
  const Choice& of(const Tensor& tensor) const;
  // Whether a codec in it does what the optimizer's momentum would. Throws ConfigError where some do and some do not.
  bool takes_momentum() const;
  // Whether a codec in it lags behind.
  bool lags() const;
  // Throws ConfigError that names a rule which none of these names follows: a slip in its pattern. `whose`: "lenet".
  void check_patterns(std::span<const std::string> names, std::string_view whose) const;
  // "topk:fraction=0.01,ef=on; *.bias none"
  std::string text() const;
  // What the same rules can be made of again, with every setting.
  std::string codec_text() const { return fallback_.text(); }
  std::string rules_text() const;

 private:
  void uncompressed_by(const Choice& choice);

  Choice fallback_;
  std::vector<std::pair<std::string, Choice>> rules_;
  Choice uncompressed_;
};

// Whether a name matches a pattern of *, ? and themselves.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace trireme::compress
