#!/usr/bin/env bash
# Everything: the release build and all tests, with the same bytes from clang (the command as AddressSanitizer has it)
# and from WebAssembly; the kernels of aarch64 under an emulator; the Python package, from its wheel; the workbench in
# Chromium; the fast tests under AddressSanitizer and UBSan; what has threads under ThreadSanitizer; 60 seconds of each
# fuzz target; the formatting. What each part took stands before the release tests' own words; what failed is said once
# more at the very end.
# FUZZ_SECONDS and SKIP_SANITIZERS=1 shorten a run by hand.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
log=build/test-logs
mkdir -p "$log"
rm -f "$log"/*.failed

# The lines of a log that tell what failed, as compilers, CTest, GoogleTest, unittest, pytest, node, sanitizers, fuzz.sh
# and cargo write them; $2... are options of grep.
telling() {
  local words='^not ok|error(:|\[)|^ *Error|^E  |^npm (error|ERR!)|CMake Error|\bFAIL\b|FAILED|Failed  |\((Failed|Timeout)\)|FOUND SOMETHING'
  grep -nE "${@:2}" "$words|: Failure$|ERROR: |WARNING: ThreadSanitizer|panicked at" "$1" | sed -E 's/\.{4,}/ ... /'
}

part() {  # part NAME COMMAND...
  local name=$1 start=$SECONDS
  shift
  if "$@" >"$log/$name.log" 2>&1; then
    printf '%-28s ok      %4d s\n' "$name" $((SECONDS - start))
  else
    printf '%-28s FAILED  %4d s   (from %s)\n' "$name" $((SECONDS - start)) "$log/$name.log"
    telling "$log/$name.log" -A12 | head -n 200
    printf '%-28s           its end\n' "$name"
    tail -n 30 "$log/$name.log"
    : >"$log/$name.failed"
  fi
}

build() {  # build PRESET [-D...]: the whole tree of a preset
  cmake --preset "$@" && cmake --build --preset "$1"
}
neon() { cmake --preset aarch64 && cmake --build --preset aarch64 && ctest --preset aarch64; }
threads() {  # what has threads, under ThreadSanitizer
  cmake --preset tsan && cmake --build --preset tsan --target test_base test_core &&
    build/tsan/bin/test_base --gtest_filter='Pool*' &&
    build/tsan/bin/test_core --gtest_filter='Contexts*:Where.threads*:*threads_change_no_bit:Backward.*threads*:Fused.neither*'
}
rust() {  # the crate's own tests, and its style where those tools are installed
  local cargo=(--release --locked --target-dir build/cargo --manifest-path rust/Cargo.toml)
  cargo test "${cargo[@]}" &&
    if cargo fmt --version && cargo clippy --version; then
      cargo fmt --check --manifest-path rust/Cargo.toml && cargo clippy "${cargo[@]}" --all-targets -- -D warnings
    else
      echo 'neither cargo fmt nor cargo clippy here'
    fi
}
formatted() { git ls-files '*.h' '*.cc' | xargs clang-format-19 --dry-run -Werror; }

# Much of these is one thread that waits for a browser or an interpreter: they go side by side.
page() {
  part web tools/web.sh
  part site tools/site.sh
  part python tools/python.sh  # after the page, which the wheel takes along
}
others() {
  if [ "$(uname -m)" = aarch64 ]; then
    echo 'neon                         runs on this machine itself, with the other tests; no emulator is needed'
  else
    part neon neon
  fi
  part rust rust
  part format formatted
}

part build-release build release
part build-wasm build wasm
others &
page
wait
if [ -z "${SKIP_SANITIZERS:-}" ]; then
  part build-asan build asan -DGLASSHEAD_FUZZ=ON
  part asan ctest --preset asan -j "$jobs"
  part fuzz tools/fuzz.sh build/asan/bin "${FUZZ_SECONDS:-60}"
  part tsan threads
fi

ctest --preset release -j "$jobs" || : >"$log/release.failed"
failed=("$log"/*.failed)
[ -e "${failed[0]}" ] || exit 0
# Last, so that the end of whatever keeps the output says it: which parts, and the first lines that tell why.
echo
for mark in "${failed[@]}"; do
  name=$(basename "$mark" .failed)
  echo "FAILED: $name"
  [ ! -f "$log/$name.log" ] || telling "$log/$name.log" | head -n 8 | cut -c1-200
done
exit 1
