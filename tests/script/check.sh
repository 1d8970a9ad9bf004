# shellcheck shell=bash
# The few words the shell tests are written in. Source it, write functions called test_…, end with run_all.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

fail() {
  printf '%s: %s\n' "$current" "$*" >&2
  exit 1
}

# Runs a command; its exit status, stdout and stderr are then in $status, $out and $err.
run() {
  status=0
  "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
  out=$(<"$work/out") err=$(<"$work/err")
}

expect_status() { [[ $status == "$1" ]] || fail "exit status $status, expected $1; stdout: $out; stderr: $err"; }
expect_equal() { [[ $1 == "$2" ]] || fail "got '$1', expected '$2'"; }
expect_in() { [[ $1 == *"$2"* ]] || fail "'$2' is not in: $1"; }
expect_not_in() { [[ $1 != *"$2"* ]] || fail "'$2' must not be in: $1"; }

# Each test in a shell of its own; `before`, where there is one, first.
run_all() {
  local current
  for current in $(compgen -A function test_); do
    printf '%s\n' "$current"
    (before; "$current") || exit 1
  done
}
before() { :; }
