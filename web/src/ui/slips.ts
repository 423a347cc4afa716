// What people get wrong at each step, by the operation's name.
export const kSlips: Record<string, string> = {
  q: 'W_Q and W_K traded, or one of them left out.',
  scores: 'the wrong matrix transposed: K·Qᵀ gives every score, in the other key\'s row.',
  scaled: 'divided by d_k instead of √d_k, or not at all.',
  masked: 'hidden with a large negative number, or after softmax, so that rows no longer add to 1.',
  row_max: 'left out: then exp overflows above 709.',
  weights: 'softmax down the columns, or over the whole matrix, instead of along each row.',
  out: 'the weights multiplied with X instead of V.',
  probabilities: 'softmax over the tokens of the text instead of the words of the vocabulary.',
};
