#include "trireme/parallel/pipeline/activation_channel.h"

#include <fmt/format.h>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/mesh/schedules/lists.h"

namespace trireme::parallel {
namespace {

using pipelines::Action;

bool of_gradient(const Action& action) {
  return action.kind == Action::Kind::receive_gradient || action.kind == Action::Kind::send_gradient;
}

View bytes_of(const torch::Tensor& tensor) { return {tensor.data_ptr(), tensor.nbytes(), DType::u8}; }

// Told apart by micro-batch and kind, so that a slip is an error that names both.
std::uint64_t tag_of(const Action& action) {
  return 2 * static_cast<std::uint64_t>(action.micro_batch) + (of_gradient(action) ? 1 : 0);
}

// The action as a part of a sentence.
std::string words(const Action& action, int stage, int peer) {
  const bool receives = pipelines::receives(action);
  return fmt::format("stage {} {} the {} of micro-batch {} {} stage {}", stage,
                     receives ? "waited for" : "could not send",
                     of_gradient(action) ? "gradients (backward)" : "activations (forward)", action.micro_batch,
                     receives ? "from" : "to", peer);
}

}  // namespace

Forms forms_of(const nn::Values& values) {
  Forms forms;
  for (const auto& value : values) forms.push_back({value.scalar_type(), value.sizes().slice(1).vec()});
  return forms;
}

ActivationChannel::ActivationChannel(Communicator& pipe, std::vector<Forms> after, torch::Device device)
    : pipe_(pipe), after_(std::move(after)), device_(device) {}

const Forms& ActivationChannel::forms(const Action& action) const {
  const int part = action.chunk * pipe_.size() + pipe_.rank();
  const bool ends_here = action.kind == Action::Kind::receive_gradient || action.kind == Action::Kind::send_activation;
  return after_.at(static_cast<std::size_t>(ends_here ? part : part - 1));
}

void ActivationChannel::expect(const Action& receive, std::int64_t rows) {
  Letter letter;
  letter.peer = pipelines::peer_of(receive, pipe_.size(), pipe_.rank());
  for (const auto& form : forms(receive)) {
    letter.values.emplace_back();
    if (of_gradient(receive) && !torch::isFloatingType(form.type)) continue;
    std::vector<std::int64_t> sizes{rows};
    sizes.insert(sizes.end(), form.sizes.begin(), form.sizes.end());
    letter.values.back() = torch::empty(sizes, form.type);
    letter.works.push_back(pipe_.recv_async(bytes_of(letter.values.back()), letter.peer, tag_of(receive)));
  }
  expected_[key_of(receive)] = std::move(letter);
}

nn::Values ActivationChannel::take(const Action& receive) {
  auto node = expected_.extract(key_of(receive));
  TRIREME_CHECK(!node.empty());
  wait(receive, node.mapped());
  if (!device_.is_cpu()) {
    for (auto& value : node.mapped().values) {
      if (value.defined()) value = value.to(device_);
    }
  }
  return std::move(node.mapped().values);
}

void ActivationChannel::send(const Action& send, const nn::Values& values, std::int64_t rows) {
  while (!sent_.empty() && std::ranges::all_of(sent_.front().letter.works, &Work::done)) sent_.pop_front();
  Letter letter;
  letter.peer = pipelines::peer_of(send, pipe_.size(), pipe_.rank());
  const auto& expected = forms(send);
  TRIREME_CHECK(values.size() == expected.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (of_gradient(send) && !torch::isFloatingType(expected[k].type)) continue;
    auto value = values[k];
    if (!value.defined()) {
      std::vector<std::int64_t> sizes{rows};
      sizes.insert(sizes.end(), expected[k].sizes.begin(), expected[k].sizes.end());
      value = torch::zeros(sizes, expected[k].type);
    }
    letter.values.push_back(value.to(torch::kCPU).contiguous());
    bytes_sent_ += letter.values.back().nbytes();
    letter.works.push_back(pipe_.send_async(bytes_of(letter.values.back()), letter.peer, tag_of(send)));
  }
  sent_.push_back({send, std::move(letter)});
}

void ActivationChannel::flush() {
  for (; !sent_.empty(); sent_.pop_front()) wait(sent_.front().action, sent_.front().letter);
}

void ActivationChannel::wait(const Action& action, Letter& letter) {
  const double begin = now_seconds();
  auto where = [&] { return words(action, pipe_.rank(), letter.peer); };
  try {
    for (auto& work : letter.works) work.wait();
  } catch (const Timeout& error) {
    throw Timeout(error.rank(), fmt::format("{}: {}", where(), error.what()));
  } catch (const PeerLost& error) {
    throw PeerLost(error.rank(), fmt::format("{}: {}", where(), error.what()));
  }
  waited_ += now_seconds() - begin;
}

}  // namespace trireme::parallel
