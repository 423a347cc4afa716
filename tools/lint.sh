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
# Largest first, so that no long file is left for the end. A kernel set may be another processor's.
files= unread=
while read -r file; do
  if grep -qF "$PWD/$file\"" "$1/compile_commands.json"; then files+=$file$'\n'
  elif [[ $file != src/kernels/isa/* ]]; then unread+=" $file"; fi
done < <(git ls-files 'src/*.cc' 'apps/*.cc' | xargs ls -S)
[ -z "$unread" ] || { echo "lint.sh: $1 does not compile:$unread" >&2; exit 2; }

kernel_set() {  # kernel_set NAME FLAGS...: one that the build for this processor lacks
  "${tidy[@]}" "src/kernels/isa/$1.cc" -- "${@:2}" -std=c++20 -Iinclude -Isrc -ffp-contract=off -fno-exceptions \
    -fno-math-errno -fno-trapping-math
}
all() {
  printf %s "$files" | xargs -P "$(nproc)" -n 1 "${tidy[@]}" -p "$1"
  kernel_set scalar_f64  # WebAssembly's
  # aarch64's, with the headers of Debian's g++-aarch64-linux-gnu (make setup).
  [ "$(uname -m)" != x86_64 ] || kernel_set neon --target=aarch64-linux-gnu
}
# The counts are of warnings in the headers of others, which are not shown.
if all "$1" 2>&1 | grep -vE '^[0-9]+ (warning|error)s?( and [0-9]+ errors?)? (generated|treated as)'; then
  exit 1
fi
