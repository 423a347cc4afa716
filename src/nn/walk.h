// One walk over a description does both: it follows the shapes from the inputs to the last tap,
// noting every problem where it is, and writes the steps. A value whose shape is not known because
// of an earlier problem is followed without further complaints.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nn/network.h"

namespace glasshead::nn {

using Shape = std::vector<index_t>;

// A tap on the way.
struct Value {
  std::string tap;
  std::optional<Shape> shape;  // if it is known; rank 2 or more
  std::string source;          // what to name when the shape does not fit: "W_Q", or the tap
  bool is_known() const { return shape.has_value(); }
  index_t rows() const { return (*shape)[shape->size() - 2]; }
  index_t columns() const { return shape->back(); }
};

// Decoding with a cache (generate.h): how many rows came before this run's. Their keys and values
// are then the inputs "<prefix>k_earlier" and "<prefix>v_earlier".
struct CachedRows {
  index_t earlier = 0;
};

class Walk {
 public:
  // `network` must outlive the walk.
  Walk(const Network& network, Shapes inputs, std::optional<CachedRows> cache)
      : network_(network), inputs_(std::move(inputs)), cache_(cache) {}

  void run();
  std::vector<Problem> problems;
  std::vector<Step> list;

 private:
  // What fields are called in problems ("block.1.attention"), and what is put before taps.
  struct Place {
    std::string field, prefix;
  };
  // What a matrix's axes are called in problems.
  struct Axes {
    std::string rows, columns;
  };
  struct Heads {
    Value q, k, v;
  };

  // network.cc
  Value begin();
  Value positioned(const Value& x);
  Value block(const Block& block, const Place& place, const Value& x);
  Value sublayer(const Attention& attention, const Norm& norm, const Block& block,
                 const Place& place, const Value& x);
  Value feed_forward(const FeedForward& layers, const Place& place, const Value& x);
  void end(Value h);

  // walk_attention.cc
  Value attend(const Attention& attention, bool is_cross, const Place& place, const Value& x);
  Value operand(const char* id, const Projection& projection, const std::string& given,
                const Place& place, const Value& x);
  void cut_into_heads(const Attention& attention, const Place& place, Heads& heads);
  Value cut(const Value& x, index_t heads, const char* called, const std::string& tap);
  Value rotated(const Value& x, const std::string& tap, const Rope& rope, index_t first);
  Value cached(const Value& x, const std::string& tap);
  bool fit_together(const Attention& attention, const Heads& heads);
  void check_options(const AttentionOptions& options, const Place& place, const Heads& heads);

  // walk.cc
  std::optional<Shape> input(const std::string& tap, const std::string& wanted);
  Value matrix_input(const std::string& tap, const std::string& wanted);
  Value project(const char* op, const std::string& tap, const Value& x,
                const Projection& projection, const Axes& axes);
  void check_row(const std::string& tap, const std::string& wanted, const Value& of);
  Value norm(const Norm& norm, const std::string& tap, const std::string& field, const Value& x);
  Value residual(const std::string& tap, const Value& x, const Value& change);
  Value add(const Op* op, Value result, std::vector<std::string> reads,
            std::vector<StepNumber> numbers = {});
  void problem(std::string where, std::string what);

  const Network& network_;
  Shapes inputs_;
  std::optional<CachedRows> cache_;
};

// "3x2"; of a vector "3 numbers".
std::string size_text(const Shape& shape);

}  // namespace glasshead::nn
