#!/usr/bin/env bash
# tools/check_pages on small trees, good and broken. usage: check_pages_test.sh REPOSITORY
# shellcheck source=tests/script/check.sh
source "$(dirname -- "$0")/check.sh"
repository=$1

before() {
  tree="$work/a tree"
  rm -rf "$tree"
  mkdir -p "$tree/include"
  file pages/page.cpp '{"shell.html", "one.css", "one.js"}'
  file pages/shell.html '<html>{{script}}</html>'
  file pages/one.css 'main { margin: 0; }'
  file pages/one.js "document.body.append('one');"
}

# Writes a file of the tree, line by line.
file() {
  local path="$tree/src/trireme/$1"
  mkdir -p "$(dirname "$path")"
  printf '%s\n' "${@:2}" >"$path"
}
check() { run "$repository/tools/check_pages" "$tree"; }

test_good_pages_pass() {
  check
  expect_status 0
  expect_equal "$out$err" ''
}

test_layout_is_checked() {
  file pages/one.js $'\tone();' 'two(); '
  file pages/one.css "$(printf '%0130d' 0)" 'main {'
  check
  expect_status 1
  expect_in "$err" 'src/trireme/pages/one.js:1: a tab'
  expect_in "$err" 'src/trireme/pages/one.js:2: ends with a blank'
  expect_in "$err" 'src/trireme/pages/one.css:1: longer than 125 bytes'
  expect_in "$err" 'braces do not match'
}

test_a_page_in_cpp_is_named() {
  file mesh/draw.cpp 'int x;' 'const char* page = "<html><body>";'
  check
  expect_status 1
  expect_equal "$err" 'src/trireme/mesh/draw.cpp:2: a page in C++; it belongs into src/trireme/pages'
}

test_a_file_of_no_page_is_named() {
  file pages/two.js 'two();'
  check
  expect_status 1
  expect_equal "$err" 'src/trireme/pages/two.js:1: no page has it; see page.cpp'
}

test_an_empty_room_is_told() {
  rm "$tree"/src/trireme/pages/*.{html,css,js}
  check
  expect_status 1
  expect_in "$err" 'no page lies in src/trireme/pages'
}

run_all
