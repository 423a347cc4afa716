// The keys and values of a GGUF file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/config.h"
#include "glasshead/error.h"

namespace glasshead::formats {

inline constexpr std::uint32_t kGgufU32 = 4;  // a value's type by number

// A u64 length and so many bytes, where they lie. False, and a problem at `where`, if the file ends
// before, or the length is beyond 1 GiB.
bool read_gguf_text(ByteReader& reader, const std::string& where, std::string_view& out,
                    std::vector<Problem>& problems);

// A value of the given type. False, and a problem, if reading cannot go on after it: an unknown
// type, a list in a list, more than 2^30 items, or more bytes than are left. A boolean that is
// neither 0 nor 1 is a problem, too, but reading goes on.
bool read_gguf_value(ByteReader& reader, std::uint32_t type, const std::string& where,
                     ConfigValue& out, std::vector<Problem>& problems);

}  // namespace glasshead::formats
