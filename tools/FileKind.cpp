#include "tools/FileKind.h"

#include "runtime/MissingFile.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace msc::tools {

/// True if one of the lines begins with the word.
static bool hasLine(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if (at == 0 || text[at - 1] == '\n')
      return true;
  return false;
}

/// A safetensors file begins with the length of its JSON header.
static bool isTensors(std::string_view text) {
  return text.size() > 9 && text[8] == '{' && text.substr(3, 5).find_first_not_of('\0') == std::string_view::npos;
}

FileKind fileKindOf(const std::string &path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return std::filesystem::exists(std::filesystem::path(path) / "index.json", ignored) ? FileKind::Checkpoint
                                                                                        : FileKind::Folder;
  // Opening a pipe would wait for its writer.
  if (std::filesystem::file_status found = std::filesystem::status(path, ignored); !std::filesystem::is_regular_file(found))
    return std::filesystem::exists(found) ? FileKind::Special : FileKind::Missing;
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return FileKind::Unreadable;
  std::vector<char> buffer(64 << 10);
  in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
  std::string_view text(buffer.data(), static_cast<size_t>(in.gcount()));
  if (text.empty())
    return FileKind::Empty;
  constexpr std::string_view planBegins = "msc-plan"; // of a plan that is cut there is less
  if (text.starts_with(planBegins) || planBegins.starts_with(text))
    return FileKind::Plan;
  if (text.substr(0, 6) == "\x93NUMPY")
    return FileKind::Array;
  if (text.substr(0, 4) == "\x7f" "ELF")
    return FileKind::Program;
  if (isTensors(text))
    return FileKind::Tensors;
  if (text.find('\0') != std::string_view::npos)
    return FileKind::Binary;
  if (hasLine(text, "#IR entry"))
    return FileKind::Dump;
  if (hasLine(text, "network "))
    return FileKind::Network;
  size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' ? FileKind::Json : FileKind::Text;
}

Error wrongKind(const std::string &path, FileKind kind, const std::string &wanted) {
  auto is = [&](const std::string &what, const std::string &help) {
    return Error{ExitCode::BadFile, path + " is not " + wanted + " but " + what, help};
  };
  const std::string expected = wanted == "a plan" ? "plans are written by 'msc compile net.mir'" : "networks begin with 'network name(...)'";
  switch (kind) {
  case FileKind::Missing: return missingFile(path);
  case FileKind::Unreadable: {
    const int cause = ::access(path.c_str(), R_OK) == 0 ? EIO : errno;
    return {ExitCode::Usage, "cannot open '" + path + "': " + std::strerror(cause), "'ls -l " + path + "' shows who may read it"};
  }
  case FileKind::Empty: return is("an empty file", expected);
  case FileKind::Plan: return is("a plan", "'msrun " + path + "' runs it, 'msc explain " + path + "' explains it");
  case FileKind::Network: return is("a network", "'msc compile " + path + "' makes a plan of it");
  case FileKind::Dump: return is("a dump", "'msc compile " + path + "' makes a plan of it");
  case FileKind::Array: return is("a NumPy array", "'msrun PLAN --input NAME=" + path + "' feeds it to an input");
  case FileKind::Tensors: return is("a part of a checkpoint", "'msrun PLAN --resume FOLDER' reads the whole checkpoint");
  case FileKind::Checkpoint: return is("a checkpoint", "'msrun PLAN --resume " + path + "' reads it");
  case FileKind::Folder: return is("a folder", "name a file in it");
  case FileKind::Special: return is("a pipe or a device", "write its content to a file first");
  case FileKind::Json: return is("JSON", "reports are for other programs to read");
  case FileKind::Program: return is("an executable", expected);
  case FileKind::Binary: return is("a binary file", expected);
  case FileKind::Text: break;
  }
  return is("some text", expected);
}

} // namespace msc::tools
