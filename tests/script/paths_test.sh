#!/usr/bin/env bash
# Every file that the pages name is there: what they link to, and what stands in `…` and looks like a path of ours.
# usage: paths_test.sh REPOSITORY
set -euo pipefail
cd -- "$1"

wrong=0 seen=0
while IFS=$'\t' read -r at kind path; do
  seen=$((seen + 1))
  base=$(dirname -- "${at%%:*}")
  path=${path%%#*}
  if [[ $path == *'<'* ]]; then path=${path%%<*} path=${path%/*}; fi  # of <name>.cpp the folder
  if [[ $kind == link ]]; then
    [[ -e $base/$path ]] && continue
  else
    for root in . src/trireme include/trireme src include tests; do
      [[ -e $root/$path ]] && continue 2
    done
    [[ $path != */* && -n $(find tests -name "$path") ]] && continue
  fi
  printf '%s: there is no %s\n' "$at" "$path" >&2
  wrong=1
done < <(awk '
  FNR == 1 { fenced = made = 0 }
  /^```/ { fenced = !fenced }
  fenced { next }
  /^## / { made = /^## Three members/ }  # of files that a reader makes there
  {
    text = $0
    while (match(text, /\]\([^)]+\)/)) {
      path = substr(text, RSTART + 2, RLENGTH - 3)
      if (path !~ /^(https?:|#)/) printf "%s:%d\tlink\t%s\n", FILENAME, FNR, path
      text = substr(text, RSTART + RLENGTH)
    }
    text = $0
    while (!made && match(text, /`[^`]+`/)) {
      path = substr(text, RSTART + 1, RLENGTH - 2)
      # With a folder of ours and an ending, or below one of the folders of the repository.
      if (path ~ /^[a-z_]+\/[a-z_\/<>]+\.(h|cpp|inc|txt|sh|cmake|in|js|css|html|md|awk)$/ || path ~ /^(src|include|tests|tools|docs|cmake|examples)\/[A-Za-z0-9_.\/<>-]+$/)
        printf "%s:%d\ttext\t%s\n", FILENAME, FNR, path
      if (path ~ /^[a-z0-9_]+_test\.(cpp|sh)$/) printf "%s:%d\ttext\t%s\n", FILENAME, FNR, path
      text = substr(text, RSTART + RLENGTH)
    }
  }' README.md CONTRIBUTING.md docs/*.md)
((seen > 200)) || { echo "only $seen paths found: has the way they are written changed?" >&2; exit 1; }
exit "$wrong"
