#!/usr/bin/env bash
# web.sh [build|test]: the workbench's page, built into build/web (any web server can host the folder), and its tests.
# The engine comes from make wasm, the command that its bytes are compared with from make build.
set -euo pipefail
cd "$(dirname "$0")/.."
for module in learn glasshead lesson; do
  [ -f "build/wasm/bin/$module.wasm" ] || { echo "web.sh: build/wasm/bin/$module.wasm is missing (make wasm)" >&2; exit 1; }
done

# npm ci starts from nothing, so only when the pinned versions changed.
if ! cmp -s web/package-lock.json web/node_modules/.installed; then
  (cd web && npm ci --fetch-retries=5 --no-audit --no-fund --loglevel=error)
  cp web/package-lock.json web/node_modules/.installed
fi
node tools/pack.mjs build/wasm/bin/{learn,lesson,glasshead}.wasm
(cd web && npm run --silent build && npm run --silent build:one-file)
node tools/one_file.mjs build/web-one-file build/wasm/bin/lesson.wasm build/web/lesson.html
[ "${1:-test}" = build ] && exit 0

command=${GLASSHEAD:-build/release/bin/glasshead}
[ -x "$command" ] || { echo "web.sh: $command is missing (make build)" >&2; exit 1; }
export GLASSHEAD=$(realpath "$command")
(cd web && npx --no-install vitest run)
node --test --test-concurrency=1 tests/web/*.test.mjs
