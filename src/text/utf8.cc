#include "text/utf8.h"

#include <cstddef>

namespace glasshead::text {
namespace {

// Unicode 16, table 3-7: how many bytes follow a first byte, and which second bytes may.
struct Lead {
  std::size_t following = 0;
  unsigned char low = 0x80, high = 0xBF;
};

bool find_lead(unsigned char first, Lead& lead) {
  if (first < 0x80) {
    lead = {0};
  } else if (first >= 0xC2 && first <= 0xDF) {
    lead = {1};
  } else if (first >= 0xE0 && first <= 0xEF) {
    lead = {2};
    if (first == 0xE0) lead.low = 0xA0;   // shorter forms exist
    if (first == 0xED) lead.high = 0x9F;  // surrogates
  } else if (first >= 0xF0 && first <= 0xF4) {
    lead = {3};
    if (first == 0xF0) lead.low = 0x90;
    if (first == 0xF4) lead.high = 0x8F;  // beyond U+10FFFF
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string take_characters(std::string& held, bool is_end) {
  std::string whole;
  std::size_t at = 0;
  while (at < held.size()) {
    Lead lead;
    std::size_t length = 1;
    bool is_whole = find_lead(static_cast<unsigned char>(held[at]), lead);
    if (is_whole) {
      for (; length <= lead.following && at + length < held.size(); ++length) {
        const auto byte = static_cast<unsigned char>(held[at + length]);
        const bool is_second = length == 1;
        if (byte < (is_second ? lead.low : 0x80) || byte > (is_second ? lead.high : 0xBF)) break;
      }
      is_whole = length == lead.following + 1;
      if (!is_whole && !is_end && at + length == held.size()) break;
    }
    if (is_whole)
      whole.append(held, at, length);
    else
      whole += "\xEF\xBF\xBD";
    at += length;
  }
  held.erase(0, at);
  return whole;
}

}  // namespace glasshead::text
