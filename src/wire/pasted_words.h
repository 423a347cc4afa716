// The words of pasted numbers, one by one (pasted.h).
#pragma once

#include <string>
#include <string_view>

#include "wire/pasted.h"

namespace glasshead::wire {

// Without blanks at its ends, and without the quotes around it.
std::string_view trimmed(std::string_view text);
// Whether it could be a name: it starts like no number.
bool is_name(std::string_view word);
// "0,5": digits, one comma, digits.
bool has_decimal_comma(std::string_view word);

// Adds the number to `to`; otherwise says in `what` why it is none.
bool add_number(std::string_view word, Pasted& to, std::string& what);

}  // namespace glasshead::wire
