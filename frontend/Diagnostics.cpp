#include "frontend/Diagnostics.h"

#include "dialects/net/ConfigFields.h"
#include "frontend/Lexer.h"
#include "frontend/Types.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

/// Longest part of a source line that is shown; dumps have lines of thousands of characters.
static constexpr size_t shownWidth = 110;
FileLineColLoc findFileLocation(Location location) {
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return file;
  if (auto name = dyn_cast<NameLoc>(location))
    return findFileLocation(name.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return findFileLocation(call.getCallee());
  if (auto opaque = dyn_cast<OpaqueLoc>(location))
    return findFileLocation(opaque.getFallbackLocation());
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (FileLineColLoc file = findFileLocation(part))
        return file;
  return {};
}

std::string displayedPath(const SourceMgr &sources, StringRef name) {
  if (sources.getIncludeDirs().empty() || sys::path::is_absolute(name) || name.starts_with(libraryPrefix))
    return name.str();
  SmallString<128> path(sources.getIncludeDirs().front());
  sys::path::append(path, name);
  if (name.starts_with(".."))
    sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  return path.str().str();
}

Diagnostics::Diagnostics(MLIRContext &context, SourceMgr &sources, raw_ostream &os, Wording wording)
    : context(context), sources(sources), os(os), wording(std::move(wording)),
      printedOperations(context.shouldPrintOpOnDiagnostic()) {
  context.printOpOnDiagnostic(false);
  handler = context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    print(diagnostic);
    return success();
  });
}

Diagnostics::~Diagnostics() {
  if (errorCount > shownErrors)
    os << "note: " << worded(std::to_string(errorCount - shownErrors) + " more errors are not shown", /*isMain=*/false) << "\n";
  context.getDiagEngine().eraseHandler(handler);
  context.printOpOnDiagnostic(printedOperations);
}

static std::string textOf(Diagnostic &diagnostic) {
  std::string text;
  raw_string_ostream os(text);
  for (DiagnosticArgument &argument : diagnostic.getArguments())
    if (argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::Type)
      os << typeText(argument.getAsType());
    else if (argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::Double)
      os << net::numberText(argument.getAsDouble());
    else
      argument.print(os);
  return text;
}

/// "'net.MatMul' op has ..." names a class of ours; users know the operator as 'MatMul'.
static std::string withUserNames(StringRef text) {
  for (StringRef dialect : {"'net.", "'dist.", "'plan."}) {
    if (!text.starts_with(dialect))
      continue;
    auto [name, rest] = text.drop_front(dialect.size()).split('\'');
    if (rest.consume_front(" op "))
      return ("'" + name + "' " + rest).str();
  }
  return text.str();
}

std::string messageText(Diagnostic &diagnostic) { return withUserNames(textOf(diagnostic)); }

FileLineColLoc Diagnostics::shownPlace(Location location) const {
  if (auto fused = dyn_cast<FusedLoc>(location)) // of a dump: what its remark names, and where it is itself
    for (Location part : fused.getLocations().drop_front())
      if (auto own = dyn_cast<FileLineColLoc>(part); own && own.getColumn())
        return own;
  FileLineColLoc file = findFileLocation(location);
  FileLineColLoc inDump = file && file.getLine() && !file.getColumn() ? findInDump(file) : FileLineColLoc();
  return inDump ? inDump : file;
}

bool Diagnostics::admit(Location location, StringRef text) {
  // Places without a column are those of a dump's remarks, which many nodes may share.
  if (FileLineColLoc file = findFileLocation(location); file && file.getColumn())
    if (!seen.emplace(file.getAsOpaquePointer(), hash_value(text)).second)
      return false;
  return ++errorCount <= shownErrors;
}

bool Diagnostics::isNews(Location location, StringRef text) {
  if (!said)
    return true;
  std::string key = text.str();
  if (FileLineColLoc file = findFileLocation(location))
    key += " " + file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn());
  return said->insert(std::move(key)).second;
}

std::string Diagnostics::worded(StringRef text, bool isMain) const {
  return wording ? wording(text, isMain) : text.str();
}

void Diagnostics::print(Diagnostic &diagnostic) {
  StringRef kind = "error";
  std::string message = withUserNames(textOf(diagnostic));
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    if (!admit(diagnostic.getLocation(), message))
      return;
    break;
  case DiagnosticSeverity::Warning:
    kind = "warning";
    ++warningCount;
    break;
  case DiagnosticSeverity::Note:
  case DiagnosticSeverity::Remark: kind = "note"; break; // MLIR's notes cannot stand alone, its remarks can
  }
  if (diagnostic.getSeverity() != DiagnosticSeverity::Error && !isNews(diagnostic.getLocation(), message))
    return;
  printOne(diagnostic.getLocation(), kind, worded(message, /*isMain=*/true));
  std::string repairs; // stand last
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string text = textOf(note);
    if (StringRef help = text; help.consume_front("help: "))
      repairs += "help: " + worded(help, /*isMain=*/false) + "\n";
    else
      printOne(note.getLocation(), "note", worded(text, /*isMain=*/false));
  }
  os << repairs;
  os.flush();
}

/// Places without a column come from the remarks of a dump: what they name need not be there.
std::string Diagnostics::displayed(FileLineColLoc file) const {
  bool isSource = file.getColumn() || !file.getLine();
  return isSource ? displayedPath(sources, file.getFilename()) : file.getFilename().str();
}

void Diagnostics::printOne(Location location, StringRef kind, StringRef text) {
  FileLineColLoc file = findFileLocation(location);
  if (!file || file.getLine() == 0) { // a flag of the command line, or nothing
    StringRef flag = file && file.getFilename().getValue().starts_with("-") ? file.getFilename().getValue() : "";
    if (kind == "error" && errorCount <= 1)
      firstErrorAtFlag = !flag.empty();
    os << (file && flag.empty() ? displayed(file) : "msc") << ": " << kind << ": " << flag << (flag.empty() ? "" : ": ")
       << text << '\n';
    return;
  }
  FileLineColLoc shown = shownPlace(location);
  bool isInDump = shown != file;
  os << displayed(shown) << ':' << shown.getLine();
  if (shown.getColumn())
    os << ':' << shown.getColumn();
  os << ": " << kind << ": " << text << '\n';
  printSnippet(shown.getFilename(), shown.getLine(), shown.getColumn());
  if (isInDump && kind != "note")
    os << displayed(file) << ':' << file.getLine() << ": note: "
       << worded("the dumped network has it here", /*isMain=*/false) << '\n';
}

/// Line `line` (from 1) of a text.
static std::optional<StringRef> lineOf(StringRef text, unsigned line) {
  for (; line > 1; --line) {
    size_t end = text.find('\n');
    if (end == StringRef::npos)
      return std::nullopt;
    text = text.drop_front(end + 1);
  }
  return text.take_until([](char c) { return c == '\n'; }).rtrim("\r");
}

/// Columns on a terminal that a piece of UTF-8 text takes: one per code point.
static size_t widthOf(StringRef text) {
  return llvm::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

void Diagnostics::printSnippet(StringRef file, unsigned line, unsigned column) {
  std::optional<StringRef> found;
  for (unsigned id = 1; column && id <= sources.getNumBuffers() && !found; ++id)
    if (const MemoryBuffer *buffer = sources.getMemoryBuffer(id); buffer->getBufferIdentifier() == file)
      found = lineOf(buffer->getBuffer(), line);
  if (!found || column > found->size() + 1)
    return;
  size_t start = 0, begin = column ? column - 1 : 0;
  size_t length = column ? std::min(tokenLength(found->drop_front(begin)), std::max<size_t>(1, found->size() - begin)) : 0;
  if (found->size() > shownWidth && begin + std::min<size_t>(length, 20) > shownWidth)
    start = begin - shownWidth / 2;
  StringRef shown = found->substr(start, shownWidth);
  while (start > 0 && !shown.empty() && (static_cast<unsigned char>(shown.front()) & 0xC0) == 0x80) {
    shown = shown.drop_front();
    ++start;
  }
  std::string text = shown.str();
  std::replace(text.begin(), text.end(), '\t', ' ');
  os << format("%5u | ", line) << (start ? "..." : "") << text << (start + shown.size() < found->size() ? "..." : "")
     << '\n';
  if (!column)
    return;
  size_t pad = widthOf(shown.take_front(begin - start)) + (start ? 3 : 0);
  size_t tail = widthOf(shown.drop_front(begin - start).take_front(length));
  os << "      | " << std::string(pad, ' ') << '^' << std::string(tail > 1 ? tail - 1 : 0, '~') << '\n';
}

FileLineColLoc Diagnostics::findInDump(FileLineColLoc original) const {
  std::string remark =
      ("# In file " + original.getFilename().getValue() + "(" + Twine(original.getLine()) + ")").str();
  for (unsigned id = 1; id <= sources.getNumBuffers(); ++id) {
    const MemoryBuffer *buffer = sources.getMemoryBuffer(id);
    StringRef text = buffer->getBuffer();
    size_t at = text.find(remark);
    if (at == StringRef::npos)
      continue;
    // The remark stands below its node, perhaps with the types and the scope in between.
    StringRef above = text.take_front(at);
    StringRef node;
    do {
      above = above.take_front(above.rfind('\n') == StringRef::npos ? 0 : above.rfind('\n'));
      node = above.substr(above.rfind('\n') + 1);
    } while (!above.empty() && (node.trim().starts_with("#") || node.trim().starts_with(":") || node.trim().empty()));
    unsigned row = above.count('\n') + 1;
    unsigned column = node.size() - node.ltrim().size() + 1;
    return FileLineColLoc::get(original.getContext(), buffer->getBufferIdentifier(), row, column);
  }
  return {};
}

} // namespace msc::frontend
