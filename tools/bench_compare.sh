#!/usr/bin/env bash
# Measures against PyTorch, ONNX Runtime, OpenVINO, ggml and JAX: `tools/bench_compare.sh [options of bench/compare/compare.py]`;
# with --audit first it makes their report cards (bench/compare/audit.py) instead, with --models it times whole models
# (bench/compare/models.py).
# They come from PyPI, in the versions of bench/compare/requirements.txt, into an environment of their own (COMPARE_ENV, by
# default build/compare-env, 6.5 GB; PYTHON makes it, 3.11 or newer).
set -euo pipefail
cd "$(dirname "$0")/.."
environment=${COMPARE_ENV:-build/compare-env}
wanted=bench/compare/requirements.txt

if ! cmp -s "$wanted" "$environment/installed.txt"; then
  ${PYTHON:-python3} -c 'import sys; sys.exit("Python 3.11 or newer is needed: set PYTHON" if sys.version_info < (3, 11) else 0)'
  echo "installing into $environment: 6.5 GB, most of it PyTorch's" >&2
  ${PYTHON:-python3} -m venv "$environment" || { echo 'on Debian: apt-get install python3-venv' >&2; exit 1; }
  "$environment/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$environment/installed.txt"
fi

if [ "${1:-}" = --audit ]; then  # report cards instead of times
  shift
  cmake --preset release >/dev/null
  cmake --build --preset release --target glasshead_cli
  exec "$environment/bin/python" bench/compare/audit.py "$@"
fi

cmake --preset bench >/dev/null
cmake --build --preset bench --target glasshead_compare
if [ "${1:-}" = --models ]; then
  shift
  exec "$environment/bin/python" bench/compare/models.py "$@"
fi
"$environment/bin/python" bench/compare/compare.py "$@"
"$environment/bin/python" bench/compare/tables.py
