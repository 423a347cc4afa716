#include "wire/display.h"

#include <gtest/gtest.h>

#include "wire/document_build.h"
#include "wire/render.h"

namespace glasshead::wire {
namespace {

TEST(Display, WidthIsInTerminalCells) {
  EXPECT_EQ(display_width("−∞"), 2);
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("e\xcc\x81"), 1);  // e and a combining acute
  EXPECT_EQ(display_width("\xff"), 1);       // not UTF-8: one replacement character
}

TEST(Display, ControlsAndBidirectionalMarksAreEscaped) {
  EXPECT_EQ(escape_controls("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(escape_controls("\xe2\x80\xae"), "\\u202e");
  EXPECT_EQ(escape_controls("\x1b[31m"), "\\u001b[31m");
  EXPECT_EQ(escape_controls("\xe2\x80\x8b"), "\\u200b");
  EXPECT_EQ(escape_controls("caf\xc3\xa9"), "caf\xc3\xa9");
}

TEST(Display, LabelsAreCutByCells) {
  EXPECT_EQ(cut("mouse", 8), "mouse");
  EXPECT_EQ(cut("elephants", 8), "elephan…");
  EXPECT_EQ(cut("日本語学習", 8), "日本語…");
  EXPECT_EQ(display_width(cut("日本語学習", 8)), 7);
}

TEST(Display, AsciiHasASignForEachOfOurs) {
  EXPECT_EQ(to_ascii("·"), ".");
  EXPECT_EQ(to_ascii("−∞"), "-inf");
  EXPECT_EQ(to_ascii("—"), "-");
  EXPECT_EQ(to_ascii("0.5034′"), "0.5034'");
  EXPECT_EQ(to_ascii("日"), "\\u65e5");
}

TEST(Escape, NothingEndsOrOpensMarkup) {
  EXPECT_EQ(xml_escape("<script>\"'&"), "&lt;script&gt;&quot;&#39;&amp;");
  EXPECT_EQ(markdown_escape("a|b`c<"), "a\\|b\\`c&lt;");
  EXPECT_EQ(latex_escape("50% {x}_\\^~"),
            "50\\% \\{x\\}\\_\\textbackslash{}\\textasciicircum{}\\textasciitilde{}");
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
  EXPECT_EQ(csv_field("=1+2"), "'=1+2");
}

TEST(Display, lines_are_wrapped_before_arrows_else_at_spaces) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped("a → b → c", 9, 2), Lines{"a → b → c"});
  EXPECT_EQ(wrapped("a → b → c", 8, 2), (Lines{"a → b", "  → c"}));
  EXPECT_EQ(wrapped("one → two three", 12, 2), (Lines{"one", "  → two", "  three"}));
  EXPECT_EQ(wrapped("  one two three", 9, 3), (Lines{"  one two", "   three"}));
  EXPECT_EQ(wrapped("unbreakable word", 4, 1), (Lines{"unbreakable", " word"}));
  EXPECT_EQ(wrapped("", 4, 1), Lines{""});
}

TEST(Display, labels_that_look_alike_are_numbered) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(shown_labels({"the", "cat", "a"}), (Lines{"the", "cat", "a"}));
  EXPECT_EQ(shown_labels({"the", "cat", "the"}), (Lines{"0 the", "1 cat", "2 the"}));
  EXPECT_EQ(shown_labels({"internally", "internals"}), (Lines{"0 interna…", "1 interna…"}));
}

}  // namespace
}  // namespace glasshead::wire
