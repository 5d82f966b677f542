#include "compiler/Layers.h"

#include "compiler/Compiler.h"
#include "runtime/ReadFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace msc::compiler {

std::string commentAbove(std::string_view file, size_t offset) {
  StringRef text(file);
  std::vector<std::string> lines;
  for (size_t begin = text.take_front(offset).rfind('\n'); begin != StringRef::npos;) { // the end of the line above
    const size_t before = text.take_front(begin).rfind('\n');
    StringRef line = text.take_front(begin).drop_front(before == StringRef::npos ? 0 : before + 1);
    if (!line.consume_front("#"))
      break;
    line.consume_front(" ");
    lines.insert(lines.begin(), line.rtrim().str());
    begin = before;
  }
  return join(lines, "\n");
}

/// "%y = Linear(%x, out: 64)" of "Linear(%x, out: int, bias: bool = true)".
static std::string exampleOf(StringRef head) {
  std::vector<std::string> arguments;
  StringRef formals = head.split('(').second;
  for (StringRef formal : split(formals.take_front(formals.rfind(')')), ", ")) {
    auto [name, kind] = formal.split(": ");
    if (kind.empty() && formal.starts_with("%"))
      arguments.push_back(formal.str());
    else if (!kind.contains('=') && !name.contains(' ')) // no default, and no rest of one
      arguments.push_back(name.starts_with("%") ? name.str() : (name + ": " + (kind == "int" ? "64" : kind == "float" ? "0.5" : kind == "bool" ? "true" : "...")).str());
  }
  return ("%y = " + head.split('(').first + "(" + join(arguments, ", ") + ")").str();
}

std::vector<LayerDescription> cellsOf(std::string_view file) {
  std::vector<LayerDescription> cells;
  StringRef text(file);
  for (size_t begin = text.starts_with("cell ") ? 0 : text.find("\ncell "); begin != StringRef::npos; begin = text.find("\ncell ", begin + 1)) {
    const size_t first = begin + (text[begin] == '\n' ? 1 : 0);
    StringRef rest = text.drop_front(first);
    const size_t end = rest.find("\n}"), body = rest.find(" {");
    if (end == StringRef::npos || body == StringRef::npos)
      break;
    LayerDescription &cell = cells.emplace_back();
    SmallVector<StringRef> words; // a long head goes on in the next line
    SplitString(rest.take_front(body).drop_front(StringRef("cell ").size()), words);
    cell.head = join(words, " ");
    cell.name = StringRef(cell.head).split('(').first.str();
    cell.comment = commentAbove(file, first);
    cell.text = rest.take_front(end + 2).str();
    cell.example = exampleOf(cell.head);
  }
  return cells;
}

Result<std::vector<LayerDescription>> describeLayers() {
  Result<std::string> text = readFile(libraryFolder() + "/nn.mir");
  if (!text)
    return text.error();
  return cellsOf(*text);
}

} // namespace msc::compiler
