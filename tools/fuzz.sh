#!/usr/bin/env bash
# fuzz.sh BIN_DIR SECONDS: every fuzz target on its kept corpus, two at a time; fails if one finds something.
set -uo pipefail
bin=$1
seconds=$2
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fuzz_one() {
  local target=$1 name=${1#fuzz_} words=()
  mkdir -p "$work/$name"
  [ -f "$root/fuzz/$name.dict" ] && words=("-dict=$root/fuzz/$name.dict")
  if "$bin/$target" "$work/$name" "$root/fuzz/corpus/$name" -max_total_time="$seconds" -rss_limit_mb=2048 \
      -timeout=30 -artifact_prefix="$work/$name-" "${words[@]}" >"$work/$name.log" 2>&1; then
    echo "fuzz $name: $(grep -o 'Done [0-9]* runs' "$work/$name.log" | tail -1)"
  else
    tail -40 "$work/$name.log"
    echo "fuzz $name: FOUND SOMETHING"
    for artifact in "$work/$name"-*; do
      [ -f "$artifact" ] && { echo "input (base64):"; base64 "$artifact" | head -20; }
    done
    return 1
  fi
}

failed=0
targets=$(cd "$bin" && ls fuzz_*)
set -- $targets
while [ $# -gt 0 ]; do
  fuzz_one "$1" & first=$!
  second=
  [ $# -gt 1 ] && { fuzz_one "$2" & second=$!; }
  wait "$first" || failed=1
  [ -n "$second" ] && { wait "$second" || failed=1; }
  shift; [ $# -gt 0 ] && shift
done
exit $failed
