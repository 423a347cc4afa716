#!/usr/bin/env bash
# lint.sh BUILD_DIR: clang-tidy-19 over every source of the library and the programs.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files 'src/*.cc' 'apps/*.cc' | xargs -P "$(nproc)" -n 4 clang-tidy-19 --quiet -p "$1" 2>/dev/null
