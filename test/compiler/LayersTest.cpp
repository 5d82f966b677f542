#include "compiler/Layers.h"

#include <gtest/gtest.h>

namespace msc::compiler {

TEST(Layers, CellsAreReadWithTheirComments) {
  const std::string file = "# A file.\n"
                           "\n"
                           "# One line,\n"
                           "# and another.\n"
                           "cell Same(%x) { return %x }\n"
                           "cell Gate(%x, %h, out: int, keep: float, rest: float = 0.5, bias: bool = true,\n"
                           "  kind: string) {\n"
                           "  %y = if bias {\n"
                           "    yield %x\n"
                           "  } else { yield %h }\n"
                           "  return %y, %h\n"
                           "}\n";
  const std::vector<LayerDescription> cells = cellsOf(file);
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[0].name, "Same");
  EXPECT_EQ(cells[0].head, "Same(%x)");
  EXPECT_EQ(cells[0].comment, "One line,\nand another.");
  EXPECT_EQ(cells[0].text, "cell Same(%x) { return %x }");
  EXPECT_EQ(cells[0].example, "%y = Same(%x)");
  EXPECT_EQ(cells[1].head, "Gate(%x, %h, out: int, keep: float, rest: float = 0.5, bias: bool = true, kind: string)");
  EXPECT_EQ(cells[1].comment, "");
  EXPECT_EQ(cells[1].text, file.substr(file.find("cell Gate"), file.size() - 1 - file.find("cell Gate")));
  EXPECT_EQ(cells[1].example, "%y0, %y1 = Gate(%x, %h, out: 64, keep: 0.5, kind: ...)");
}

TEST(Layers, ACommentStandsRightAbove) {
  EXPECT_EQ(commentAbove("", 0), "");
  EXPECT_EQ(commentAbove("#a\ncell", 3), "a");
  EXPECT_EQ(commentAbove("# a\n\ncell", 5), "");
  EXPECT_EQ(commentAbove("x\n#\n#  b \ncell C", 14), "\n b");
}

} // namespace msc::compiler
