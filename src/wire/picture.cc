#include "wire/picture.h"

#include <algorithm>
#include <cmath>

namespace glasshead::wire {
namespace {

constexpr std::array<Colour, 6> kCividis{{{0, 34, 78},
                                          {53, 69, 108},
                                          {102, 105, 112},
                                          {148, 142, 119},
                                          {200, 184, 102},
                                          {254, 232, 56}}};

void put_be32(std::string& out, std::uint32_t x) {
  for (unsigned shift = 32; shift > 0; shift -= 8)
    out += static_cast<char>((x >> (shift - 8)) & 0xffU);
}

// CRC-32 of PNG chunks (ISO 3309), bit by bit.
std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1U) ^ 0xedb88320U : crc >> 1U;
  }
  return crc ^ 0xffffffffU;
}

void put_chunk(std::string& out, const std::string& type, const std::string& data) {
  put_be32(out, static_cast<std::uint32_t>(data.size()));
  out += type + data;
  put_be32(out, crc32(type + data));
}

// A zlib stream of stored blocks (RFC 1950, RFC 1951 section 3.2.4).
std::string stored(const std::string& data) {
  constexpr std::size_t kBlock = 65535;
  std::string out{'\x78', '\x01'};
  std::size_t at = 0;
  do {
    const std::size_t size = std::min(kBlock, data.size() - at);
    out += at + size == data.size() ? '\x01' : '\x00';
    for (const std::size_t word : {size, ~size}) {
      out += static_cast<char>(word & 0xffU);
      out += static_cast<char>((word >> 8U) & 0xffU);
    }
    out += data.substr(at, size);
    at += size;
  } while (at < data.size());
  std::uint32_t a = 1, b = 0;
  for (const char c : data) {
    a = (a + static_cast<unsigned char>(c)) % 65521U;
    b = (b + a) % 65521U;
  }
  put_be32(out, (b << 16U) | a);
  return out;
}

}  // namespace

Colour cividis(double t) {
  if (!(t > 0)) return kCividis.front();
  if (t >= 1) return kCividis.back();
  const double place = t * (kCividis.size() - 1);
  const auto n = static_cast<std::size_t>(std::floor(place));
  const double part = place - static_cast<double>(n);
  Colour mixed{};
  for (std::size_t channel = 0; channel < 3; ++channel)
    mixed[channel] = static_cast<std::uint8_t>(
        std::floor((1 - part) * kCividis[n][channel] + part * kCividis[n + 1][channel] + 0.5));
  return mixed;
}

std::string hex(Colour colour) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out = "#";
  for (const std::uint8_t channel : colour) {
    out += kDigits[channel >> 4U];
    out += kDigits[channel & 15U];
  }
  return out;
}

bool is_dark(Colour colour) {
  // Relative luminance (ITU-R BT.709 weights), without the gamma: good enough to pick black or
  // white.
  constexpr double kMiddle = 120;
  return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2] < kMiddle;
}

std::string png(const std::vector<std::uint8_t>& pixels, index_t width, index_t height,
                const std::vector<Colour>& palette) {
  std::string out = "\x89PNG\r\n\x1a\n";
  std::string header;
  put_be32(header, static_cast<std::uint32_t>(width));
  put_be32(header, static_cast<std::uint32_t>(height));
  header += std::string{8, 3, 0, 0, 0};  // 8 bits, palette, deflate, no filter choice, no interlace
  put_chunk(out, "IHDR", header);
  std::string colours;
  for (const Colour& colour : palette)
    for (const std::uint8_t channel : colour) colours += static_cast<char>(channel);
  put_chunk(out, "PLTE", colours);
  std::string lines;
  lines.reserve(pixels.size() + static_cast<std::size_t>(height));
  for (index_t y = 0; y < height; ++y) {
    lines += '\0';  // this line is not filtered
    for (index_t x = 0; x < width; ++x)
      lines += static_cast<char>(pixels[static_cast<std::size_t>(y * width + x)]);
  }
  put_chunk(out, "IDAT", stored(lines));
  put_chunk(out, "IEND", "");
  return out;
}

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t word = 0;
    for (std::size_t n = 0; n < 3; ++n)
      word =
          (word << 8U) | (at + n < bytes.size() ? static_cast<unsigned char>(bytes[at + n]) : 0U);
    for (std::size_t n = 0; n < 4; ++n)
      out += n <= bytes.size() - at ? kDigits[(word >> (18U - 6U * static_cast<unsigned>(n))) & 63U]
                                    : '=';
  }
  return out;
}

}  // namespace glasshead::wire
