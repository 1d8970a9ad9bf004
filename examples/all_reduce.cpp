// The mean of a vector over all workers. Run it with: trireme run -n 4 -- ./all_reduce
#include <trireme/trireme.h>
#include <cstdio>

int main() try {
  auto world = trireme::init();  // one rank if nothing launched us

  std::vector<float> gradient(1000, static_cast<float>(world.rank()));
  world.all_reduce(gradient, trireme::Op::avg);

  auto shared = world.allocate<float>(1000);  // memory that the other ranks on this host read without a copy
  shared[0] = 1;
  auto work = world.async().all_reduce(std::span(shared.get(), 1000));  // returns at once
  work.wait();

  if (world.rank() == 0) {
    std::printf("%d ranks over %s: mean %g, sum %g\n", world.size(), world.transport().data(), gradient[0], shared[0]);
  }
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
