#include "tools/Format.h"

#include "compiler/Compiler.h"
#include "tools/CommandLine.h"
#include "tools/FileKind.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

namespace msc::tools {

void FormatFlags::addTo(CLI::App &app) {
  app.add_option("files", files, "networks, libraries or dumps; - reads stdin and writes stdout")->required();
  app.add_flag("--check", check, "only name the files that would change, and end with 1 if there are any");
}

static int fail(const Error &error) {
  if (!error.message.empty())
    printError("msc", error.message, error.help);
  return static_cast<int>(error.code);
}

/// The file appears with all of its new text or stays as it was.
static Status replaceFile(const std::string &path, const std::string &text) {
  std::error_code error;
  std::filesystem::path target = std::filesystem::canonical(path, error); // links stay links
  std::string draft = target.string() + ".msc-fmt";
  std::ofstream out(draft, std::ios::binary);
  out << text;
  out.close();
  if (out) {
    std::filesystem::permissions(draft, std::filesystem::status(target).permissions(), error);
    std::filesystem::rename(draft, target, error);
  }
  if (out && !error)
    return Status::ok();
  std::filesystem::remove(draft, error);
  return Error{ExitCode::NoResource, "cannot write '" + path + "'", "make the file and its folder writable, or choose another directory"};
}

static bool isReadable(FileKind kind) {
  return kind == FileKind::Network || kind == FileKind::Dump || kind == FileKind::Text || kind == FileKind::Empty;
}

static int formatFile(const std::string &path, bool check) {
  bool isStream = path == "-";
  FileKind kind = isStream ? FileKind::Text : fileKindOf(path);
  if (!isReadable(kind))
    return fail(wrongKind(path, kind, "a network"));
  std::ifstream file(isStream ? "" : path, std::ios::binary);
  std::istream &in = isStream ? std::cin : file;
  std::string text{std::istreambuf_iterator<char>(in), {}};
  Result<std::string> formatted = compiler::format(text, isStream ? "stdin" : path);
  if (!formatted)
    return fail(formatted.error());
  if (isStream && !check)
    std::fwrite(formatted->data(), 1, formatted->size(), stdout);
  if (*formatted == text)
    return 0;
  if (check) {
    std::printf("%s\n", path.c_str());
    return static_cast<int>(ExitCode::Failed);
  }
  Status written = isStream ? Status::ok() : replaceFile(path, *formatted);
  return written ? 0 : fail(written.error());
}

int runFormat(const FormatFlags &flags) {
  int worst = 0;
  for (const std::string &path : flags.files)
    worst = std::max(worst, formatFile(path, flags.check));
  return worst;
}

} // namespace msc::tools
