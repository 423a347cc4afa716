#include "formats/safetensors_header.h"

#include <cstddef>
#include <set>

#include <nlohmann/json.hpp>

#include "formats/elements.h"
#include "formats/shown.h"

namespace glasshead::formats {
namespace {

using Json = nlohmann::json;

// Receives the JSON as events, so that nothing is built that the format does not have: a value in a
// place where it cannot stand ends the reading, at a depth of 3 at most. A bool false does so.
class Handler : public nlohmann::json_sax<Json> {
 public:
  Handler(std::vector<SafetensorsEntry>& entries, std::vector<Problem>& problems)
      : entries_(entries), problems_(problems) {}

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::file:
        place_ = Place::names;
        return true;
      case Place::tensor:
        place_ = Place::fields;
        fields_.clear();
        return true;
      case Place::metadata:
        place_ = Place::metadata_keys;
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::fields) {
      for (const char* field : {"dtype", "shape", "data_offsets"})
        if (!fields_.contains(field)) problem(std::string(field) + " is missing");
      if (fields_.contains("data_offsets") && entries_.back().offsets.size() != 2)
        problem("data_offsets has " + std::to_string(entries_.back().offsets.size()) +
                " numbers; it must have two, begin and end");
    }
    place_ = Place::names;
    where_ = "header";
    return true;
  }

  bool key(std::string& text) override {
    if (place_ == Place::names) {
      where_ = text == "__metadata__" ? "__metadata__" : "tensor " + shown(text);
      if (!names_.insert(text).second) return stop("occurs twice in the header");
      place_ = text == "__metadata__" ? Place::metadata : Place::tensor;
      if (place_ == Place::tensor) entries_.push_back({text, {}, {}, {}});
      return true;
    }
    if (place_ == Place::metadata_keys) {
      if (!metadata_.insert(text).second) return stop("the key " + shown(text) + " occurs twice");
      place_ = Place::metadata_value;
      return true;
    }
    if (!fields_.insert(text).second) return stop("the field " + shown(text) + " occurs twice");
    if (text == "dtype") {
      place_ = Place::dtype;
    } else if (text == "shape") {
      place_ = Place::shape;
    } else if (text == "data_offsets") {
      place_ = Place::offsets;
    } else {
      return stop("the field " + shown(text) +
                  " is unknown; a tensor has dtype, shape and data_offsets");
    }
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::dtype) {
      entries_.back().dtype = text;
      place_ = Place::fields;
      return true;
    }
    if (place_ == Place::metadata_value) {
      place_ = Place::metadata_keys;
      return true;
    }
    return unexpected("a string");
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::shape)
      place_ = Place::extents;
    else if (place_ == Place::offsets)
      place_ = Place::positions;
    else
      return unexpected("a list");
    return true;
  }

  bool end_array() override {
    place_ = Place::fields;
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::extents && place_ != Place::positions) return unexpected("a number");
    if (value > static_cast<std::uint64_t>(INT64_MAX))
      return stop("the number " + std::to_string(value) + " is too large; it must be below 2^63");
    std::vector<index_t>& list =
        place_ == Place::extents ? entries_.back().shape : entries_.back().offsets;
    if (list.size() == kMaxRank)
      return stop(std::string(place_ == Place::extents ? "shape" : "data_offsets") +
                  " has more than " + std::to_string(kMaxRank) + " numbers");
    list.push_back(static_cast<index_t>(value));
    return true;
  }

  bool number_integer(std::int64_t value) override {  // called for negative numbers only
    return not_whole(std::to_string(value));
  }
  bool number_float(double, const std::string& text) override { return not_whole(shown(text)); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool null() override { return unexpected("null"); }
  bool binary(Json::binary_t&) override { return unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string& token,
                   const Json::exception&) override {
    problems_.push_back({"header", "not JSON in UTF-8: at its byte " + std::to_string(position) +
                                       ", near " + shown(token)});
    return false;
  }

 private:
  enum class Place {
    file,            // before the outermost '{'
    names,           // in it, at a tensor's name
    tensor,          // after a tensor's name
    fields,          // in a tensor, at a field's name
    dtype,           // after "dtype"
    shape,           // after "shape"
    extents,         // in its list
    offsets,         // after "data_offsets"
    positions,       // in its list
    metadata,        // after "__metadata__"
    metadata_keys,   // in it
    metadata_value,  // after one of its keys
  };

  bool not_whole(const std::string& found) {
    if (place_ != Place::extents && place_ != Place::positions) return unexpected("a number");
    return stop(std::string(place_ == Place::extents ? "shape" : "data_offsets") + " holds " +
                found + "; whole numbers, 0 or more, are needed");
  }

  bool unexpected(const std::string& found) {
    switch (place_) {
      case Place::file:
        return stop("found " + found + "; an object of tensors is needed");
      case Place::metadata:
      case Place::metadata_value:
        return stop("found " + found + "; metadata is an object of strings");
      case Place::dtype:
        return stop("dtype is " + found + "; a string such as \"F32\" is needed");
      case Place::shape:
      case Place::offsets:
        return stop(std::string(place_ == Place::shape ? "shape" : "data_offsets") + " is " +
                    found + "; a list of whole numbers is needed");
      case Place::extents:
      case Place::positions:
        return not_whole(found);
      default:
        return stop("found " + found + "; an object with dtype, shape and data_offsets is needed");
    }
  }

  void problem(std::string what) { problems_.push_back({where_, std::move(what)}); }
  bool stop(std::string what) {
    problem(std::move(what));
    return false;
  }

  std::vector<SafetensorsEntry>& entries_;
  std::vector<Problem>& problems_;
  Place place_ = Place::file;
  std::string where_ = "header";
  std::set<std::string> names_, metadata_, fields_;
};

}  // namespace

bool parse_safetensors_header(std::string_view text, std::vector<SafetensorsEntry>& entries,
                              std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  Handler handler(entries, problems);
  const bool is_read = Json::sax_parse(text.begin(), text.end(), &handler);
  return is_read && problems.size() == before;
}

}  // namespace glasshead::formats
