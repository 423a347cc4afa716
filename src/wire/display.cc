#include "wire/display.h"

#include <array>

namespace glasshead::wire {
namespace {

struct Range {
  std::uint32_t first, last;
};

// Combining marks and joiners: no cell of their own (the blocks of Unicode 15 that scripts in use
// need; a mark outside them counts one cell and shifts a line by one, nothing worse).
constexpr std::array<Range, 30> kZeroWidth{{
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x05bf, 0x05c7}, {0x0610, 0x061a},
    {0x064b, 0x065f}, {0x0670, 0x0670}, {0x06d6, 0x06dc}, {0x06df, 0x06e4}, {0x0900, 0x0902},
    {0x093c, 0x093c}, {0x0941, 0x0948}, {0x094d, 0x094d}, {0x0981, 0x0981}, {0x09bc, 0x09bc},
    {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
    {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x2064}, {0x20d0, 0x20f0}, {0x302a, 0x302d},
    {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef},
}};

// East Asian Wide and Fullwidth, and emoji that terminals draw in two cells.
constexpr std::array<Range, 16> kWide{{
    {0x1100, 0x115f},
    {0x231a, 0x231b},
    {0x2e80, 0x303e},
    {0x3041, 0x33ff},
    {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},
    {0xa000, 0xa4cf},
    {0xac00, 0xd7a3},
    {0xf900, 0xfaff},
    {0xfe30, 0xfe6f},
    {0xff00, 0xff60},
    {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f},
    {0x1f680, 0x1f6ff},
    {0x1f900, 0x1f9ff},
    {0x20000, 0x3fffd},
}};

template <std::size_t N>
bool is_in(const std::array<Range, N>& ranges, std::uint32_t point) {
  for (const Range& range : ranges)
    if (point >= range.first && point <= range.last) return true;
  return false;
}

int cells_of(std::uint32_t point) {
  if (is_in(kZeroWidth, point)) return 0;
  return is_in(kWide, point) ? 2 : 1;
}

bool needs_escape(std::uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point <= 0x9f) || point == 0xad || point == 0x061c ||
         (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2060 && point <= 0x206f) || point == 0xfeff || point == 0xfffe ||
         (point >= 0xfff9 && point <= 0xfffb) || (point >= 0xe0000 && point <= 0xe007f);
}

void append_hex(std::string& out, std::uint32_t point) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += point > 0xffff ? "\\U" : "\\u";
  for (int shift = point > 0xffff ? 28 : 12; shift >= 0; shift -= 4)
    out += kDigits[(point >> shift) & 15U];
}

struct Sign {
  std::string_view from, to;
};
// Longer signs first: "−∞" before "−".
constexpr std::array<Sign, 40> kAsciiSigns{{
    {"−∞", "-inf"}, {"·", "."},    {"—", "-"},   {"′", "'"},     {"×", "x"},    {"→", "->"},
    {"√", "sqrt"},  {"Σ", "sum"},  {"✓", "ok"},  {"✗", "NO"},    {"▲", "^"},    {"▼", "v"},
    {"≈", "~"},     {"…", "..."},  {"−", "-"},   {"∞", "inf"},   {"ᵀ", "^T"},   {"≤", "<="},
    {"≥", ">="},    {"∘", "*"},    {"⊙", "*"},   {"²", "^2"},    {"ₖ", "_k"},   {"⁺", "+"},
    {"∇", "d"},     {"∂", "d"},    {"‖", "|"},   {"σ", "sigma"}, {"μ", "mean"}, {"ε", "eps"},
    {"γ", "gamma"}, {"β", "beta"}, {"₁", "1"},   {"₂", "2"},     {"⁻", "-"},    {"＼", "\\"},
    {"′", "'"},     {"½", "1/2"},  {"Φ", "Phi"}, {"θ", "theta"},
}};

// The bytes of one well-formed sequence at `at`, or 0.
std::size_t sequence_length(std::string_view text, std::size_t at, std::uint32_t& point) {
  const auto byte = [&](std::size_t n) { return static_cast<unsigned char>(text[at + n]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    point = lead;
    return 1;
  }
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + length > text.size()) return 0;
  point = lead & (0xffU >> (length + 1));
  for (std::size_t n = 1; n < length; ++n) {
    if ((byte(n) & 0xc0U) != 0x80U) return 0;
    point = (point << 6U) | (byte(n) & 0x3fU);
  }
  const std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < smallest[length] || point > 0x10ffff || is_surrogate ? 0 : length;
}

}  // namespace

std::vector<std::uint32_t> code_points(std::string_view utf8) {
  std::vector<std::uint32_t> points;
  points.reserve(utf8.size());
  for (std::size_t at = 0; at < utf8.size();) {
    std::uint32_t point = 0;
    const std::size_t length = sequence_length(utf8, at, point);
    points.push_back(length == 0 ? 0xfffd : point);
    at += length == 0 ? 1 : length;
  }
  return points;
}

void append_code_point(std::string& utf8, std::uint32_t point) {
  const auto put = [&](std::uint32_t byte) { utf8 += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0U | (point >> 6U));
    put(0x80U | (point & 0x3fU));
  } else if (point < 0x10000) {
    put(0xe0U | (point >> 12U));
    put(0x80U | ((point >> 6U) & 0x3fU));
    put(0x80U | (point & 0x3fU));
  } else {
    put(0xf0U | (point >> 18U));
    put(0x80U | ((point >> 12U) & 0x3fU));
    put(0x80U | ((point >> 6U) & 0x3fU));
    put(0x80U | (point & 0x3fU));
  }
}

int display_width(std::string_view utf8) {
  int cells = 0;
  for (const std::uint32_t point : code_points(utf8)) cells += cells_of(point);
  return cells;
}

std::string escape_controls(std::string_view utf8) {
  std::string out;
  for (const std::uint32_t point : code_points(utf8)) {
    if (!needs_escape(point))
      append_code_point(out, point);
    else if (point == '\n')
      out += "\\n";
    else if (point == '\t')
      out += "\\t";
    else if (point == '\r')
      out += "\\r";
    else
      append_hex(out, point);
  }
  return out;
}

std::string cut(std::string_view utf8, int cells) {
  const std::vector<std::uint32_t> points = code_points(utf8);
  int total = 0;
  for (const std::uint32_t point : points) total += cells_of(point);
  std::string out;
  int used = 0;
  for (const std::uint32_t point : points) {
    const int next = used + cells_of(point);
    if (total > cells && next > cells - 1) break;
    append_code_point(out, point);
    used = next;
  }
  if (total > cells) out += "…";
  return out;
}

std::vector<std::string> wrapped(std::string_view line, int cells, int hang,
                                 std::string_view arrow) {
  const std::string before_arrow = " " + std::string(arrow) + " ";
  std::vector<std::string> lines;
  while (display_width(line) > cells) {
    // The last arrow, and the last space, before which the line fits; a line has one word at least.
    const std::size_t first = line.find_first_not_of(' ');
    std::size_t end = std::string_view::npos, end_at_arrow = end;
    for (std::size_t at = line.find(' ', first); at != std::string_view::npos;
         at = line.find(' ', at + 1)) {
      if (end != std::string_view::npos && display_width(line.substr(0, at)) > cells) break;
      end = at;
      if (line.substr(at).starts_with(before_arrow)) end_at_arrow = at;
    }
    if (end_at_arrow != std::string_view::npos) end = end_at_arrow;
    if (end == std::string_view::npos) break;
    lines.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
    if (lines.size() == 1) cells -= hang;
  }
  lines.emplace_back(line);
  for (std::size_t n = 1; n < lines.size(); ++n)
    lines[n].insert(0, static_cast<std::size_t>(hang), ' ');
  return lines;
}

std::string pad_left(std::string_view utf8, int cells) {
  const int width = display_width(utf8);
  std::string out(width < cells ? static_cast<std::size_t>(cells - width) : 0, ' ');
  return out += utf8;
}

std::string pad_right(std::string_view utf8, int cells) {
  const int width = display_width(utf8);
  std::string out(utf8);
  out.append(width < cells ? static_cast<std::size_t>(cells - width) : 0, ' ');
  return out;
}

std::string to_ascii(std::string_view utf8) {
  std::string out;
  for (std::size_t at = 0; at < utf8.size();) {
    if (static_cast<unsigned char>(utf8[at]) < 0x80) {
      out += utf8[at++];
      continue;
    }
    bool is_ours = false;
    for (const Sign& sign : kAsciiSigns) {
      if (utf8.substr(at, sign.from.size()) != sign.from) continue;
      out += sign.to;
      at += sign.from.size();
      is_ours = true;
      break;
    }
    if (is_ours) continue;
    std::uint32_t point = 0xfffd;
    const std::size_t length = sequence_length(utf8, at, point);
    append_hex(out, length == 0 ? 0xfffd : point);
    at += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace glasshead::wire
