#!/usr/bin/env bash
# Does what CONTRIBUTING's walk-through says, word by word, on a copy of the sources: adds an algorithm, a codec and a
# strategy, builds their rooms, and runs the conformance tests, which must find each of them.
# usage: walkthrough_test.sh REPOSITORY BUILD COMPILER
set -euo pipefail
repository=$1 build=$2 compiler=$3

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
fail() { echo "walkthrough: $*" >&2; exit 1; }
mkdir "$work/tree"
cp -r "$repository"/{src,include,tests} "$work/tree"

# Each block goes to the file that the paragraph before it names last: a new one, or to the end of a list.
awk -v tree="$work/tree/" '
  /^## / { inside = /^## Three members/ }
  !inside { next }
  /^```/ { open = !open; if (open) print path; next }
  open { print > (tree path); next }
  { while (match($0, /`src\/[^`]+`/)) { path = substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }
  # A list is kept: what is there comes first.
  path ~ /\.inc$/ && !(path in kept) { kept[path]; while ((getline line < (tree path)) > 0) text = text line "\n"
    printf "%s", text > (tree path); text = "" }
' "$repository/CONTRIBUTING.md" >"$work/added"
[[ $(wc -l <"$work/added") == 6 ]] || fail "expected three files and three lines, found: $(<"$work/added")"

# The promise, among the bounds.
promise=$(grep -oE '`\{"[a-z]+", [a-z_]+\},`' "$repository/CONTRIBUTING.md" | tr -d '`') || fail 'no promise of the codec'
sed -i "s|^ *{\"none\", .*|&\n      $promise|" "$work/tree/tests/compress/bounds.h"

cmake -S "$work/tree/tests/walkthrough" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=None \
  -DSOURCES="$work/tree" -DBUILD="$build" >"$work/log" || fail "$(<"$work/log")"
cmake --build "$work/build" >"$work/log" || fail "$(tail -n 40 "$work/log")"

# Lists and tests know the new ones: a broken one is found under its name, the right one passes.
"$work/build/sync" --gtest_list_tests | grep 'leaky_average' >/dev/null || fail 'the strategy is not in the list of tests'
for room in collective compress sync; do
  filter='*'
  [[ $room == sync ]] && filter='*/leaky_average'
  "$work/build/$room" --gtest_brief=1 --gtest_filter="$filter" || fail "the tests of $room"
done

break_and_find() { # ROOM FILE FROM TO NAME: with FROM written as TO, the tests fail and name it
  local file="$work/tree/src/trireme/$2"
  grep -qF -- "$3" "$file" || fail "$2 has no '$3' to break"
  sed -i "s|$3|$4|" "$file"
  cmake --build "$work/build" --target "$1" >"$work/log" || fail "$(tail -n 40 "$work/log")"
  if "$work/build/$1" --gtest_brief=1 >"$work/log"; then fail "the tests of $1 do not see a broken $5"; fi
  grep -qF "$5" "$work/log" || fail "the tests of $1 do not name the broken $5"
}
break_and_find collective collective/schedules/chain.cpp 'd == k + 1' 'd == k + 2' 'broadcast chain'
break_and_find compress compress/codecs/peak.cpp '-size' 'size' peak
echo 'three members added, tested, and found where they are broken'
