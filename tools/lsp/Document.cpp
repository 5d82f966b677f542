#include "tools/lsp/Document.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace msc::lsp {

namespace fs = std::filesystem;

Text::Text(std::string content, bool inBytes) : bytes(std::move(content)), starts{0}, inBytes(inBytes) {
  for (size_t at = 0; (at = bytes.find('\n', at)) != std::string::npos;)
    starts.push_back(++at);
}

llvm::StringRef Text::line(size_t number) const {
  size_t end = number + 1 < starts.size() ? starts[number + 1] : bytes.size();
  return llvm::StringRef(bytes).slice(starts[number], end).rtrim("\r\n");
}

/// UTF-16 units that a code point takes which begins with this byte; 0 for the bytes behind it.
static int64_t unitsOf(char first) {
  auto byte = static_cast<unsigned char>(first);
  return (byte & 0xC0) == 0x80 ? 0 : byte >= 0xF0 ? 2 : 1;
}

Position Text::positionAt(size_t offset) const {
  offset = std::min(offset, bytes.size());
  size_t number = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), offset) - starts.begin()) - 1;
  int64_t character = 0;
  for (size_t at = starts[number]; at < offset; ++at)
    character += inBytes ? 1 : unitsOf(bytes[at]);
  return {static_cast<int64_t>(number), character};
}

size_t Text::offsetAt(Position position) const {
  if (position.line >= static_cast<int64_t>(starts.size()))
    return bytes.size();
  llvm::StringRef text = line(static_cast<size_t>(position.line));
  size_t at = 0;
  for (int64_t character = 0; at < text.size(); ++at) {
    int64_t units = inBytes ? 1 : unitsOf(text[at]);
    if (character + units > position.character && units > 0)
      break;
    character += units;
  }
  return starts[static_cast<size_t>(position.line)] + at;
}

size_t Text::offsetOf(unsigned number, unsigned column) const {
  if (number == 0 || number > starts.size())
    return number == 0 ? 0 : bytes.size();
  return starts[number - 1] + std::min<size_t>(column == 0 ? 0 : column - 1, line(number - 1).size());
}

static int hexDigit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

std::string pathOf(const std::string &uri) {
  constexpr std::string_view scheme = "file://";
  if (uri.compare(0, scheme.size(), scheme) != 0)
    return uri.substr(uri.find_last_of(":/") + 1);
  size_t begin = uri.find('/', scheme.size()); // behind the name of the host
  std::string path;
  for (size_t at = begin; at < uri.size(); ++at) {
    int high = uri[at] == '%' && at + 2 < uri.size() ? hexDigit(uri[at + 1]) : -1;
    int low = high >= 0 ? hexDigit(uri[at + 2]) : -1;
    path += low >= 0 ? static_cast<char>(high * 16 + low) : uri[at];
    at += low >= 0 ? 2 : 0;
  }
  return path;
}

std::string uriOf(const std::string &path) {
  std::error_code ignored;
  std::string uri = "file://";
  for (char c : fs::absolute(path, ignored).lexically_normal().string()) {
    bool isPlain =
        std::isalnum(static_cast<unsigned char>(c)) || std::string_view("-._~/").find(c) != std::string_view::npos;
    constexpr char digits[] = "0123456789ABCDEF";
    auto byte = static_cast<unsigned char>(c);
    if (isPlain)
      uri += c;
    else
      (uri += '%').append({digits[byte >> 4], digits[byte & 15]});
  }
  return uri;
}

std::vector<Library> readImports(const Outline &outline, const std::string &path, const std::string &library) {
  constexpr size_t most = 64;
  constexpr uintmax_t largest = 4 << 20;
  std::vector<Library> found;
  auto follow = [&](const Outline &importing, const fs::path &folder) {
    for (const Symbol &symbol : importing.symbols()) {
      if (symbol.kind != Symbol::Kind::Import)
        continue;
      for (const fs::path &base : {folder, fs::path(library)}) {
        std::error_code error;
        std::string full = (base / symbol.name).lexically_normal().string();
        if (!fs::is_regular_file(full, error) || fs::file_size(full, error) > largest)
          continue;
        bool isNew = std::none_of(found.begin(), found.end(), [&](const Library &other) { return other.path == full; });
        if (isNew && full != path && found.size() < most) {
          std::ifstream in(full, std::ios::binary);
          found.push_back({full, {std::istreambuf_iterator<char>(in), {}}});
        }
        break;
      }
    }
  };
  follow(outline, fs::path(path).parent_path());
  for (size_t i = 0; i < found.size(); ++i)
    follow(Outline(found[i].content), fs::path(found[i].path).parent_path());
  return found;
}

} // namespace msc::lsp
