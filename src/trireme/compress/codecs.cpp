#include "trireme/compress/codecs.h"

#include <fmt/format.h>

#include "trireme/base/find_kind.h"
#include "trireme/base/registry.h"
#include "trireme/compress/codecs/kinds.h"
#include "trireme/compress/error_feedback.h"

namespace trireme::compress {

namespace {

Registry<CodecKind>& registry() {
  static Registry<CodecKind> all("codec", {
#define CODEC(row) row(),
#include "trireme/compress/codecs/members.inc"
#undef CODEC
                                          });
  return all;
}

bool may_feed_back(const CodecKind& kind) {
  return kind.error == CodecKind::Error::fed_back || kind.error == CodecKind::Error::dropped;
}

// The settings of all codecs, for as long as their names are looked at.
const std::vector<Setting>& kept_settings_of(const CodecKind& kind) {
  static const std::vector<std::vector<Setting>> all = [] {
    std::vector<std::vector<Setting>> lists;
    for (const CodecKind& one : codecs()) lists.push_back(settings_of(one));
    return lists;
  }();
  return all[static_cast<std::size_t>(&kind - codecs().data())];
}

}  // namespace

const std::vector<CodecKind>& codecs() { return registry().all(); }
void add_codec(CodecKind kind) { registry().add(std::move(kind)); }

std::vector<Setting> settings_of(const CodecKind& kind) {
  auto settings = kind.settings;
  if (may_feed_back(kind)) {
    settings.push_back({"ef", kind.error == CodecKind::Error::fed_back ? "on" : "off",
                        "what a message lacks is added to the next", one_of({"on", "off"})});
  }
  return settings;
}

Choice Choice::parse(std::string_view text) {
  const auto [name, given] = split_choice(text);
  const CodecKind& kind = find_kind("codec", codecs(), name);
  return {&kind, Values(fmt::format("codec {}", name), kept_settings_of(kind), given)};
}

bool Choice::none() const { return kind == codecs().data(); }

std::unique_ptr<Codec> Choice::make(const Tensor& tensor, const Context& context) const {
  auto codec = kind->make(values, tensor, context);
  if (!may_feed_back(*kind) || values.is("ef", "off")) return codec;
  return std::make_unique<ErrorFeedback>(std::move(codec), tensor.count);
}

}  // namespace trireme::compress
