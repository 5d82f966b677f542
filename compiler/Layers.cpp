#include "compiler/Layers.h"

#include "compiler/Compiler.h"
#include "runtime/ReadFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

#include <filesystem>

using namespace llvm;

namespace msc::compiler {

std::string commentAbove(std::string_view file, size_t offset) {
  constexpr size_t mostLines = 40;
  StringRef text(file);
  std::vector<std::string> lines;
  for (size_t begin = text.take_front(offset).rfind('\n'); begin != StringRef::npos && lines.size() < mostLines;) { // the end of the line above
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

/// Something of a kind that a formal without a default may be.
static StringRef exampleOfKind(StringRef kind) {
  return StringSwitch<StringRef>(kind).Case("int", "64").Case("float", "0.5").Case("bool", "true").Default("...");
}

/// "%y = Linear(%x, out: 64)" of "Linear(%x, out: int, bias: bool = true)".
static std::string exampleOf(StringRef head, size_t results) {
  std::vector<std::string> arguments, names;
  StringRef formals = head.split('(').second;
  for (StringRef formal : split(formals.take_front(formals.rfind(')')), ", ")) {
    auto [name, kind] = formal.split(": ");
    if (formal.starts_with("%"))
      arguments.push_back(name.str());
    else if (!kind.empty() && !kind.contains('='))
      arguments.push_back((name + ": " + exampleOfKind(kind)).str());
  }
  for (size_t i = 0; i < results; ++i)
    names.push_back(results == 1 ? "%y" : "%y" + std::to_string(i));
  return (Twine(join(names, ", ")) + " = " + head.split('(').first + "(" + join(arguments, ", ") + ")").str();
}

std::vector<LayerDescription> cellsOf(std::string_view file) {
  constexpr size_t longestHead = 2000;
  std::vector<LayerDescription> cells;
  StringRef text(file);
  for (size_t begin = text.starts_with("cell ") ? 0 : text.find("\ncell "); begin != StringRef::npos; begin = text.find("\ncell ", begin + 1)) {
    const size_t first = begin + (text[begin] == '\n' ? 1 : 0);
    StringRef rest = text.drop_front(first);
    const StringRef line = rest.take_until([](char c) { return c == '\n'; });
    const size_t end = line.ends_with("}") ? line.size() - 1 : rest.find("\n}") + 1, body = rest.take_front(longestHead).find(" {");
    if (end == 0 || body == StringRef::npos)
      break;
    LayerDescription &cell = cells.emplace_back();
    SmallVector<StringRef> words; // a long head goes on in the next line
    SplitString(rest.take_front(body).drop_front(StringRef("cell ").size()), words);
    cell.head = join(words, " ");
    cell.name = StringRef(cell.head).split('(').first.str();
    cell.comment = commentAbove(file, first);
    cell.text = rest.take_front(end + 1).str();
    const StringRef results = StringRef(cell.text).rsplit("return ").second;
    cell.example = exampleOf(cell.head, results.take_until([](char c) { return c == '\n' || c == '}'; }).count(',') + 1);
  }
  return cells;
}

Result<std::vector<LayerDescription>> describeLayers() {
  constexpr uint64_t mostBytes = 1 << 20;
  const std::string path = libraryFolder() + "/nn.mir";
  std::error_code none;
  if (std::filesystem::exists(path, none) && (!std::filesystem::is_regular_file(path, none) || std::filesystem::file_size(path, none) > mostBytes))
    return Error{ExitCode::BadFile, "'" + path + "' is not the layer library", "install msc again"};
  Result<std::string> text = readFile(path);
  if (!text)
    return text.error();
  return cellsOf(*text);
}

} // namespace msc::compiler
