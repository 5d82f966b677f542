#!/usr/bin/env bash
# Builds everything and runs all tests.
#   tools/test.sh            what every change must pass (under 40 minutes cold on two cores)
#   tools/test.sh --long     also the campaigns: long fuzzing, large random differential runs, sanitizers on all tests (hours)
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/packages.sh

long=0
for argument in "$@"; do
  case "$argument" in
    --long) long=1 ;;
    -h | --help) sed -n '2,4p' "$0" | cut -c3-; exit 0 ;;
    *) echo "tools/test.sh: unknown argument '$argument'; it takes --long" >&2; exit 2 ;;
  esac
done

install_packages "$([ $long = 0 ] && echo test || echo long)"
. tools/env.sh
# Campaigns take hours; the timeouts of tests are those of short runs.
cmake --preset dev -DMSC_BUILD_TESTS=ON -DMSC_TEST_TIMEOUT=$([ $long = 0 ] || echo 14400) > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
sed -n 's/^-- No /No /p' build-configure.log # what is left out for want of it
rm -f build-configure.log
cmake --build --preset dev
if [ $long = 0 ]; then
  ctest --preset dev -j "$(($(nproc) + 1))" -LE benchmark # many wait for processes that end, or that hang
  exit
fi
MSC_LONG=1 ctest --preset dev -j "$(nproc)" -LE benchmark
for sanitizer in asan tsan; do
  cmake --preset $sanitizer -DMSC_BUILD_TESTS=ON > /dev/null
  cmake --build --preset $sanitizer
  ctest --preset $sanitizer -LE benchmark
done
