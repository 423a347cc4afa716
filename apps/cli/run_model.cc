#include "cli/run_model.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_files.h"
#include "cli/run_report.h"
#include "glasshead/chat.h"

namespace glasshead::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw OptionError("run", {{where, what}});
}

// Text goes out as it comes: what cannot be written ends the run.
void stream(const std::string& text) {
  if (!text.empty()) write_result("", text);
}

}  // namespace

Run::Run(const RunArgs& args, const RunCall& call, const Context& context)
    : args_(args),
      call_(call),
      start_(Clock::now()),
      model_(Model::load(args.model, call.model)),
      load_seconds_(seconds_since(start_)),
      session_(model_, {}, context) {
  check_mode();
  if (call.has_text) words_ = load_words(args.model);
  if (!call.taps.empty()) taps_ = std::make_unique<Taps>(call.taps);
  note(fmt::format("{}: {} ({}), {} parameters, read in {}", args.model, model_.family(),
                   name(model_.kind()), model_.parameters(), duration_text(load_seconds_)));
}

// Whether the model can do what was asked for.
void Run::check_mode() const {
  const std::string kind = fmt::format(
      "this model is {} {}", model_.kind() == ModelKind::decoder ? "a" : "an", name(model_.kind()));
  const bool is_encoder = model_.kind() == ModelKind::encoder;
  if (args_.fill && !(is_encoder && model_.has_logits()))
    refuse("--fill", is_encoder ? "this encoder has no head that fills masks"
                                : kind + ", and fills no masks");
  if (!args_.embed.empty() && !is_encoder)
    refuse("--embed", kind + "; only encoders make vectors for texts");
  if (args_.translate && model_.kind() != ModelKind::encoder_decoder)
    refuse("--translate", kind + "; only an encoder-decoder writes about a text");
  if ((args_.prompt || args_.chat) && model_.kind() != ModelKind::decoder)
    refuse(args_.prompt ? "--prompt" : "--chat",
           kind + (is_encoder ? "; it takes --fill or --embed" : "; it takes --translate"));
  if (!args_.tokens && !call_.has_text)
    refuse("--tokens", fmt::format("missing; {}, which needs a text: {}", kind, ways()));
  if ((args_.has_lens || call_.has_changes()) && model_.kind() != ModelKind::decoder)
    refuse(looking_flag(args_), kind + "; a decoder's next token is shown");
  if (call_.beams > 1 && model_.kind() != ModelKind::encoder_decoder)
    refuse("--beams", kind + "; beams go with --translate");
  if (is_encoder) {
    std::vector<Problem> problems;
    refuse_writing_flags(args_, kind + ", and writes no text", problems);
    if (!problems.empty()) throw OptionError("run", std::move(problems));
  }
}

// How a text can be given to this model.
std::string Run::ways() const {
  std::optional<Tokenizer> words;
  try {
    words = Tokenizer::load(args_.model);
  } catch (const Error&) {
    return "token ids, --tokens 1,2,3 (words need a vocabulary beside it, and a build with "
           "tokenizers)";
  }
  std::string ways;
  if (model_.kind() == ModelKind::decoder)
    ways = words->chat_template().empty() ? "--prompt TEXT" : "--prompt TEXT, --chat TEXT";
  else if (model_.kind() == ModelKind::encoder)
    ways = model_.has_logits() ? "--fill TEXT, --embed TEXT" : "--embed TEXT";
  else
    ways = "--translate TEXT";
  return ways + " or --tokens IDS";
}

void Run::run() {
  if (!args_.embed.empty()) {
    embed();
  } else if (args_.fill) {
    fill();
  } else if (model_.kind() == ModelKind::encoder) {
    best_at_each_place();
  } else if (args_.has_lens) {
    lens(prompt());
  } else if (call_.has_changes()) {
    effect(prompt());
  } else if (model_.kind() == ModelKind::decoder) {
    const std::vector<index_t> ids = prompt();
    need_rows("decoder", static_cast<index_t>(ids.size()),
              std::max<index_t>(call_.generate.max_tokens - 1, 0));
    write_from(0, ids);
  } else {
    const std::vector<index_t> text =
        args_.translate ? ids_of(*words_, "--translate", *args_.translate) : call_.ids;
    need_rows("encoder", static_cast<index_t>(text.size()), 0);
    need_rows("decoder", 1, std::max<index_t>(call_.generate.max_tokens - 1, 0));
    const index_t sequence = session_.read(text, taps_.get());
    if (call_.beams > 1)
      beams(sequence);
    else
      write_from(sequence, {model_.decoder_start()});
  }
  write_taps();
}

void Run::note(const std::string& text) const {
  if (!args_.is_quiet) std::fputs((text + "\n").c_str(), stderr);
}

std::string Run::ended_by(StopReason why) const {
  switch (why) {
    case StopReason::length:
      return "--max-tokens " + args_.max_tokens;
    case StopReason::end_id:
      return "an end token";
    case StopReason::stop_text:
      return "a stop text";
    case StopReason::callback:
      return "the reader";
    case StopReason::position_limit:
      return fmt::format("the last of the model's {} positions", model_.position_limit());
  }
  return "";
}

// The last position that --positions chooses of the text that is written; -1: none.
index_t Run::last_row() const {
  index_t last = -1;
  for (const Tap& tap : call_.taps)
    if (tap.positions && tap.name.starts_with("decoder"))
      last = std::max(last, tap.positions->second);
  return last;
}

// Rows that are never read would be missing from what --tap keeps.
void Run::need_rows(const std::string& stack, index_t tokens, index_t most_written) const {
  for (const Tap& tap : call_.taps)
    if (tap.positions && tap.name.starts_with(stack) &&
        tap.positions->second >= tokens + most_written)
      refuse("--positions",
             fmt::format("{}: the {} reads {} {}, numbered from 0{}", args_.rows, stack, tokens,
                         tokens == 1 ? "token" : "tokens",
                         most_written > 0
                             ? fmt::format(", and at most {} that it writes", most_written)
                             : ""));
}

std::string Run::word(index_t id) const { return words_ ? words_->token(id) : std::to_string(id); }

// What the text begins with: what was given.
std::vector<index_t> Run::prompt() const {
  if (args_.tokens) return call_.ids;
  if (args_.chat)
    return ids_of(*words_, "--chat",
                  chat_prompt(words_->chat_template(), {{ChatRole::user, *args_.chat}}));
  std::vector<index_t> ids = ids_of(*words_, "--prompt", *args_.prompt);
  if (ids.empty())
    refuse(
        "--prompt",
        "has no token, and this model's tokenizer adds none: there is nothing to continue; "
        "--tokens takes the id of a token to begin with" +
            (model_.bos() ? fmt::format(", as {} ({})", *model_.bos(), word(*model_.bos())) : ""));
  return ids;
}

void Run::write_from(index_t sequence, const std::vector<index_t>& ids) {
  GenerateOptions options = call_.generate;
  options.sequence = sequence;
  options.taps = taps_.get();
  options.stop = args_.stop;
  if (words_) {
    options.text_of = [this](index_t id) { return words_->bytes_of(id); };
    if (words_->eos()) options.stop_ids.push_back(*words_->eos());
    if (!options.stops_at_eos) options.stop_ids = call_.generate.stop_ids;
  }
  std::optional<Utf8Stream> letters;
  if (words_) letters.emplace(*words_);
  std::string text;
  index_t count = 0;
  const Clock::time_point begin = Clock::now();
  double first = 0;
  options.on_token = [&](index_t id) {
    if (count == 0) first = seconds_since(begin);
    const std::string more =
        letters ? letters->push(id) : (count > 0 ? " " : "") + std::to_string(id);
    if (!args_.is_json) stream(more);
    text += more;
    ++count;
    return true;
  };
  const Generation made = generate(session_, ids, options);
  const double total = seconds_since(begin);
  if (count == 0) first = total;
  const std::string rest = letters ? letters->finish() : "";
  text += rest;
  if (!args_.is_json) stream(rest + "\n");
  note(fmt::format("prompt: {}", rate_text(static_cast<index_t>(ids.size()), first)));
  std::string written = fmt::format("text: {} {}", count, count == 1 ? "token" : "tokens");
  if (count > 1) written += "; after the first, " + rate_text(count - 1, total - first);
  note(written);
  note("ended by " + ended_by(made.why));
  const index_t read = session_.length(sequence);
  if (last_row() >= read)
    note(fmt::format("--positions {}: the text ended at position {}", args_.rows, read - 1));
  if (!args_.is_json) return;
  Json json{{"model", args_.model},
            {"kind", name(model_.kind())},
            {"prompt", {{"ids", ids}}},
            {"ids", made.ids}};
  if (words_) json["text"] = text;
  json["stop"] = name(made.why);
  json["seconds"] = {{"load", load_seconds_}, {"prompt", first}, {"text", total - first}};
  print(json);
}

void Run::beams(index_t sequence) {
  const std::vector<Beam> found = beam_search(
      session_, {model_.decoder_start()},
      {.beams = call_.beams, .max_tokens = call_.generate.max_tokens, .sequence = sequence});
  Json json = Json::array();
  std::string lines;
  for (const Beam& beam : found) {
    std::string text;
    for (const index_t id : beam.ids)
      if (!words_) text += (text.empty() ? "" : " ") + std::to_string(id);
    if (words_) text = words_->decode(beam.ids);
    Json one{{"ids", beam.ids},
             {"log_probability", beam.log_probability},
             {"finished", beam.is_finished}};
    if (words_) one["text"] = text;
    json.push_back(std::move(one));
    lines += text + "\n";
  }
  if (args_.is_json)
    print({{"model", args_.model}, {"kind", name(model_.kind())}, {"beams", json}});
  else
    write_result("", lines);
}

// An encoder given ids: at each place the token that it finds most probable
// there.
void Run::best_at_each_place() {
  need_rows("encoder", static_cast<index_t>(call_.ids.size()), 0);
  const Clock::time_point begin = Clock::now();
  const View<const float, 2> rows = session_.encode({{.ids = call_.ids}}, taps_.get());
  std::vector<index_t> best;
  if (model_.has_logits()) {
    const View<const float, 2> logits = session_.logits(rows);
    for (index_t i = 0; i < logits.shape[0]; ++i)
      best.push_back(sample({logits.data + i * logits.strides[0], {logits.shape[1]}}, {}, {}, 0));
  }
  note(fmt::format("text: {}", rate_text(rows.shape[0], seconds_since(begin))));
  if (args_.is_json) {
    print({{"model", args_.model},
           {"kind", name(model_.kind())},
           {"prompt", {{"ids", call_.ids}}},
           {"ids", best}});
    return;
  }
  std::string text;
  for (const index_t id : best) text += (text.empty() ? "" : " ") + std::to_string(id);
  if (!text.empty()) write_result("", text + "\n");
}

void Run::write_taps() const {
  if (taps_ == nullptr) return;
  const NamedTensors results = taps_->results();
  write_for("run", "-o", [&] { write_safetensors(args_.out, results); });
  note(fmt::format("{}: {} {}", args_.out, results.size(),
                   results.size() == 1 ? "tensor" : "tensors"));
}

}  // namespace glasshead::cli
