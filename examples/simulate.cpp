// What a job would do on a cluster that need not be there: which of some ways to synchronize is fastest on 16 machines
// behind 1 Gbit/s. Needs no LibTorch.
#include <trireme/simulate.h>

#include <cstdio>

int main() try {
  trireme::Cluster cluster;  // or load_cluster("cluster.toml")
  cluster.nodes = {{.name = "small", .count = 16, .cores = 2}};
  cluster.links = {{.name = "1gbit"}};
  cluster.links[0].message = {100e-6, {}, 8e-9};  // 100 µs, and 8 ns a byte

  const auto profile = trireme::example_profile("wide-mlp");  // or load_profile("profile.json"), from `trireme profile`
  for (const char* strategy : {"allreduce", "local-sgd:H=8", "ps-bsp"}) {
    for (const char* codec : {"none", "int8"}) {
      trireme::Job job;
      job.profile = &profile;
      job.strategy = trireme::parse_strategy(strategy);
      job.compress = codec;
      const auto seen = trireme::simulate(cluster, job);
      std::printf("%-14s %-5s %8.2f ms a step, %7.0f samples/s  %s\n", strategy, codec, 1e3 * seen.step_s,
                  seen.samples_per_s, seen.why.c_str());
    }
  }
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_code();
}
