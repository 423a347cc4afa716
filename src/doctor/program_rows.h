// What a program gives for a row, in f64, and how far rounding in its arithmetic can move each
// number.
//
// Distances, with u half the distance from 1 to the next number of f32 (of f64 for f64), at worst:
//   score   E = u ((d_k + 4) |scale| sum_e |q_e k_e| + 8 |s| + 3 |bias|), for any order of sums;
//           with rotary positions |q||k| joins the sum, and so does what f32 angles lose, which
//           grows with the positions
//   weight  t = E + u (m - s) + 8 u;   tau = sum_j w_j t_j
//           |change of w| <= w (e^(t + tau) - 1 + 8 u)
//   out     sum_j w_j (e^(t_j + tau) - 1) |v_j - out| + (keys + 24) u sum_j |w_j v_j|
//   lse     tau + u (24 + keys + 2 |lse|)
// The derivation is that of docs/kernels.md, for sums in any order. Where the arithmetic is bf16
// or f16, with its own u, sums are kept in f32 but every intermediate may be stored narrow. Its
// roundings are many and independent, so at worst is far from what happens: four root mean squares
// of them are taken (a rounding is uniform in +-u, so that is seven of its standard deviations),
// and in full the one that all keys share, that of the scale. A score that moves by x changes its
// weight by e^x - 1 times, not by x. out is at most as far off as the values that the row sees.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "core/bias_plan.h"
#include "core/mask_plan.h"
#include "doctor/program.h"
#include "doctor/turns.h"

namespace glasshead::doctor {

struct RowNumbers {
  std::vector<double> scores, weights, out;  // [kv_len], [kv_len], [d_v]
  std::vector<double> score_error, weight_error, out_error;
  std::vector<double> out_size;  // sum_j |w_j v_j|
  std::vector<char> visible;     // [kv_len] to the program
  double lse = 0, lse_error = 0;
  std::vector<double> dq, dq_error;  // [d_k]; empty without d_out
  bool is_empty = false;
  bool is_open = false;  // rounding decides between NaN, 0 and numbers: any would do
};

// dk and dv of one key/value head.
struct KeyNumbers {
  std::vector<double> dk, dk_error;  // [kv_len, d_k]
  std::vector<double> dv, dv_error;  // [kv_len, d_v]
};

double half_ulp(DType type);  // u: 2^-53, 2^-24, 2^-8, 2^-11
// What a number near 0 may be off by: the smallest number above 0; of f32 and bf16 the smallest
// normal one, since many programs take less for 0.
double smallest(DType type);
double largest(DType type);

class Runner {
 public:
  // `columns`: of out only so many are computed (all of them where there are gradients).
  explicit Runner(const Program& program, index_t columns = std::numeric_limits<index_t>::max());
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  const RowNumbers& row(const RowIndex& at);
  // Of a program that has gradients. Goes through every row of every head that reads head g.
  KeyNumbers key_gradients(index_t b, index_t g);

 private:
  struct Scored {                       // a row up to its scores
    std::vector<double> scores, error;  // error: at worst, of sums in f32 or f64
    std::vector<double> size;           // |scale| sum_e |q_e k_e|
    std::vector<char> visible, included;
    bool is_poisoned = false;  // by what a hidden key holds
  };

  const RowNumbers& computed(const RowIndex& at);
  void see(const RowIndex& at, Scored& to);
  void read_query(const RowIndex& at);  // into query_, turned where the program turns it
  void score(const RowIndex& at, Scored& to);
  double biased(const RowIndex& at, index_t j, double score, double& error) const;
  double added(double score, double number, double& error) const;
  double product(const RowIndex& at, index_t j, const double* query, double& size);
  const double* key(const RowIndex& at, index_t j);
  const double* value(const RowIndex& at, index_t j);
  index_t kv_head(index_t h) const;
  index_t kv_row(index_t h, index_t j) const;
  void turn(double* x, index_t position);
  index_t query_position(index_t b, index_t i) const;
  double product_of_lengths() const;
  void softmax(const RowIndex& at, Scored& scored, RowNumbers& to);
  void tile_weights(const Scored& scored, double sum, RowNumbers& to) const;
  double lse_of(const Scored& scored, double max, double sum) const;
  void fill_matrix(const RowIndex& at);
  void across_rows(const RowIndex& at, Scored& scored, RowNumbers& to);
  void across_heads(const RowIndex& at, Scored& scored, RowNumbers& to);
  void empty_row(RowNumbers& to) const;
  void weight_errors(const Scored& scored, double max, RowNumbers& to);
  // ds of the row that was computed last, and its error: [kv_len] each.
  struct ScoreGradients {
    std::vector<double> ds, error;
  };
  ScoreGradients score_gradients(const RowIndex& at);
  void query_gradient(const RowIndex& at, RowNumbers& to);
  void sum_values(const RowIndex& at, const Scored& scored, RowNumbers& to);
  void keep_within(const RowIndex& at, const Scored& scored, RowNumbers& to);
  void sum_in_f16(const RowIndex& at, RowNumbers& to);
  void value_errors(const RowIndex& at, const Scored& scored, bool is_average, double mean,
                    RowNumbers& to);

  Program program_;
  PairShape shape_;
  index_t columns_;
  MaskPlan plan_;
  BiasPlan bias_;
  Pairs pairs_;
  bool has_dense_bias_ = false;
  bool is_given_bias_ = false;  // by one table alone
  double u_ = 0, narrow_ = 0;   // of sums; of what is stored, 0 where that is as wide
  nn::Rope rope_;
  std::shared_ptr<TurnTable> turns_;  // with rotary positions
  double turn_ = 0;  // an angle's error in u, per position: that of the second pair, in f32 tables
  std::vector<double> query_, key_, value_;
  std::vector<std::uint8_t> flags_;
  std::vector<double> matrix_;  // weights of one head, where softmax or out runs across rows
  RowIndex matrix_of_{-1, -1, 0};
  Scored scored_;
  RowNumbers numbers_;
  std::vector<double> noise_;  // [kv_len] root mean square of the narrow roundings of a score
};

}  // namespace glasshead::doctor
