#!/usr/bin/env bash
# tools/get_torch with pip and the tools that look into libraries replaced by a few lines of shell: nothing is fetched.
# usage: get_torch_test.sh REPOSITORY
# shellcheck disable=SC2016  # the stand-ins expand their own variables
# shellcheck source=tests/script/check.sh
source "$(dirname -- "$0")/check.sh"
repository=$1

mkdir "$work/bin"
ln -s /usr/bin/* "$work/bin"
rm -f "$work"/bin/python3*

before() {
  fakes="$work/fakes" home="$work/cache"
  rm -rf "$fakes" "$home"
  mkdir -p "$fakes"
  : >"$work/calls"
  unset TRIREME_CACHE
  export PATH="$fakes:$work/bin" WORK="$work" XDG_CACHE_HOME="$home" NEWEST=2.15.0
  # An archive is a text that says what it is; taking it apart makes what the real one has.
  fake python3 '
    case "$*" in
      *"--version") exit 0 ;;
      *"index versions torch") [[ -n $NEWEST ]] && echo "torch ($NEWEST)" ;;
      *"download --help") exit 0 ;;
      *" download "*)
        echo "download ${*: -1}" >>"$WORK/calls"
        while (($# > 1)); do if [[ $1 == --dest ]]; then to=$2; fi; shift; done
        name=${1%%[=<>]*}
        if [[ $name == "${REFUSED-}" ]]; then echo "Looking in indexes"; echo "ERROR: no route to host" ; exit 1; fi
        version=13.2.5; if [[ $name == torch ]]; then version=$NEWEST; fi
        echo wheel >"$to/${name//-/_}-$version-cp311-linux.whl" ;;
      "-m zipfile -e "*)
        [[ $(<"$4") != broken ]] || exit 1
        case $(basename "$4") in
          torch-*) mkdir -p "$5/torch/lib" "$5/torch/include" "$5/torch-$NEWEST.dist-info"
            touch "$5"/torch/lib/lib{torch_cpu,c10,torch,torch_cuda,c10_cuda}.so
            printf "Version: %s\nRequires-Dist: cuda-toolkit[cudart]==13.2.2; x\n" $NEWEST >"$5/torch-$NEWEST.dist-info/METADATA" ;;
          nvidia_cuda_runtime-*) mkdir -p "$5/nvidia"; touch "$5/nvidia/cudart" ;;
          nvidia_cuda_cupti-*) mkdir -p "$5/nvidia"; touch "$5/nvidia/cupti" ;;
        esac ;;
      "-c "*) [[ -z ${BAD_LIBRARY-} ]] || { echo "OSError: undefined symbol: x" >&2; exit 1; } ;;
    esac'
  fake ldd '
    folder=$(dirname "$1")/../..
    for name in cudart cupti; do [[ -e $folder/nvidia/$name ]] || printf "\tlib$name.so.13 => not found\n"; done
    printf "\tlibc.so.6 => /lib/libc.so.6 (0x1)\n"'
}
fake() {
  printf '#!/bin/bash\n%s\n' "$2" >"$fakes/$1"
  chmod +x "$fakes/$1"
}
get() { run "$repository/tools/get_torch" "$@"; }

test_a_cpu_gets_what_it_needs() {
  get
  expect_status 0
  expect_equal "$out" "$home/trireme/torch/2.15.0-cpu/torch"
  expect_equal "$(ls "$out/lib" | paste -sd' ')" 'libc10.so libtorch_cpu.so'
  expect_equal "$(cat "$work/calls")" \
    $'download torch==2.15.0\ndownload nvidia-cuda-runtime==13.2.*\ndownload nvidia-cuda-cupti==13.2.*'
  expect_equal "$(cut -d' ' -f3 "$out/../wheels.txt" | paste -sd' ')" \
    'torch-2.15.0-cp311-linux.whl nvidia_cuda_runtime-13.2.5-cp311-linux.whl nvidia_cuda_cupti-13.2.5-cp311-linux.whl'
  [[ ! -e $home/trireme/torch/wheels ]] || fail 'the wheels are still there'
}

test_what_is_there_is_not_fetched_again() {
  get
  local first=$out
  : >"$work/calls"
  get
  expect_equal "$out" "$first"
  get --have
  expect_equal "$out" "$first"
  NEWEST='' get # no network
  expect_status 0
  expect_equal "$out" "$first"
  expect_in "$err" 'the index of packages does not answer'
  expect_equal "$(cat "$work/calls")" ''
  NEWEST=2.16.0 get
  expect_equal "$out" "$home/trireme/torch/2.16.0-cpu/torch"
}

test_none_is_there() {
  get --have
  expect_status 3
  expect_equal "$out$err" ''
}

test_with_cuda_everything_stays() {
  get --cuda
  expect_status 1 # the stand-in for the whole brings no package of CUDA's
  expect_in "$err" 'libtorch_cuda.so of LibTorch 2.15.0 lacks libcudart.so.13 libcupti.so.13'
  mkdir -p "$home/trireme/torch/wheels"
  touch "$home/trireme/torch/wheels/nvidia_cuda_runtime-13.2.5-x.whl" "$home/trireme/torch/wheels/nvidia_cuda_cupti-13.2.5-x.whl"
  get --cuda
  expect_status 0
  expect_equal "$out" "$home/trireme/torch/2.15.0-cuda/torch"
  [[ -e $out/lib/libtorch_cuda.so ]] || fail 'libtorch_cuda.so is gone'
}

test_a_failed_download_is_one_line_and_goes_on_later() {
  REFUSED=nvidia-cuda-cupti get
  expect_status 1
  expect_equal "$out" ''
  expect_in "$(tail -n 1 "$work/err")" 'nvidia-cuda-cupti==13.2.* could not be fetched: ERROR: no route to host (log: '
  get --have
  expect_status 3
  [[ -e $home/trireme/torch/wheels/torch-2.15.0-cp311-linux.whl ]] || fail 'the wheel that had come is gone'
  get
  expect_status 0
  expect_equal "$out" "$home/trireme/torch/2.15.0-cpu/torch"
}

test_a_broken_wheel_is_removed() {
  mkdir -p "$home/trireme/torch/wheels"
  fake python3.real "$(tail -n +2 "$fakes/python3")"
  fake python3 'python3.real "$@" && for w in "$XDG_CACHE_HOME"/trireme/torch/wheels/torch-*; do
    [[ " $* " != *" download "* || ! -e $w ]] || echo broken >"$w"; done'
  get
  expect_status 1
  expect_in "$(tail -n 1 "$work/err")" 'is broken and was removed; try again'
  mv "$fakes/python3.real" "$fakes/python3"
  get
  expect_status 0
}

test_what_does_not_load_is_not_kept() {
  BAD_LIBRARY=1 get
  expect_status 1
  expect_in "$(tail -n 1 "$work/err")" 'cannot be loaded: OSError: undefined symbol: x'
  get --have
  expect_status 3
}

test_wrong_arguments() {
  get --gpu
  expect_status 2
  get --cuda x
  expect_status 2
}

run_all
