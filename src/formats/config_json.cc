// config.json as a Config.
#include <cstddef>
#include <set>

#include <nlohmann/json.hpp>

#include "formats/config.h"
#include "formats/shown.h"

namespace glasshead::formats {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDeepest = 32;            // real ones nest 3 or 4 deep
constexpr std::size_t kMostValues = 1'000'000;  // the largest index of shards known has 92,000
constexpr int kJsonNumberOutOfRange = 406;      // nlohmann-json's exception id

// Receives the JSON as events and puts the values in their places; a false ends the reading.
class Handler : public nlohmann::json_sax<Json> {
 public:
  Handler(Config& out, std::vector<Problem>& problems) : out_(out), problems_(problems) {}

  bool null() override { return put({}); }
  bool boolean(bool value) override { return put({value}); }
  bool number_integer(std::int64_t value) override { return put({value}); }
  bool number_unsigned(std::uint64_t value) override {
    if (value <= static_cast<std::uint64_t>(INT64_MAX))
      return put({static_cast<std::int64_t>(value)});
    return put({static_cast<double>(value)});
  }
  bool number_float(double value, const std::string&) override { return put({value}); }
  bool string(std::string& text) override { return put({std::move(text)}); }
  bool binary(Json::binary_t&) override { return stop("holds binary data"); }

  bool start_object(std::size_t) override {
    if (!open_.empty()) return open({ConfigObject{}});
    open_.push_back({nullptr, &out_, {}, {}});
    return true;
  }
  bool key(std::string& text) override {
    Open& object = open_.back();
    object.key = text;
    if (!object.keys.insert(text).second) return stop("occurs twice");
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open({ConfigList{}}); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& token,
                   const Json::exception& error) override {
    if (error.id == kJsonNumberOutOfRange)
      problems_.push_back({where(), "is " + shown(token) + ", beyond the range of a double"});
    else
      problems_.push_back({where(), "not JSON in UTF-8: at byte " + std::to_string(position) +
                                        ", near " + shown(token)});
    return false;
  }

 private:
  // An object or a list that has begun and not ended. Its parent doesn't grow meanwhile, so the
  // pointers stay good.
  struct Open {
    ConfigList* list = nullptr;
    ConfigObject* object = nullptr;
    std::string key;             // an object's, whose value comes next
    std::set<std::string> keys;  // an object's, all so far
  };

  bool put(ConfigValue value) { return place(std::move(value)) != nullptr; }

  // Where the value now is; null: it has no place.
  ConfigValue* place(ConfigValue value) {
    if (open_.empty()) {
      stop("begins with no '{'; an object is needed");
      return nullptr;
    }
    if (++values_ > kMostValues) {
      stop("holds more than " + std::to_string(kMostValues) + " values");
      return nullptr;
    }
    Open& top = open_.back();
    if (top.list != nullptr) return &top.list->emplace_back(std::move(value));
    top.object->push_back({std::move(top.key), std::move(value)});
    return &top.object->back().value;
  }

  bool open(ConfigValue value) {
    if (open_.size() == kDeepest)
      return stop("is nested more than " + std::to_string(kDeepest) + " deep");
    ConfigValue* const here = place(std::move(value));
    if (here == nullptr) return false;
    open_.push_back(
        {std::get_if<ConfigList>(&here->is), std::get_if<ConfigObject>(&here->is), {}, {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  // The path to the value being read. A key is moved into its place with its value, and is then the
  // last of its object.
  std::string where() const {
    std::string path;
    for (std::size_t n = 0; n < open_.size(); ++n) {
      const Open& open = open_[n];
      if (open.object == nullptr) continue;
      const bool is_placed = n + 1 < open_.size();
      path += (path.empty() ? "" : "/") + (is_placed ? open.object->back().key : open.key);
    }
    if (path.empty()) return "the file";
    for (const char c : path)
      if (c < 0x20 || c > 0x7e) return shown(path);
    return path.substr(0, 200);
  }

  bool stop(std::string what) {
    problems_.push_back({where(), std::move(what)});
    return false;
  }

  Config& out_;
  std::vector<Problem>& problems_;
  std::vector<Open> open_;
  std::size_t values_ = 0;
};

}  // namespace

bool parse_config(std::string_view text, Config& out, std::vector<Problem>& problems) {
  Config config;
  Handler handler(config, problems);
  if (!Json::sax_parse(text.begin(), text.end(), &handler)) return false;
  out = std::move(config);
  return true;
}

}  // namespace glasshead::formats
