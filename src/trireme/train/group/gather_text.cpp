#include "trireme/train/group/gather_text.h"

#include <algorithm>

namespace trireme::train {

std::vector<std::string> gather_text(Communicator& world, const std::string& mine) {
  std::vector<std::int64_t> size{static_cast<std::int64_t>(mine.size())}, sizes(world.size());
  world.all_gather(size, sizes);
  auto most = static_cast<std::size_t>(*std::ranges::max_element(sizes));
  std::vector<std::uint8_t> here(most), all(world.rank() == 0 ? most * world.size() : 0);
  std::ranges::copy(mine, here.begin());
  world.gather(here, all);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < (all.empty() ? 0 : sizes.size()); ++rank) {
    auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * most);
    texts.emplace_back(begin, begin + sizes[rank]);
  }
  return texts;
}

void broadcast_text(Communicator& world, std::string& text) {
  std::vector<std::int64_t> size{static_cast<std::int64_t>(text.size())};
  world.broadcast(size);
  text.resize(size[0]);
  world.broadcast(View(text.data(), text.size(), DType::u8));
}

}  // namespace trireme::train
