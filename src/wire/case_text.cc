#include "wire/case_text.h"

#include <functional>
#include <variant>

#include "glasshead/attention.h"
#include "wire/json_writer.h"

namespace glasshead::wire {
namespace {

struct Sizes {
  index_t heads = 1, q_len = 0, kv_len = 0;
};

// An entry of a tensor that is broadcast to [batch, heads, q_len, kv_len], of batch entry 0.
double entry(const Broadcast& from, index_t h, index_t i, index_t j) {
  const index_t at[4] = {0, h, i, j};
  index_t offset = 0;
  for (int axis = 0; axis < from.rank; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (from.shape[a] != 1) offset += at[4 - from.rank + axis] * from.strides[a];
  }
  return load_element(from.data, from.dtype, offset);
}

class CaseText {
 public:
  explicit CaseText(const Case& c)
      : c_(c),
        attention_(c.network.blocks.at(0).attention),
        json_([this](std::string_view piece) { text_ += piece; }) {
    sizes_ = {attention_.heads, static_cast<index_t>(c.query_labels.size()),
              static_cast<index_t>(c.key_labels.size())};
  }

  std::string write() {
    json_.begin_object();
    json_.key("schema").value("glasshead.case/1");
    if (!c_.title.empty()) json_.key("title").value(c_.title);
    if (!c_.from.empty()) json_.key("from").value(c_.from);
    json_.key("tokens").values(std::span<const std::string>(c_.query_labels));
    json_.key("keys").values(std::span<const std::string>(c_.key_labels));
    json_.key("attention").begin_object();
    json_.key("heads").value(attention_.heads).key("kv_heads").value(attention_.kv_heads);
    for (const auto& [tap, value] : c_.inputs) {
      json_.key(tap);
      tensor(value, 0, 0);
    }
    options();
    json_.end_object().end_object();
    json_.flush();
    return text_ + "\n";
  }

 private:
  // `at`: which of the parts that the axes before `axis` make.
  void tensor(const TraceTensor& value, std::size_t axis, index_t at) {
    const index_t extent = value.shape[axis];
    if (axis + 1 == value.shape.size()) {
      json_.values(
          std::span(value.values)
              .subspan(static_cast<std::size_t>(at * extent), static_cast<std::size_t>(extent)));
      return;
    }
    json_.begin_array();
    for (index_t n = 0; n < extent; ++n) tensor(value, axis + 1, at * extent + n);
    json_.end_array();
  }

  // [heads][q_len][kv_len].
  void pairs(const std::function<void(index_t h, index_t i, index_t j)>& write) {
    json_.begin_array();
    for (index_t h = 0; h < sizes_.heads; ++h) {
      json_.begin_array();
      for (index_t i = 0; i < sizes_.q_len; ++i) {
        json_.begin_array();
        for (index_t j = 0; j < sizes_.kv_len; ++j) write(h, i, j);
        json_.end_array();
      }
      json_.end_array();
    }
    json_.end_array();
  }

  void options() {
    const AttentionOptions& options = attention_.options;
    if (options.scale) json_.key("scale").value(*options.scale);
    if (options.softcap > 0) json_.key("softcap").value(options.softcap);
    if (!options.mask.parts().empty()) {
      json_.key("mask").begin_array();
      for (const Mask::Part& part : options.mask.parts())
        std::visit([this](const auto& known) { mask(known); }, part);
      json_.end_array();
    }
    if (!options.bias.terms().empty()) {
      json_.key("bias").begin_array();
      for (const Bias::Term& term : options.bias.terms())
        std::visit([this](const auto& known) { bias(known); }, term);
      json_.end_array();
    }
    if (!options.sinks.empty()) json_.key("sinks").values(std::span<const double>(options.sinks));
    if (const auto* row = std::get_if<index_t>(&options.query_start))
      json_.key("query_start").value(*row);
    else if (const auto* align = std::get_if<Align>(&options.query_start))
      json_.key("query_start").value(*align == Align::start ? "start" : "end");
    json_.key("empty_row").value(options.empty_row == EmptyRow::zero ? "zero" : "error");
    if (options.dropout.p > 0) {
      json_.key("dropout").begin_object();
      json_.key("p").value(options.dropout.p);
      json_.key("seed").value(static_cast<std::int64_t>(options.dropout.seed));
      json_.end_object();
    }
  }

  void mask(const Mask::Causal&) { json_.value("causal"); }
  void mask(const Mask::Window& window) {
    json_.begin_object().key("window").begin_array();
    for (const std::optional<index_t>& side : {window.left, window.right}) {
      if (side)
        json_.value(*side);
      else
        json_.null();
    }
    json_.end_array().end_object();
  }
  void mask(const Mask::KeyLengths& part) {
    json_.begin_object().key("key_lengths").value(part.lengths.at(0)).end_object();
  }
  void mask(const Mask::Prefix& part) {
    json_.begin_object().key("prefix").value(part.lengths.at(0)).end_object();
  }
  void mask(const Mask::Segments& part) {
    json_.begin_object().key("segments").begin_object();
    const auto ids = [&](const char* name, const std::vector<index_t>& all, index_t count) {
      json_.key(name).values(std::span(all).first(static_cast<std::size_t>(count)));
    };
    ids("query", part.query_ids, sizes_.q_len);
    ids("keys", part.key_ids, sizes_.kv_len);
    json_.end_object().end_object();
  }
  void mask(const Mask::Explicit& part) {
    json_.begin_object().key("allowed");
    pairs([&](index_t h, index_t i, index_t j) {
      json_.value(entry(part.allowed, h, i, j) != 0 ? 1 : 0);
    });
    json_.end_object();
  }
  void mask(const Mask::Where& part) {
    const index_t start = position_of_first();
    json_.begin_object().key("allowed");
    pairs([&](index_t h, index_t i, index_t j) {
      json_.value(part.rule.predicate()(0, h, start + i, j) ? 1 : 0);
    });
    json_.end_object();
  }

  index_t position_of_first() const {
    const QueryStart& start = attention_.options.query_start;
    if (const auto* row = std::get_if<index_t>(&start)) return *row;
    const auto* align = std::get_if<Align>(&start);
    return align != nullptr && *align == Align::end ? sizes_.kv_len - sizes_.q_len : 0;
  }

  void bias(const Bias::Alibi& term) {
    json_.begin_object().key("alibi").values(std::span<const double>(term.slopes));
    json_.key("form").value(term.form == Bias::AlibiForm::distance ? "distance" : "key_index");
    json_.end_object();
  }
  void bias(const Bias::T5& term) {
    json_.begin_object().key("t5").begin_object();
    json_.key("table");
    tensor({{term.buckets, term.heads}, term.table}, 0, 0);
    json_.key("max_distance").value(term.max_distance);
    json_.key("bidirectional").value(term.is_bidirectional);
    json_.end_object().end_object();
  }
  void bias(const Bias::Dense& term) {
    json_.begin_object().key("dense");
    pairs([&](index_t h, index_t i, index_t j) { json_.value(entry(term.values, h, i, j)); });
    json_.end_object();
  }

  const Case& c_;
  const nn::Attention& attention_;
  Sizes sizes_;
  std::string text_;
  JsonWriter json_;
};

}  // namespace

std::string given_case_text(const Case& c) { return CaseText(c).write(); }

}  // namespace glasshead::wire
