#!/usr/bin/env bash
# tools/check_threads on small trees, good and broken. usage: check_threads_test.sh REPOSITORY
# shellcheck source=tests/script/check.sh
source "$(dirname -- "$0")/check.sh"
repository=$1

before() {
  tree="$work/a tree"
  rm -rf "$tree"
  mkdir -p "$tree/src/trireme/base" "$tree/src/trireme/net"
  cp "$repository/src/trireme/rooms.txt" "$tree/src/trireme/"
  cp "$repository/src/trireme/base/mutex.h" "$tree/src/trireme/base/"
  cat >"$tree/src/trireme/net/count.h" <<'END'
#pragma once
#include "trireme/base/mutex.h"
class Count {
 public:
  int next();
  void wait_for(int number);

 private:
  trireme::Mutex mutex_;
  trireme::CondVar changed_;
  int count_ TRIREME_GUARDED_BY(mutex_) = 0;
};
END
}

source_is() {
  { echo '#include "trireme/net/count.h"'; cat; } >"$tree/src/trireme/net/count.cpp"
}
check() { run "$repository/tools/check_threads" "$tree"; }

test_accepts_what_holds_the_mutex() {
  source_is <<'END'
int Count::next() {
  trireme::MutexLock lock(mutex_);
  changed_.notify_all();
  return ++count_;
}
void Count::wait_for(int number) {
  trireme::MutexLock lock(mutex_);
  changed_.wait(lock, [&]() TRIREME_REQUIRES(mutex_) { return count_ >= number; });
}
END
  check
  expect_status 0
  expect_equal "$out$err" ''
}

test_finds_a_member_used_without_its_mutex() {
  source_is <<'END'
int Count::next() { return ++count_; }
END
  check
  expect_status 1
  expect_in "$err" "trireme/net/count.cpp:2:30: error: writing variable 'count_' requires holding mutex 'mutex_'"
}

test_finds_what_is_used_after_the_mutex_was_let_go() {
  source_is <<'END'
int Count::next() {
  trireme::MutexLock lock(mutex_);
  ++count_;
  lock.unlock();
  return count_;
}
END
  check
  expect_status 1
  expect_in "$err" "trireme/net/count.cpp:6:10: error: reading variable 'count_' requires holding mutex 'mutex_'"
}

run_all
