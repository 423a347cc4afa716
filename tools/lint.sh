#!/usr/bin/env bash
# lint.sh BUILD_DIR [quick]: clang-tidy-19 over every source of the library and the programs, with the compile
# commands of BUILD_DIR, which needs to be configured, not built. Prints what it finds and exits 1 if that is
# anything. quick leaves the static analyzer out.
set -eu
cd "$(dirname "$0")/.."
# The analyzer gives up on a function after this many steps. Its own limit, 225,000, takes over four times as long
# (src/kernels/select.cc: 10 s, with this 2 s).
checks=(--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=50000)
case "${2:-}" in
  quick) checks=(--checks=-clang-analyzer-*) ;;
  "") ;;
  *) echo "lint.sh BUILD_DIR [quick]: $2?" >&2; exit 2 ;;
esac
[ -f "$1/compile_commands.json" ] || { echo "lint.sh: $1 has no compile_commands.json" >&2; exit 2; }

tidy=(clang-tidy-19 --quiet "${checks[@]}")
# Largest first, so that no long file is left for the end. What isn't compiled for this processor has no command.
files=$(git ls-files 'src/*.cc' 'apps/*.cc' | xargs ls -S |
  while read -r file; do
    if grep -qF "$PWD/$file\"" "$1/compile_commands.json"; then echo "$file"
    elif [ "${file##*/}" != neon.cc ]; then echo "lint.sh: $1 does not compile $file: not read" >&2; fi
  done)
all() {
  xargs -P "$(nproc)" -n 1 "${tidy[@]}" -p "$1" <<<"$files"
  # aarch64's kernels, with the headers of Debian's g++-aarch64-linux-gnu (make setup).
  [ "$(uname -m)" != x86_64 ] || "${tidy[@]}" src/kernels/isa/neon.cc -- --target=aarch64-linux-gnu -std=c++20 \
    -Iinclude -Isrc -ffp-contract=off -fno-exceptions -fno-math-errno -fno-trapping-math
}
# The counts are of warnings in the headers of others, which are not shown.
if all "$1" 2>&1 | grep -vE '^[0-9]+ (warning|error)s?( and [0-9]+ errors?)? (generated|treated as)'; then
  exit 1
fi
