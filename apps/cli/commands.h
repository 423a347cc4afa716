// The table of commands, and the program made from it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace glasshead::cli {

std::span<const Command* const> commands();
const Command* find_command(std::string_view name);  // null: there is none of this name

// The options and subcommands of the whole program. `exit_code` must outlive `app`.
void build_program(CLI::App& app, int& exit_code);

// The name that is fewest changed letters away from `text`, if few enough for a slip; else "".
std::string nearest(std::string_view text, const std::vector<std::string>& names);

// What a flag takes, from its type name: "zero|error" are two words to choose from, "FILE" a file.
std::vector<std::string> choices(const CLI::Option& option);
bool takes_file(const CLI::Option& option);
bool takes_value(const CLI::Option& option);
bool may_omit_value(const CLI::Option& option);                  // --causal, --causal=end
std::vector<std::string> flag_names(const CLI::Option& option);  // "--out", "-o"

}  // namespace glasshead::cli
