// Where `glasshead trace` finds cases and how it writes results.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/case.h"
#include "wire/document_build.h"

namespace glasshead::cli {

// A case by path, or by its name in the installed cases/ (beside the program:
// <prefix>/share/glasshead/cases) or the source's. Throws FormatError with every problem; IoError
// in the name of the command where there is none.
wire::Case load_case(const std::string& name_or_path, const char* command = "trace");

// The same with the text that it was read from.
struct CaseText {
  std::string name, path, text;
  wire::Case parsed;
};
CaseText load_case_text(const std::string& name_or_path, const char* command = "trace");

// <prefix>/share/glasshead of the program that runs; "" where the system does not tell.
std::string shared_folder();
// A program that comes with this one: beside it, else in <prefix>/libexec/glasshead.
std::string helper_program(const std::string& name);

// "three-tokens  three tokens, no mask", one a line.
std::string list_cases();

// Hands a sink to `write`; what it gets goes to stdout, or to a file that is complete or untouched
// (a device or pipe is written to directly).
void write_pieces(const std::string& path,
                  const std::function<void(const std::function<void(std::string_view)>&)>& write);

// out.npy: the one matrix that `steps` names, else out; all.safetensors: every tap that they name,
// whole or without its block or run, else all, under its name. Throws OptionError for a name of no
// tap, or several matrices for a .npy.
void write_taps(const std::string& path, const Trace& trace, const std::vector<std::string>& steps);

// Compares with an earlier JSON trace, or a .npy of out. Empty: equal; else what differs.
std::string compare_with(const std::string& path, const Trace& trace, const std::string& json);

}  // namespace glasshead::cli
