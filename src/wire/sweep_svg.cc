// The sweep as four small plots.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/math.h"
#include "wire/decimal.h"
#include "wire/render.h"
#include "wire/sweep.h"

namespace glasshead::wire {
namespace {

constexpr int kPlotWidth = 380, kPlotHeight = 240, kLeft = 60, kTop = 44, kBottom = 44, kRight = 24;

struct Measure {
  const char* title;
  double SweepSide::* value;
};
constexpr Measure kMeasures[] = {{"standard deviation of the scores", &SweepSide::spread},
                                 {"largest weight", &SweepSide::largest},
                                 {"entropy of the weights, nats", &SweepSide::entropy},
                                 {"size of the softmax Jacobian, ‖J‖", &SweepSide::jacobian}};

// A round number at or above x: 1, 2 or 5 times a power of ten.
double round_up(double x) {
  double power = 1;
  while (power < x) power *= 10;
  while (power / 10 >= x && power > 1e-12) power /= 10;
  for (const double factor : {0.2, 0.5, 1.0})
    if (factor * power >= x) return factor * power;
  return power;
}

std::string coordinate(double x) { return fixed(x, 1); }

class Plot {
 public:
  Plot(const std::vector<SweepPoint>& points, const Measure& measure, int x, int y)
      : points_(points), measure_(measure), x_(x), y_(y) {
    double highest = 1e-9;
    for (const SweepPoint& point : points)
      highest = std::max({highest, point.unscaled.*measure.value, point.scaled.*measure.value});
    top_ = round_up(highest);
  }

  std::string draw() const {
    std::string out = text(x_ + kLeft, y_ + 24, "t", "start", measure_.title);
    constexpr int kSteps = 4;
    for (int n = 0; n <= kSteps; ++n) {
      const double value = top_ * n / kSteps;
      const std::string y = coordinate(height_of(value));
      out += "<line class=\"g\" x1=\"" + std::to_string(x_ + kLeft) + "\" x2=\"" +
             std::to_string(x_ + kPlotWidth - kRight) + "\" y1=\"" + y + "\" y2=\"" + y + "\"/>\n";
      out += "<text x=\"" + std::to_string(x_ + kLeft - 8) + "\" y=\"" +
             coordinate(height_of(value) + 4) + "\" class=\"s\" text-anchor=\"end\">" +
             significant(value, 3) + "</text>\n";
    }
    for (const SweepPoint& point : points_)
      out += "<text x=\"" + coordinate(place_of(point.d_k)) + "\" y=\"" +
             std::to_string(y_ + kPlotHeight - kBottom + 18) +
             "\" class=\"s\" text-anchor=\"middle\">" + std::to_string(point.d_k) + "</text>\n";
    out += line("u", &SweepPoint::unscaled) + line("z", &SweepPoint::scaled);
    return out;
  }

 private:
  double place_of(index_t d_k) const {
    const double low = math::log(static_cast<double>(points_.front().d_k));
    const double high = math::log(static_cast<double>(points_.back().d_k));
    const double part =
        high > low ? (math::log(static_cast<double>(d_k)) - low) / (high - low) : 0.5;
    return x_ + kLeft + 10 + part * (kPlotWidth - kLeft - kRight - 20);
  }
  double height_of(double value) const {
    return y_ + kPlotHeight - kBottom - value / top_ * (kPlotHeight - kTop - kBottom);
  }
  static std::string text(int x, int y, const char* cls, const char* anchor,
                          const std::string& words) {
    return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y,
                       cls, anchor, xml_escape(words));
  }
  // Round marks are unscaled, square ones scaled: colour is not the only sign.
  std::string line(const char* cls, SweepSide SweepPoint::* side) const {
    std::string path, marks;
    for (const SweepPoint& point : points_) {
      const double value = point.*side.*measure_.value;
      const std::string x = coordinate(place_of(point.d_k)), y = coordinate(height_of(value));
      path += (path.empty() ? "M" : "L") + x + " " + y;
      const std::string exact = "\" data-exact=\"" + shortest(value) + "\"/>\n";
      if (cls[0] == 'u')
        marks += "<circle class=\"m u\" r=\"4\" cx=\"" + x + "\" cy=\"" + y + exact;
      else
        marks += "<rect class=\"m z\" width=\"7\" height=\"7\" x=\"" +
                 coordinate(place_of(point.d_k) - 3.5) + "\" y=\"" +
                 coordinate(height_of(value) - 3.5) + exact;
    }
    return std::string("<path class=\"l ") + cls + "\" d=\"" + path + "\"/>\n" + marks;
  }

  const std::vector<SweepPoint>& points_;
  const Measure& measure_;
  int x_, y_;
  double top_ = 1;
};

}  // namespace

std::string sweep_svg(const SweepOptions& options, const std::vector<SweepPoint>& points) {
  const int width = 2 * kPlotWidth, height = 2 * kPlotHeight + 70;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" "
      "role=\"img\">\n<title>Random scores by head size, unscaled and scaled</title>\n",
      width, height, width, height);
  out +=
      "<style>text{font:13px system-ui,'DejaVu Sans',sans-serif;fill:#1b1f24}.t{font-weight:700}"
      "text.s{fill:#59636e;font-size:11px}.g{stroke:#e4e9ee}.l{fill:none;stroke-width:2}"
      ".l.u{stroke:#c2410c}.l.z{stroke:#1d4ed8}.m.u{fill:#c2410c}.m.z{fill:#1d4ed8}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  for (int n = 0; n < 4; ++n)
    out += Plot(points, kMeasures[n], n % 2 * kPlotWidth, n / 2 * kPlotHeight).draw();
  const int y = 2 * kPlotHeight + 16;
  out += fmt::format(
      "<circle class=\"m u\" r=\"4\" cx=\"68\" cy=\"{}\"/><text x=\"80\" y=\"{}\">unscaled</text>"
      "<rect class=\"m z\" width=\"7\" height=\"7\" x=\"165\" y=\"{}\"/><text x=\"180\" "
      "y=\"{}\">scaled by 1/√d_k; across: d_k</text>\n",
      y, y + 4, y - 4, y + 4);
  out += fmt::format(
      "<text x=\"62\" y=\"{}\" class=\"s\">q and {} keys of standard normal "
      "coordinates, means of {} draws, seed {}</text>\n",
      y + 26, options.keys, options.draws, options.seed);
  return out + "</svg>\n";
}

}  // namespace glasshead::wire
