// Colours and bitmaps for the SVG form.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::wire {

using Colour = std::array<std::uint8_t, 3>;

// The cividis scale (Nuñez, Anderton, Renslow, Optimizing colormaps with consideration for color
// vision deficiency, PLoS ONE 13, 2018): dark blue at 0, yellow at 1; linear between six of its
// points, within 6 of 255 of it. t outside [0, 1] is clamped.
Colour cividis(double t);
std::string hex(Colour colour);  // "#00224e"
bool is_dark(Colour colour);     // white text reads better on it

// A paletted PNG: `pixels` are numbers of `palette`, row-major. The bytes are stored, not deflated,
// so that they depend on nothing but the pixels.
std::string png(const std::vector<std::uint8_t>& pixels, index_t width, index_t height,
                const std::vector<Colour>& palette);
std::string base64(const std::string& bytes);

}  // namespace glasshead::wire
