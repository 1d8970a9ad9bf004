// The benchmark's search: as large as a user's, and always the same.
#include "trireme/cluster/planner/search.h"

namespace trireme::cluster {

SearchCase run_search_case() {
  Question question;
  question.cluster = flat_cluster(8, 5e-5, 1.25e9, 5e-11);
  question.profile = example_profile("resnet50-like");
  question.top = 1000;
  question.most = 1000;
  question.exhaustive = true;
  const Found found = search(question);
  return {question.cluster.node_count(), found.judged, found.options.front().step_s};
}

}  // namespace trireme::cluster
