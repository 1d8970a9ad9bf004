#!/usr/bin/env bash
# Installs a build to an empty prefix, then builds and runs against that alone: every installed header, every example.
# usage: examples_test.sh REPOSITORY BUILD COMPILER
set -euo pipefail
repository=$1 build=$2 compiler=$3

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

against_prefix() { # PROJECT FOLDER
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_PREFIX_PATH="$work/a prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
  cmake --build "$2"
}

cmake --install "$build" --prefix "$work/a prefix"
if find "$work/a prefix" -type f -exec grep -lF -e "$repository" {} + | grep -E '\.(cmake|h)$'; then
  echo 'the files above name the source folder: the package cannot be moved' >&2
  exit 1
fi
"$work/a prefix/bin/trireme" --version

against_prefix "$repository/tests/package" "$work/headers"
"$work/headers/headers"

against_prefix "$repository/examples" "$work/examples"
for source in "$repository"/examples/*.cpp; do
  if [[ ! -e $source ]]; then continue; fi
  name=$(basename "$source" .cpp)
  echo "--- $name"
  timeout 60 "$work/examples/$name"
  timeout 60 "$work/a prefix/bin/trireme" run -n 2 -- "$work/examples/$name"
done
