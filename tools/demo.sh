#!/usr/bin/env bash
# demo.sh FOLDER: what Glasshead is for, in four commands and a program of its own, all of them in FOLDER.
set -euo pipefail
glasshead=$1/glasshead

show() {  # show SENTENCE ARGUMENT...
  printf '\n# %s\n$ glasshead' "$1"
  shift
  printf ' %q' "$@"
  printf '\n'
  "$glasshead" "$@"
}

show 'One attention head over three tokens that may look back only: every number, from queries to output.' \
  trace three-tokens-causal
show "How the weights of row B come about." \
  trace three-tokens-causal --query B --explain
show 'Token B becomes (1, 1): what moves, and why the rest does not.' \
  trace three-tokens --set 'X[B]=1,1' --diff
show 'A classic mistake beside the right run: hidden after softmax, so rows no longer add to 1.' \
  trace three-tokens-causal --mistake mask-after
printf '\n# The library: the steps as a list that a program prints, runs and changes (examples/steps.cc).\n$ example_steps\n'
"$1/example_steps"
printf '\nREADME.md goes on from here; %s --help shows more commands.\n' "$glasshead"
