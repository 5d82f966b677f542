// A text that an editor has open, and the files that it imports.
#pragma once

#include "tools/lsp/Outline.h"

#include <optional>
#include <string>
#include <vector>

namespace msc::lsp {

/// Line and character as editors count them: from 0.
struct Position {
  int64_t line = 0, character = 0;
};

/// A text with its lines. Characters are counted in UTF-16 units, as the protocol wants unless `inBytes`.
class Text {
public:
  Text(std::string content, bool inBytes);

  const std::string &content() const { return bytes; }
  Position positionAt(size_t offset) const;
  /// The nearest place that exists.
  size_t offsetAt(Position position) const;
  /// Of a line and a column that count from 1, in bytes.
  size_t offsetOf(unsigned line, unsigned column) const;

private:
  llvm::StringRef line(size_t number) const;

  std::string bytes;
  std::vector<size_t> starts; ///< of lines
  bool inBytes;
};

/// "file:///a%20b.mir" as a path; of other schemes the last part, for names in messages.
std::string pathOf(const std::string &uri);
std::string uriOf(const std::string &path);

/// A file that is imported.
struct Library {
  std::string path;
  std::string content;
};

/// The files that a text imports, and they in turn, as far as they can be read: beside the importing file, else in
/// `library`.
std::vector<Library> readImports(const Outline &outline, const std::string &path, const std::string &library);

} // namespace msc::lsp
