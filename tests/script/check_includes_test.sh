#!/usr/bin/env bash
# tools/check_includes on small trees, good and broken. usage: check_includes_test.sh REPOSITORY
# shellcheck source=tests/script/check.sh
source "$(dirname -- "$0")/check.sh"
repository=$1

before() {
  tree="$work/a tree"
  rm -rf "$tree"
  mkdir -p "$tree/src/trireme" "$tree/include/trireme"
  cp "$repository/src/trireme/rooms.txt" "$tree/src/trireme/"
  file base/error.h '<string>'
  file net/channel.h '"trireme/base/error.h"'
}

# Writes a source of the tree that includes what is given: a public header where the path says so, or names no room.
file() {
  local path="$tree/src/trireme/$1" what
  if [[ $1 != */* ]]; then path="$tree/include/trireme/$1"; fi
  if [[ $1 == include/* ]]; then path="$tree/$1"; fi
  mkdir -p "$(dirname "$path")"
  echo '#pragma once' >"$path"
  for what in "${@:2}"; do echo "#include $what" >>"$path"; done
}
check() { run "$repository/tools/check_includes" "$tree"; }

test_follows_the_arrows() {
  file collective/schedules/ring.cpp '"trireme/net/channel.h"' '"trireme/base/error.h"' '<vector>'
  file include/trireme/collective/communicator.h '<vector>' '"trireme/net/key.h"'
  file include/trireme/net/key.h '<array>'
  file include/trireme/grad/data_parallel.h '<torch/torch.h>' '"trireme/collective/communicator.h"'
  file trireme.h '"trireme/collective/communicator.h"'
  file cli/main.cpp '"trireme/trireme.h"' '"trireme/net/channel.h"' '<torch/torch.h>'
  file train/step.cpp '"trireme/grad/hook.h"' '<torch/torch.h>'
  check
  expect_status 0
  expect_equal "$out$err" ''
}

test_names_the_line_that_goes_against_an_arrow() {
  file base/log.cpp '<string>' '"trireme/net/channel.h"'
  check
  expect_status 1
  expect_equal "$out" 'src/trireme/base/log.cpp:3: base may not include net (trireme/net/channel.h)'
}

test_sees_odd_spelling() {
  printf '  #  include"trireme/cli/command.h" // "why"\n' >"$tree/src/trireme/base/log.cpp"
  check
  expect_status 1
  expect_in "$out" 'log.cpp:1: base may not include cli'
}

test_keeps_torch_below_the_line() {
  local what
  for what in torch/torch.h ATen/ATen.h c10/core/Device.h; do
    file collective/schedules/ring.cpp "<$what>"
    check
    expect_status 1
    expect_in "$out" "collective may not include torch ($what)"
  done
}

test_knows_every_folder() {
  file misc/stuff.h '"trireme/base/error.h"'
  check
  expect_status 1
  expect_in "$out" 'folder misc is not in the table'
}

test_knows_the_room_of_a_public_header() {
  file include/trireme/net/key.h '<array>' '"trireme/collective/communicator.h"'
  file include/trireme/collective/communicator.h
  check
  expect_status 1
  expect_equal "$out" 'include/trireme/net/key.h:3: net may not include collective (trireme/collective/communicator.h)'
}

test_keeps_public_headers_to_themselves() {
  file include/trireme/net/key.h '"trireme/net/channel.h"'
  check
  expect_status 1
  expect_equal "$out" \
    'include/trireme/net/key.h:2: is for users, but what it includes is not: trireme/net/channel.h lies in src'
  file include/trireme/net/key.h '<nlohmann/json_fwd.hpp>'
  check
  expect_status 1
  expect_equal "$out" 'include/trireme/net/key.h:2: is for users, who may not have nlohmann/json_fwd.hpp'
}

test_finds_a_loop_of_public_and_inner_headers() {
  file include/trireme/net/a.h '"trireme/net/b.h"'
  file net/b.h '"trireme/net/a.h"'
  check
  expect_status 1
  expect_in "$err" 'include each other in a loop'
}

test_finds_a_loop_within_a_folder() {
  file net/a.h '"trireme/net/b.h"'
  file net/b.h '"trireme/net/c.h"'
  file net/c.h '"trireme/net/a.h"'
  check
  expect_status 1
  expect_in "$err" 'include each other in a loop'
  expect_in "$err" 'trireme/net/b.h'
}

run_all
