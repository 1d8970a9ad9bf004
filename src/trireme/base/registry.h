// The members of a family: those of its list, and what a program adds to them (trireme/train.h) before it uses any. One
// thread adds; once something has looked, members stay where they are, and any thread reads.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/base/error.h"

namespace trireme {

template <typename Entry>
class Registry {
 public:
  // `what` names the family in errors: "model".
  Registry(std::string_view what, std::vector<Entry> members) : what_(what), members_(std::move(members)) {}
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  const std::vector<Entry>& all() const { return members_; }

  // Throws ConfigError where the name is none that a command line could have, or there already.
  void add(Entry entry) {
    const std::string_view name(entry.name);
    if (name.empty() || name.find_first_of(" :=,\t\n") != name.npos) {
      throw ConfigError("'" + std::string(name) + "' cannot be the name of a " + std::string(what_) +
                        ": leave out spaces, colons, commas and equals signs");
    }
    for (const auto& one : members_) {
      if (std::string_view(one.name) == name) {
        throw ConfigError("there is a " + std::string(what_) + " called " + std::string(name) +
                          " already; give yours another name");
      }
    }
    members_.push_back(std::move(entry));
  }

 private:
  const std::string_view what_;
  std::vector<Entry> members_;
};

}  // namespace trireme
