#!/usr/bin/env bash
# coverage.sh BUILD_DIR: runs the fast tests and prints the line coverage of each file under src/.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(pwd)
find "$1" -name '*.gcda' -delete
ctest --test-dir "$1" -L fast --output-on-failure -j "$(nproc)" | tail -3
find "$1/src" -name '*.gcda' | while read -r file; do
  gcov-12 -n -o "$(dirname "$file")" "$file" 2>/dev/null
done | awk -v root="$root/src/" '
  /^File/ { name = $0; gsub(/^File .|.$/, "", name); next }
  /^Lines executed/ && index(name, root) == 1 {
    split($0, part, /[:% ]+/); percent = part[3]; lines = part[5]
    name = substr(name, length(root) + 1)
    if (!(name in best) || percent > best[name]) { best[name] = percent; count[name] = lines } }
  END { for (n in best) { printf "%6.1f %% of %4d  %s\n", best[n], count[n], n; hit += best[n] * count[n]; all += count[n] }
        if (all) printf "%6.1f %% of %4d  all of src\n", hit / all, all }' | sort -n
