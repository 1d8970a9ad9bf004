// The ways of a dynamic programme that none beats in both of two costs. Private to the folder.
#pragma once
#include <vector>

namespace trireme {

// Of two ways, one that is no larger in both costs is never worse, whatever follows: only the others' front is kept.
template <typename Way>
void add_to_front(std::vector<Way>& front, const Way& way, double Way::*first, double Way::*second) {
  auto no_worse = [&](const Way& one, const Way& other) {
    return one.*first <= other.*first && one.*second <= other.*second;
  };
  for (const Way& other : front) {
    if (no_worse(other, way)) return;
  }
  std::erase_if(front, [&](const Way& other) { return no_worse(way, other); });
  front.push_back(way);
}

}  // namespace trireme
