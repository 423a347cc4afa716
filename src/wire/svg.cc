// Documents as one SVG figure: matrices as vectors, large ones as an embedded bitmap.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "wire/decimal.h"
#include "wire/display.h"
#include "wire/picture.h"
#include "wire/render.h"

namespace glasshead::wire {
namespace {

// Sizes in user units (pixels at 100 %), for a 14-unit monospace font whose characters are 8.5
// wide.
constexpr int kMargin = 16, kLine = 22, kCellHeight = 26, kPadding = 8, kGap = 36;
constexpr int kCharTenths = 85;
constexpr int kMapSide = 480;
constexpr int kWidest = 1100;

int text_width(const std::string& text) { return (display_width(text) * kCharTenths + 9) / 10; }

constexpr const char* kStyle =
    "text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1b1f24}"
    ".t{font-weight:700}.s{fill:#59636e}.d{fill:#fff}.k{fill:#000}"
    ".c{fill:#fff;stroke:#d1d9e0}.h{fill:url(#hatch);stroke:#d1d9e0}";

struct Picture {
  std::string body;
  int width = 0, height = 0;
};

std::string text_at(int x, int y, const char* cls, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y,
                     cls, anchor, xml_escape(text));
}

std::string exact_attribute(const Cell& cell) {
  if (cell.is_hidden) return {};
  if (!std::isfinite(cell.exact))
    return std::string(" data-exact=\"") +
           (std::isnan(cell.exact) ? "nan"
            : cell.exact < 0       ? "-inf"
                                   : "inf") +
           "\"";
  return " data-exact=\"" + shortest(cell.exact) + "\"";
}

std::string cell_svg(const Table& table, std::size_t n, std::size_t j, int x, int y, int width) {
  const Cell& cell = table.rows[n][j];
  std::string out = "<g data-testid=\"" + xml_escape(cell_id(table, n, static_cast<index_t>(j))) +
                    "\"" + exact_attribute(cell) + ">";
  if (cell.is_hidden && !cell.reason.empty())
    out += "<title>" + xml_escape("hidden: " + cell.reason) + "</title>";
  const bool is_heat = !table.sums.empty() && !cell.is_hidden && std::isfinite(cell.exact);
  const Colour colour = cividis(cell.exact);
  out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"", x, y, width,
                     kCellHeight, cell.is_hidden ? "h" : "c");
  if (is_heat) out += " style=\"fill:" + hex(colour) + "\"";
  out += "/>";
  const char* cls = !is_heat ? "n" : is_dark(colour) ? "d" : "k";
  return out + text_at(x + width - kPadding, y + kCellHeight - 8, cls, "end", marked(cell)) +
         "</g>\n";
}

std::string name_of(const Table& table) {
  std::string name = table.name;
  if (!table.leading.empty()) name += (name.empty() ? "" : ", ") + table.leading;
  return name;
}

// A matrix drawn at (x, y), its top left corner.
Picture grid(const Table& table, int x, int y) {
  Picture picture;
  int label_width = 0;
  for (const std::string& label : table.row_labels)
    label_width = std::max(label_width, text_width(label) + kPadding);
  const std::string name = name_of(table);
  int top = y;
  if (!name.empty()) {
    picture.body += text_at(x, top + 16, "s", "start", name);
    picture.width = text_width(name);
    top += kLine;
  }
  const int header = table.column_labels.empty() ? 0 : kLine;
  int left = x + label_width;
  for (std::size_t j = 0; !table.rows.empty() && j < table.rows[0].size(); ++j) {
    int width = table.column_labels.empty() ? 0 : text_width(table.column_labels[j]);
    for (const auto& row : table.rows) width = std::max(width, text_width(marked(row[j])));
    width += 2 * kPadding;
    if (header > 0)
      picture.body +=
          text_at(left + width - kPadding, top + 16, "t", "end", table.column_labels[j]);
    for (std::size_t n = 0; n < table.rows.size(); ++n)
      picture.body +=
          cell_svg(table, n, j, left, top + header + static_cast<int>(n) * kCellHeight, width);
    left += width;
  }
  for (std::size_t n = 0; n < table.row_labels.size(); ++n)
    picture.body += text_at(x, top + header + static_cast<int>(n) * kCellHeight + 18, "t", "start",
                            table.row_labels[n]);
  if (!table.sums.empty()) {
    picture.body += text_at(left + kPadding, top + 16, "t", "start", "Σ");
    int widest = 0;
    for (std::size_t n = 0; n < table.sums.size(); ++n) {
      const RowSum& sum = table.sums[n];
      const std::string text = sum.is_empty ? sum.text : sum.text + (sum.is_ok ? " ✓" : " ✗");
      picture.body +=
          "<g data-testid=\"" + xml_escape(row_sum_id(table, n)) + "\">" +
          text_at(left + kPadding, top + header + static_cast<int>(n) * kCellHeight + 18, "n",
                  "start", text) +
          "</g>\n";
      widest = std::max(widest, text_width(text));
    }
    left += kPadding + widest;
  }
  picture.width = std::max(picture.width, left - x);
  picture.height = top + header + static_cast<int>(table.rows.size()) * kCellHeight - y;
  return picture;
}

// A large matrix as a bitmap, one pixel an entry; hidden pairs grey.
Picture bitmap(const Table& table, int x, int y) {
  constexpr std::uint8_t kHidden = 255;
  std::vector<Colour> palette;
  for (int n = 0; n < kHidden; ++n) palette.push_back(cividis(n / 254.0));
  palette.push_back({208, 208, 208});
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : table.map) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::vector<std::uint8_t> pixels;
  pixels.reserve(table.map.size());
  for (const double value : table.map) {
    if (std::isnan(value)) {
      pixels.push_back(kHidden);
      continue;
    }
    const double part = high > low ? (value - low) / (high - low) : 0;
    pixels.push_back(static_cast<std::uint8_t>(std::floor(std::clamp(part, 0.0, 1.0) * 254 + 0.5)));
  }
  Picture picture;
  const std::string range = low <= high ? "from " + significant(low, 4) + " (dark) to " +
                                              significant(high, 4) + " (yellow); hidden grey"
                                        : "no finite value";
  const index_t longest = std::max(table.map_rows, table.map_columns);
  picture.width = static_cast<int>(kMapSide * table.map_columns / longest);
  picture.height = static_cast<int>(kMapSide * table.map_rows / longest) + kLine;
  const std::string name = name_of(table);
  picture.body =
      text_at(x, y + 16, "s", "start", (name.empty() ? "" : name + ", ") + range) +
      fmt::format(
          "<image data-testid=\"map-{}{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
          "preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" "
          "href=\"data:image/png;base64,",
          xml_escape(table.tap), table.head < 0 ? "" : fmt::format("-h{}", table.head), x,
          y + kLine, std::max(picture.width, 1), std::max(picture.height - kLine, 1)) +
      base64(png(pixels, table.map_columns, table.map_rows, palette)) + "\"/>\n";
  picture.width = std::max(picture.width, text_width(range));
  return picture;
}

class Figure {
 public:
  std::string draw(const Document& document) {
    put_line("t", document.name);
    put_line("s", document.title);
    for (const std::string& line : document.preamble) put_line("s", line);
    for (const Section& section : document.sections) put_section(section);
    y_ += kLine / 2;
    for (const std::string& line : document.footnotes) put_line("s", line);
    for (const std::string& line : document.notes) put_line("n", "note  " + line);
    const int height = y_ + kMargin, width = reach_ + kMargin;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" "
               "height=\"{}\" role=\"img\">\n<title>",
               width, height, width, height) +
           xml_escape(document.title) + "</title>\n<style>" + kStyle +
           "</style>\n<defs><pattern id=\"hatch\" width=\"8\" height=\"8\" "
           "patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\" fill=\"#f6f8fa\"/>"
           "<path d=\"M0 8L8 0\" stroke=\"#c4ccd4\"/></pattern></defs>\n" +
           "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + body_ + "</svg>\n";
  }

 private:
  void put_line(const char* cls, const std::string& text) {
    body_ += text_at(kMargin, y_ + 16, cls, "start", text);
    reach_ = std::max(reach_, kMargin + text_width(text));
    y_ += kLine;
  }

  void put_section(const Section& section) {
    std::vector<const Table*> shown;
    for (const Table& table : section.tables)
      if (!table.is_repeated && (!table.rows.empty() || !table.map.empty()))
        shown.push_back(&table);
    if (shown.empty() && section.lines.empty()) return;
    y_ += kLine / 2;
    std::string heading = section.number > 0 ? fmt::format("{} ", section.number) : std::string();
    heading += section.title;
    for (const std::string* more : {&section.formula, &section.remark, &section.shape})
      if (!more->empty()) heading += " · " + *more;
    put_line("t", heading);
    int x = kMargin, tallest = 0;
    for (const Table* table : shown) {
      Picture picture = table->map.empty() ? grid(*table, x, y_) : bitmap(*table, x, y_);
      if (x > kMargin && x + picture.width > kWidest) {
        y_ += tallest + kLine / 2;
        x = kMargin;
        tallest = 0;
        picture = table->map.empty() ? grid(*table, x, y_) : bitmap(*table, x, y_);
      }
      body_ += picture.body;
      reach_ = std::max(reach_, x + picture.width);
      tallest = std::max(tallest, picture.height);
      x += picture.width + kGap;
    }
    y_ += tallest;
    for (const std::string& line : section.lines) put_line("n", line);
  }

  std::string body_;
  int y_ = kMargin, reach_ = 0;
};

}  // namespace

std::string to_svg(const Document& document) { return Figure().draw(document); }

}  // namespace glasshead::wire
