// A text being written, one token at a time: the loop of `generate`, for whoever has to do
// something between two tokens.
//
//   TextWriter writer(session, prompt, options);
//   while (const std::optional<index_t> id = writer.next()) show(*id);
//   writer.why();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "glasshead/model.h"

namespace glasshead {

class TextWriter {
 public:
  // Throws OptionError with everything wrong with the options; what is wrong with the prompt is
  // thrown by the first `next`. The session must outlive it; between two tokens it may do other
  // things, with other sequences. options.on_token is not called.
  TextWriter(Session& session, std::vector<index_t> prompt, GenerateOptions options);

  // The next id; nullopt: the text has ended. The first reads the prompt.
  std::optional<index_t> next();
  StopReason why() const { return why_; }  // once the text has ended

 private:
  // Whether a stop text has come with this id.
  bool stops_with(index_t id);
  std::optional<index_t> end(StopReason why);

  Session* session_;
  GenerateOptions options_;
  std::vector<index_t> text_;  // the prompt, then what was written
  std::size_t read_ = 0;       // of it the session holds so many
  index_t written_ = 0;
  bool is_over_ = false;
  StopReason why_ = StopReason::length;
  std::size_t longest_stop_ = 0;
  std::string seen_;  // the text's end, in which a stop text may have begun
};

}  // namespace glasshead
