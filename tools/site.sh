#!/usr/bin/env bash
# site.sh: docs, lessons and the workbench in build/site, every link in it followed. The workbench comes from make web,
# the lessons from the command of make build.
set -euo pipefail
cd "$(dirname "$0")/.."
command=${GLASSHEAD:-build/release/bin/glasshead}
[ -x "$command" ] || { echo "site.sh: $command is missing (make build)" >&2; exit 1; }
[ -f build/web/index.html ] || { echo "site.sh: build/web/index.html is missing (make web)" >&2; exit 1; }
command -v cmark-gfm >/dev/null || { echo "site.sh: cmark-gfm is missing: apt-get install cmark-gfm" >&2; exit 1; }
python3 tools/site.py "$command" build/web build/site
python3 tests/docs/links.py build/site
