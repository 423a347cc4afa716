#!/usr/bin/env bash
# python.sh [torch]: builds the wheel, installs it into an environment of its own (PYTHON_ENV, by default
# build/python-env; PYTHON makes it, 3.10 or newer), and tests it there: its style, its types, what it does. With
# `torch` also PyTorch and transformers (5 GB), in build/torch-env.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=bindings/python
environment=${PYTHON_ENV:-build/python-env}
wanted=("$folder/requirements.txt")
if [ "${1:-}" = torch ]; then
  environment=${PYTHON_ENV:-build/torch-env}
  wanted+=("$folder/requirements-torch.txt")
fi

if ! cat "${wanted[@]}" | cmp -s - "$environment/installed.txt"; then
  "${PYTHON:-python3}" -m venv "$environment"
  "$environment/bin/pip" install --quiet --retries 10 --no-cache-dir --disable-pip-version-check "${wanted[@]/#/-r}"
  cat "${wanted[@]}" >"$environment/installed.txt"
fi

# The same compiler and flags as the release tree, so that the compiler's cache has most of it.
wheels=build/wheels
rm -rf "$wheels"
CXX=${CXX:-g++-12} CMAKE_GENERATOR=Ninja CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_COMPILERCHECK=content CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 \
  "$environment/bin/pip" wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -C cmake.define.GLASSHEAD_WERROR=ON -C "cmake.define.GLASSHEAD_CARGO_DIR=$PWD/build/cargo" -w "$wheels" .
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheels"/glasshead-*.whl
"$environment/bin/ruff" check --quiet .
"$environment/bin/ruff" format --check --quiet .
"$environment/bin/mypy" --cache-dir build/mypy
exec "$environment/bin/python" -m pytest -q "${@:2}"
