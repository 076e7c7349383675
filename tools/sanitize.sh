#!/usr/bin/env bash
# Called by `./run sanitize asan|tsan [ctest arguments]`: the parts without LibTorch and their tests, instrumented, in build-asan or
# build-tsan. A report of any process fails the run, also of one whose exit code nobody looks at.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

kind=${1:-}
case "$kind" in
  asan | tsan) shift ;;
  *) fail "sanitize wants asan or tsan, found '$kind'" "asan finds memory errors and undefined behaviour, tsan data races" ;;
esac
targets=(base_tests config_tests io_tests telemetry_tests jobs_tests rendezvous_tests launch_tests sweep_tests convoy launch_program_tests
  sweep_program_tests)
tests='base|config|io|telemetry|jobs|rendezvous|launch|sweep|launch_failure_modes|launch_signals|launch_restarts|launch_timers|launch_hostile_use|sweep_program'
# What has no threads of its own says nothing to tsan.
if [ "$kind" = asan ]; then
  targets+=(settings_tests text_tests data_tests evaluate_tests front_tests)
  tests="$tests|settings|text|data|evaluate|front"
fi

folder=$PWD/build-$kind
reports=$folder/reports
log=$folder/build.log
rm -rf "$reports"
mkdir -p "$reports"
# The Rust library is not instrumented: the one of the ordinary build serves.
[ -e "$folder/rust" ] || [ ! -d build/rust ] || ln -s ../build/rust "$folder/rust"
say "building (log: $log)"
{
  cmake --preset "$kind" -DCONVOY_BUILD_TESTS=ON && cmake --build "$folder" -j "$(nproc)" --target "${targets[@]}"
} >"$log" 2>&1 || { tail -n 40 "$log" >&2; fail "the build failed" "read $log"; }

say "testing"
export ASAN_OPTIONS=log_path=$reports/asan:detect_stack_use_after_return=1
export UBSAN_OPTIONS=log_path=$reports/ubsan:print_stacktrace=1
export TSAN_OPTIONS=log_path=$reports/tsan:second_deadlock_stack=1
# What bounds the time or the memory of instrumented code says nothing.
export GTEST_FILTER=-BrokenFiles.LargeHeadersAreRefusedOrReadInTime:FlightRecord.EnteringCostsLessThanAMicrosecond:Launcher.RankBeyondTheMemoryLimitEndsWithTwelve
code=0
# Without random addresses: tsan of GCC 12 does not start where the kernel spreads them over more than 28 bits.
setarch -R ctest --test-dir "$folder" --no-tests=error --output-on-failure -j "$(nproc)" -R "^($tests)\$" "$@" || code=$?
if compgen -G "$reports/*" >/dev/null; then
  head -n 60 "$reports"/* >&2
  fail "the sanitizer has reports" "read them in $reports"
fi
[ "$code" = 0 ] || fail "tests failed" "see above"
say "no reports"
