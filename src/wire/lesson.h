// The page as one file: a template that holds everything but the case (`make web` writes it), and
// what the case's place in it is filled with.
//
//   Lesson lesson{"three-tokens", text, page_address(original, edited, edit, {}, problems)};
//   std::string page = *fill_lesson(page_template, lesson);
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/case.h"

namespace glasshead::wire {

struct Lesson {
  std::string name;   // as address_name gives it
  std::string text;   // of the case, as a person wrote it
  std::string start;  // the state that the page opens in: page_address
};

// The template with the lesson in it; nullopt: the text has no place for one, or several.
std::optional<std::string> fill_lesson(std::string_view page, const Lesson& lesson);

// A case's name as an address of the page has it: letters, digits, - and _, others become -.
std::string address_name(std::string_view name);

// What else than the numbers an address says.
struct AddressOptions {
  std::optional<int> by_hand;  // decimals
  std::string mistake;         // "mask-after", with its parameter
};

// "#/learn/three-tokens?v=1&e=X.1.0:1&mask=causal": the state of the page that shows `edited`,
// which `edit` made of `original`. Numbers are named by their places, whatever `edit` called them.
// A problem where an address can't say it: a key of the context alone.
std::string page_address(const Case& original, const Case& edited, const Edit& edit,
                         const AddressOptions& options, std::vector<Problem>& problems);

}  // namespace glasshead::wire
