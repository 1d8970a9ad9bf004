#!/usr/bin/env bash
# Every command of ours that the pages show is one that the program has, with flags that it has.
# usage: docs_test.sh REPOSITORY BUILD
set -euo pipefail
cd -- "$1"
program=$2/bin/trireme

declare -A helps
help_of() { # WORD... -> the variable `help`
  local key="$*"
  if [[ -z ${helps[$key]+known} ]]; then helps[$key]=$(COLUMNS=1000 "$program" "$@" --help 2>&1) || helps[$key]=''; fi
  help=${helps[$key]}
}

wrong=0
complain() { # FILE:LINE WHAT
  printf '%s: %s\n' "$1" "$2" >&2
  wrong=1
}

check_command() { # FILE:LINE WORD...   as it stands behind the program's name
  local at=$1 words=("${@:2}") sub=() word flag
  case ${words[0]-} in
    '' | -* | *: | test | build | packages | torch) return ;; # the script's own
  esac
  sub=("${words[0]}")
  if [[ ${words[0]} == bench && ${words[1]-} != -* && -n ${words[1]-} ]]; then sub+=("${words[1]}"); fi
  if [[ ${words[0]} == tune && " ${words[*]} " == *' --ops '* ]]; then sub+=(--ops); fi # a command of its own
  help_of "${sub[@]}"
  if [[ ${sub[0]} == bench && -z $help ]]; then help_of bench && sub=(bench); fi
  if [[ -z $help ]]; then complain "$at" "there is no 'trireme ${sub[*]}'" && return; fi
  for word in "${words[@]}"; do
    if [[ $word == -- ]]; then break; fi
    if [[ $word != --* ]]; then continue; fi
    flag=${word%%=*}
    flag=${flag//[^a-zA-Z0-9-]/}
    if [[ $flag != --help && $help != *"$flag"[^a-z0-9-]* ]]; then complain "$at" "trireme ${sub[*]} has no $flag"; fi
  done
}

commands=0
while IFS=$'\t' read -r at line; do
  read -ra words <<<"$line"
  check_command "$at" "${words[@]}"
  commands=$((commands + 1))
done < <(awk '
  function say() { if (pending != "") print pending; pending = "" }
  FNR == 1 { blank = 1; inside = 0; kept = "" }
  /^    / && (inside || blank) {
    inside = 1
    text = substr($0, 5)
    sub(/ *#.*$/, "", text)
    if (kept != "") { text = kept " " text; kept = "" }
    if (text ~ /\\$/) { kept = substr(text, 1, length(text) - 1); next }
    if (text ~ /^trireme: /) { pending = ""; next }  # what it says to a slip that the page shows
    say()
    if (match(text, /^(\$ )?(sudo )?([A-Z_]+=[^ ]+ )*(\.\/)?trireme /)) {
      rest = substr(text, RLENGTH + 1)
      sub(/ *[|>&;].*$/, "", rest)
      pending = sprintf("%s:%d\t%s", FILENAME, FNR, rest)
    }
    blank = 0
    next
  }
  /^$/ { blank = 1; next }
  { inside = 0; blank = 0 }
  END { say() }' README.md CONTRIBUTING.md docs/*.md)

if ((commands < 30)); then complain docs "only $commands commands were found"; fi
printf '%s commands of the pages looked at\n' "$commands"
exit "$wrong"
