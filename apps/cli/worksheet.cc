// glasshead worksheet: an exercise with blanks, and its answer key.
#include "doctor/worksheet.h"

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/values.h"
#include "wire/render.h"

namespace glasshead::cli {
namespace {

struct WorksheetArgs {
  doctor::WorksheetOptions options;
  std::string format, out, key;
  bool has_key = false, standalone = false;
};

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// By --format, else by the file's ending, else `otherwise`.
std::string format_of(const WorksheetArgs& args, const char* flag, const std::string& file,
                      const std::string& otherwise) {
  if (!args.format.empty()) return args.format;
  if (ends_with(file, ".md")) return "md";
  if (ends_with(file, ".tex")) return "latex";
  if (ends_with(file, ".html")) return "html";
  if (ends_with(file, ".json")) return "json";
  if (ends_with(file, ".txt")) return "text";
  const std::size_t name = file.rfind('/') + 1, dot = file.rfind('.');
  if (dot != std::string::npos && dot > name)
    throw OptionError("worksheet", {{flag, file + ": nothing is known about " + file.substr(dot) +
                                               "; .txt, .md, .tex, .html and .json are written, "
                                               "or give --format"}});
  return otherwise;
}

std::string page(const doctor::Worksheet& sheet, bool is_key, const std::string& format,
                 bool is_standalone) {
  if (format == "json") return doctor::worksheet_json(sheet, is_key);
  const wire::Document document =
      is_key ? doctor::key_document(sheet) : doctor::sheet_document(sheet);
  if (format == "md") return wire::to_markdown(document);
  if (format == "latex") return wire::to_latex(document, {is_standalone});
  if (format == "html") return wire::to_html(document);
  return wire::to_text(document);
}

int run(const WorksheetArgs& args) {
  std::vector<Problem> problems;
  const std::string format = format_of(args, "-o", args.out, "text");
  const std::string key_format = format_of(args, "--key", args.key, format);
  need_writable("-o", args.out, problems);
  need_writable("--key", args.key, problems);
  const std::optional<doctor::Worksheet> sheet = doctor::make_worksheet(args.options, problems);
  if (!problems.empty()) throw OptionError("worksheet", std::move(problems));
  write_for("worksheet", "-o",
            [&] { write_result(args.out, page(*sheet, false, format, args.standalone)); });
  if (args.has_key)
    write_for("worksheet", "--key",
              [&] { write_result(args.key, page(*sheet, true, key_format, args.standalone)); });
  return 0;
}

void add(CLI::App& command, int& exit_code) {
  auto args = std::make_shared<WorksheetArgs>();
  command
      .add_option("--seed", args->options.seed, "Which sheet; the same number gives the same one")
      ->type_name("N")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return parse_seed(text) ? std::string()
                                    : "found '" + text + "'; a whole number below 2^64 is needed";
          },
          ""));
  command
      .add_option("--level", args->options.level,
                  "1: one head (the default); 2: causal and padding; 3: two heads and W_O")
      ->type_name("1|2|3");
  command.add_option("--tokens", args->options.tokens, "How many tokens, 2 to 6")->type_name("N");
  command
      .add_option("--blanks", args->options.blanks,
                  "What to fill in, of q k v scores scaled exp sum weights out concat projected "
                  "(default weights,out)")
      ->type_name("STAGE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--decimals", args->options.decimals,
                  "Digits of the answers after the point, 1 to 4")
      ->type_name("P");
  command.add_flag("--no-calculator", args->options.has_fractions,
                   "Use 2^s for exp(s): every weight is a fraction, every answer a whole number");
  command
      .add_option("--format", args->format,
                  "What to write; by default what the endings of -o and --key say, else text")
      ->type_name("text|md|latex|html|json")
      ->check(one_of({"text", "md", "latex", "html", "json"}));
  command.add_flag("--standalone", args->standalone,
                   "Write LaTeX with a preamble, ready to compile");
  command.add_option("-o,--out", args->out, "Write the sheet to this file")->type_name("FILE");
  command.add_option("--key", args->key, "Write the answer key to this file; - is the screen")
      ->type_name("FILE")
      ->each([raw = args.get()](const std::string&) { raw->has_key = true; });
  command.callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace

const Command kWorksheet{
    "worksheet", "Make an exercise with blanks, and its answer key",
    "# a sheet, and its key below\n"
    "glasshead worksheet --seed 11 --key -\n"
    "# with a causal mask and padding; sheet and key in files\n"
    "glasshead worksheet --seed 11 --level 2 -o sheet.md --key key.md\n"
    "# fractions instead of a calculator; four things to fill in\n"
    "glasshead worksheet --seed 3 --no-calculator --blanks scores,exp,weights,out\n",
    add};

}  // namespace glasshead::cli
