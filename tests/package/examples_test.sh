#!/usr/bin/env bash
# Installs a build to an empty prefix, then builds and runs against that alone: every installed header by itself, every
# snippet of the documentation, every example.
# usage: examples_test.sh REPOSITORY BUILD COMPILER
set -euo pipefail
repository=$1 build=$2 compiler=$3

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

against_prefix() { # PROJECT FOLDER [CMAKE FLAG...]
  cmake -S "$1" -B "$2" "${@:3}" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_PREFIX_PATH="$work/a prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
  cmake --build "$2"
}

cmake --install "$build" --prefix "$work/a prefix"
if find "$work/a prefix" -type f -exec grep -lF -e "$repository" {} + | grep -E '\.(cmake|h)$'; then
  echo 'the files above name the source folder: the package cannot be moved' >&2
  exit 1
fi
# What is installed is what lies in include/, and all of it.
diff -r "$repository/include" "$work/a prefix/include"
"$work/a prefix/bin/trireme" --version

{
  echo '#include "stand_ins.h"'
  cd "$repository" && awk -f tests/package/snippets.awk README.md CONTRIBUTING.md docs/*.md
} >"$work/snippets.cpp"
against_prefix "$repository/tests/package" "$work/headers" -DSNIPPETS="$work/snippets.cpp"
"$work/headers/headers"

against_prefix "$repository/examples" "$work/examples"
cd "$work"  # where runs are written
for source in "$repository"/examples/*.cpp; do
  if [[ ! -e $source ]]; then continue; fi
  name=$(basename "$source" .cpp)
  echo "--- $name"
  timeout 100 "$work/examples/$name"
  timeout 100 "$work/a prefix/bin/trireme" run -n 2 -- "$work/examples/$name"
done
