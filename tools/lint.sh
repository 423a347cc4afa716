#!/usr/bin/env bash
# lint.sh BUILD_DIR [quick]: clang-tidy-19 over every source of the library and the programs, with the compile
# commands of BUILD_DIR. Prints what it finds and exits 1 if that is anything. quick leaves the static analyzer out.
set -eu
cd "$(dirname "$0")/.."
checks=()
case "${2:-}" in
  quick) checks=(--checks=-clang-analyzer-*) ;;
  "") ;;
  *) echo "lint.sh BUILD_DIR [quick]: $2?" >&2; exit 2 ;;
esac
[ -f "$1/compile_commands.json" ] || { echo "lint.sh: $1 has no compile_commands.json" >&2; exit 2; }

files=$(git ls-files 'src/*.cc' 'apps/*.cc')
# The counts are of warnings in the headers of others, which are not shown.
if xargs -P "$(nproc)" -n 1 clang-tidy-19 --quiet -p "$1" "${checks[@]}" <<<"$files" 2>&1 |
  grep -vE '^[0-9]+ (warning|error)s?( and [0-9]+ errors?)? (generated|treated as)'; then
  exit 1
fi
