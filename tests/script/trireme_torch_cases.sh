# What `./trireme torch` does; read by trireme_test.sh, whose helpers these cases use.
# shellcheck shell=bash disable=SC2154

# A LibTorch as far as it is looked at, in $1, and a fetcher that says it has fetched that.
torch_in() {
  mkdir -p "$1/lib" "$1/include/torch"
  touch "$1/lib/libtorch_cpu.so"
}
fetcher_of() {
  printf '#!/bin/bash\necho "get_torch $*" >>"$WORK/calls"\n%s\n' "$1" >"$tree/tools/get_torch"
  chmod +x "$tree/tools/get_torch"
}

test_torch_chooses_what_is_built_with() {
  fake python3 'exit 0'
  torch_in "$work/fetched"
  fetcher_of 'echo "$WORK/fetched"'
  run "$tree/trireme" torch
  expect_equal "$out" debian
  run "$tree/trireme" x
  expect_in "$(cat "$work/calls")" "-B $tree/build/release -DTRIREME_TORCH_ROOT:PATH="
  run "$tree/trireme" torch pip
  expect_status 0
  expect_in "$err" "the LibTorch in $work/fetched"
  run "$tree/trireme" torch
  expect_equal "$out" "$work/fetched"
  run "$tree/trireme" x
  expect_status 0
  expect_in "$(cat "$work/calls")" "-B $tree/build/release-pip -DTRIREME_TORCH_ROOT:PATH=$work/fetched"

  : >"$work/calls"
  run "$tree/trireme" y
  expect_equal "$(calls 'cmake -S')" 0
  torch_in "$work/newer"
  fetcher_of 'echo "$WORK/newer"'
  run "$tree/trireme" torch pip
  run "$tree/trireme" # alone it looks for itself whether something changed
  expect_equal "$(calls "cmake -S .*=$work/newer")" 1
  rm -r "$work/newer"
  run "$tree/trireme" x
  expect_status 1
  expect_equal "$(wc -l <"$work/err")" 1
  expect_in "$err" "not in $work/newer any more"
  run "$tree/trireme" torch debian
  run "$tree/trireme" torch
  expect_equal "$out" debian
}

test_torch_of_the_environment_is_not_kept() {
  torch_in "$work/venv/lib/python3.11/site-packages/torch"
  TRIREME_TORCH="$work/venv" run "$tree/trireme" x
  expect_status 0
  expect_in "$(cat "$work/calls")" "-B $tree/build/release-path -DTRIREME_TORCH_ROOT:PATH=$work/venv/lib/python3.11/site-packages/torch"
  run "$tree/trireme" torch
  expect_equal "$out" debian
  TRIREME_TORCH=/nowhere run "$tree/trireme" x
  expect_status 1
  expect_equal "$err" "trireme: no LibTorch in '/nowhere': lib/libtorch_cpu.so and include/torch are looked for"

  fetcher_of 'if [[ $1 == --have ]]; then exit 3; fi; echo "trireme: no network" >&2; exit 1'
  TRIREME_TORCH=pip run "$tree/trireme" x
  expect_status 1
  expect_equal "$err" 'trireme: no network'
}

test_torch_refuses_what_it_does_not_know() {
  local words
  for words in 'pip --gpu' 'debian pip' '--cuda' '/tmp --cuda'; do
    # shellcheck disable=SC2086
    run "$tree/trireme" torch $words
    expect_status 2
  done
  run "$tree/trireme" torch /nowhere
  expect_status 1
  [[ ! -e $tree/build/torch-choice ]] || fail 'a refused choice was kept'
}

test_torch_passes_on_that_nothing_was_fetched() {
  fake python3 'exit 0'
  fetcher_of 'echo "trireme: torch could not be fetched" >&2; exit 1'
  run "$tree/trireme" torch pip
  expect_status 1
  expect_equal "$err" 'trireme: torch could not be fetched'
  [[ ! -e $tree/build/torch-choice ]] || fail 'a failed choice was kept'
}

test_torch_needs_pip_and_installs_it() {
  printf 'torch pippin why\n' >>"$tree/tools/packages.txt"
  fake id 'echo 0'
  fake python3 'exit 1'
  torch_in "$work/fetched"
  fetcher_of 'echo "$WORK/fetched"'
  run "$tree/trireme" torch pip --cuda
  expect_status 0
  expect_in "$(cat "$work/calls")" 'install --yes --no-install-recommends pippin'
  expect_in "$(cat "$work/calls")" 'get_torch --cuda'
}
