#!/usr/bin/env bash
# tools/get_pytorch with Python replaced by a few lines of shell; the stand-ins for CUDA's libraries are really made, for a
# library that really lacks them. usage: get_pytorch_test.sh REPOSITORY
# shellcheck disable=SC2016  # the stand-ins expand their own variables
# shellcheck source=tests/script/check.sh
source "$(dirname -- "$0")/check.sh"
repository=$1

mkdir "$work/bin"
ln -s /usr/bin/* "$work/bin"
rm -f "$work"/bin/python3*

before() {
  fakes="$work/fakes" home="$work/cache"
  rm -rf "$fakes" "$home" "$work/built"
  mkdir -p "$fakes" "$work/built"
  : >"$work/calls"
  unset TRIREME_CACHE
  export PATH="$fakes:$work/bin" WORK="$work" XDG_CACHE_HOME="$home" NEWEST=2.15.0 GET_PYTORCH_PYTHON="$fakes/python3"
  cat >"$fakes/python3" <<'END'
#!/bin/bash
case "$*" in
  *"--version") exit 0 ;;
  *"index versions torch") [[ -n $NEWEST ]] && echo "torch ($NEWEST)" ;;
  "-m venv "*) mkdir -p "${*: -1}/bin" "${*: -1}/lib/python3.11/site-packages"; cp "$0" "${*: -1}/bin/python3" ;;
  *" install "*)
    echo "install $*" >>"$WORK/calls"
    [[ -z ${REFUSED-} ]] || { echo "ERROR: no route to host"; exit 1; }
    while (($# > 1)); do if [[ $1 == --python ]]; then site=${2%/bin/python3}/lib/python3.11/site-packages; fi; shift; done
    mkdir -p "$site/torch/lib" "$site/torch-2.dist-info"
    echo 'Requires-Dist: cuda-toolkit[cudart]==13.2.2; x' >"$site/torch-2.dist-info/METADATA"
    cp "$WORK"/built/lib*.so "$site/torch/lib" 2>/dev/null; true ;;
  "-c "*) [[ -z ${BAD-} ]] || { echo "ImportError: undefined symbol" >&2; exit 1; }; echo "$NEWEST" ;;
esac
END
  chmod +x "$fakes/python3"
  gcc -shared -x c /dev/null -o "$work/built/libc10.so"
}
get() { run "$repository/tools/get_pytorch"; }

test_it_is_made_once() {
  get
  expect_status 0
  expect_equal "$out" "$home/trireme/peers/pytorch"
  expect_in "$(cat "$work/calls")" 'torch==2.15.0'
  expect_in "$(cat "$work/calls")" 'nvidia-cuda-runtime==13.2.* nvidia-cuda-cupti==13.2.*'
  expect_not_in "$(cat "$work/calls")" cudnn
  : >"$work/calls"
  get
  NEWEST='' get
  expect_status 0
  expect_equal "$(cat "$work/calls")" ''
  NEWEST=2.16.0 get
  expect_in "$(cat "$work/calls")" 'torch==2.16.0'
}

test_libraries_of_cuda_get_stand_ins_with_their_symbols() {
  # A library as cuBLAS: versioned symbols, some of which another library refers to, one by its address.
  echo 'int cublasCreate(void) { return 7; } int cublasOther(void) { return 8; }' |
    gcc -shared -fPIC -x c - -x none -Wl,-soname,libcublas.so.13 -Wl,--version-script=<(echo 'libcublas.so.13 { global: *; };') \
      -o "$work/built/libcublas.so.13"
  echo 'int cublasCreate(void); int cublasOther(void); int (*kept)(void) = cublasOther; int mine(int x) { return x ? cublasCreate() : 3; }' |
    gcc -shared -fPIC -x c - -x none -Wl,-rpath,'$ORIGIN' "$work/built/libcublas.so.13" -o "$work/built/libtorch_cuda.so"
  rm "$work/built/libcublas.so.13"
  get
  expect_status 0
  local lib="$out/lib/python3.11/site-packages/torch/lib"
  expect_in "$(nm -D "$lib/libcublas.so.13")" 'cublasOther@@libcublas.so.13'
  echo 'int mine(int); int main(void) { return mine(0); }' | gcc -x c - -x none "$lib/libtorch_cuda.so" -Wl,-rpath,"$lib" -o "$work/program"
  run "$work/program"
  expect_status 3 # it loads, and what calls nothing of CUDA's works
}

test_a_failure_is_one_line_and_leaves_what_was_there() {
  get
  NEWEST=2.16.0 REFUSED=1 get
  expect_status 1
  expect_in "$(tail -n 1 "$work/err")" 'PyTorch could not be fetched: ERROR: no route to host (log: '
  expect_equal "$(cat "$home/trireme/peers/pytorch/version")" 2.15.0
  NEWEST=2.16.0 BAD=1 get
  expect_status 1
  expect_in "$(tail -n 1 "$work/err")" 'PyTorch cannot be imported: ImportError: undefined symbol'
  expect_equal "$(cat "$home/trireme/peers/pytorch/version")" 2.15.0
}

run_all
