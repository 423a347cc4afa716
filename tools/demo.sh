#!/usr/bin/env bash
# demo.sh GLASSHEAD: the main job on real input.
set -euo pipefail
glasshead=$1
show() { echo; echo "\$ glasshead $*"; "$glasshead" "$@"; }
show trace three-tokens-causal
show trace cat-chases-mouse-next --steps weights,out,probabilities
show trace three-tokens-causal --mistake mask-after
