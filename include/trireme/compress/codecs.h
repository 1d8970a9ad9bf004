// The list of codecs, and how one is chosen: NAME[:value][,key=value…][,ef=on|off].
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/settings.h"
#include "trireme/compress/codec.h"

namespace trireme::compress {

struct CodecKind {
  std::string_view name;
  std::string_view summary;  // one line
  // The first may be written as a value alone.
  std::vector<Setting> settings;
  enum class Error {
    fed_back,  // what a message lacks is added to the next, unless told otherwise (ef=off)
    dropped,   // it is not, unless told otherwise (ef=on): messages are right on average
    its_own,   // the codec keeps it itself
    no_such,   // messages lack nothing
  } error = Error::fed_back;
  bool unbiased = false;  // the mean of many messages, without feedback, is what was encoded
  // What it feeds back comes several steps late, and swings with momentum (measured: docs/compression.md): that of the
  // optimizer is then replaced by a higher rate.
  bool lags = false;
  // With scatter: the codec of merged shares, where not this one again. What it loses no other worker evens out.
  std::string_view again = {};
  bool takes_momentum = false;  // it does what the optimizer's momentum would: that one is then 0
  // For tensors that are not to be compressed beside it: where it takes the momentum, with all elements sent.
  std::string_view uncompressed = "none";
  // Of one that keeps more than errors: the codec that sends as much of what nobody learns by, so that a parameter
  // server can answer with it; given the same first setting. Empty: there is none.
  std::string_view memoryless = {};
  bool matrices_only = false;  // tensors of one row travel uncompressed
  std::unique_ptr<Codec> (*make)(const Values& values, const Tensor& tensor, const Context& context);
};

// All of them, in the order of the documentation; the first is none.
const std::vector<CodecKind>& codecs();
// One more, before any is chosen. Throws ConfigError for a name that is taken.
void add_codec(CodecKind kind);

// A codec by name, with its settings.
struct Choice {
  const CodecKind* kind = nullptr;
  Values values;
  // Throws ConfigError that lists the valid names, settings or values.
  static Choice parse(std::string_view text);
  // "topk:fraction=0.01,sampled=off,ef=on", with every setting.
  std::string text() const { return std::string(kind->name) + values.text(); }
  bool none() const;
  // With error feedback around it, where that was chosen.
  std::unique_ptr<Codec> make(const Tensor& tensor, const Context& context) const;
};

// The settings a user may write for a codec: its own, and ef.
std::vector<Setting> settings_of(const CodecKind& kind);

}  // namespace trireme::compress
