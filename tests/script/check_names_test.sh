#!/usr/bin/env bash
# tools/check_names on small trees, good and broken. usage: check_names_test.sh REPOSITORY
# shellcheck source=tests/script/check.sh
source "$(dirname -- "$0")/check.sh"
repository=$1

before() {
  tree="$work/a tree"
  rm -rf "$tree"
  mkdir -p "$tree/include/trireme"
  file sync/strategies/easgd.cpp '  return {.name = "easgd",'
  file compress/codecs/topk.cpp '  return {.name = "topk",'
  file optim/lars.cpp 'constinit const Kind kLars{.name = "lars",'
  file mesh/hybrids.cpp '    HybridKind{.name = "none"},' '    HybridKind{.name = "alexnet"},'
  file collective/schedules/members.inc 'ALGORITHM(all_reduce, "ring", "round", kMessages, ring)'
  file mesh/schedule.cpp '    PipelineKind{"gpipe", "all forwards", true, make_gpipe},'
}

# Writes a source of the tree, line by line.
file() {
  local path="$tree/src/trireme/$1"
  mkdir -p "$(dirname "$path")"
  printf '%s\n' "${@:2}" >"$path"
}
check() { run "$repository/tools/check_names" "$tree"; }

test_names_may_be_declared_chosen_and_told() {
  file sync/strategies/easgd.cpp '  return {.name = "easgd",' 'bool own(Kind k) { return k.name == "easgd"; }'
  file train/config/config.h 'std::string strategy = "easgd", compress = "topk:0.01";'
  file train/help.cpp 'Field{"--strategy", "such as easgd"};  // if (name == "easgd")' \
    'if (codec == "none") return;' 'throw ConfigError("--compress topk: leave it out");'
  check
  expect_status 0
  expect_equal "$out$err" ''
}

test_a_comparison_is_named() {
  local line
  for line in 'if (kind.name == "easgd") return;' 'if ("topk" != codec) return;' 'bool one = name ==' \
    'if (name.starts_with("alexnet")) return;' 'auto one = ranges::find(kinds, "ring");' \
    'constexpr std::array<std::string_view, 2> kAble{"sgd", "lars"};' 'if (is_none_of(config, {"lars"})) return;' \
    'one_of("--pipeline", value, {"gpipe"});'; do
    file train/step.cpp '#include <string>' "$line" '    "easgd";'
    check
    expect_status 1
    expect_in "$out" 'is asked for by name'
    expect_in "$out" 'src/trireme/train/step.cpp:'
  done
  file train/step.cpp '#include <string>' '' 'if (kind.name == "easgd") return;'
  check
  expect_in "$out" 'src/trireme/train/step.cpp:3: "easgd" is asked for by name'
}

test_another_member_counts_as_anybody() {
  file sync/other.cpp '  return {.name = "other",' '  if (name == "easgd") return;'
  check
  expect_status 1
  expect_in "$out" 'sync/other.cpp:2: "easgd"'
}

test_a_list_that_moved_is_noticed() {
  file mesh/hybrids.cpp '// nothing'
  file mesh/schedule.cpp '// nothing'
  check
  expect_status 1
  expect_in "$err" 'no member is declared in src/trireme/mesh'
}

run_all
