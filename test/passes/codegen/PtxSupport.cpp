#include "PtxSupport.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <unistd.h>

namespace msc::test {

std::vector<std::string> entriesOf(const std::string &ptx) {
  std::vector<std::string> names;
  for (size_t at = ptx.find(".entry "); at != std::string::npos; at = ptx.find(".entry ", at + 1))
    names.push_back(ptx.substr(at + 7, ptx.find('(', at) - at - 7));
  return names;
}

std::string entryOf(const std::string &ptx, const std::string &entry) {
  size_t begin = ptx.find(".entry " + entry + "(");
  return begin == std::string::npos ? "" : ptx.substr(begin, ptx.find("\n}", begin) - begin);
}

size_t countOf(const std::string &text, const std::string &word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

std::string ptxasPath() {
  std::vector<std::string> folders;
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');)
    folders.push_back(folder);
  if (const char *home = std::getenv("CUDA_HOME"))
    folders.push_back(std::string(home) + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string &folder : folders)
    if (access((folder + "/ptxas").c_str(), X_OK) == 0)
      return folder + "/ptxas";
  return "";
}

Assembly assemble(const std::string &ptx, const std::string &chip) {
  Assembly result;
  std::string folder = (std::filesystem::temp_directory_path() / "msc-ptx-XXXXXX").string();
  if (!mkdtemp(folder.data())) {
    result.error = "no folder for temporary files";
    return result;
  }
  std::ofstream(folder + "/kernels.ptx") << ptx;
  std::string command = fmt::format("'{}' -v -arch={} '{}/kernels.ptx' -o '{}/kernels.cubin' 2>&1", ptxasPath(), chip, folder, folder);
  std::string output;
  FILE *pipe = popen(command.c_str(), "r");
  char part[4096];
  while (pipe && std::fgets(part, sizeof(part), pipe))
    output += part;
  if (!pipe || pclose(pipe) != 0)
    result.error = output.empty() ? "ptxas failed" : output;
  std::filesystem::remove_all(folder);
  std::string entry;
  std::istringstream lines(output);
  std::smatch match;
  static const std::regex name("Compiling entry function '([^']+)'"), registers("Used (\\d+) registers"),
      memory("(\\d+) bytes stack frame, (\\d+) bytes spill stores, (\\d+) bytes spill loads"), shared("(\\d+) bytes smem");
  auto number = [&](int group) { return static_cast<unsigned>(std::stoul(match[group])); };
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, name))
      entry = match[1];
    if (std::regex_search(line, match, memory)) {
      result.kernels[entry].stackBytes = number(1);
      result.kernels[entry].spillBytes = number(2) + number(3);
    }
    if (std::regex_search(line, match, registers))
      result.kernels[entry].registers = number(1);
    if (std::regex_search(line, match, shared))
      result.kernels[entry].sharedBytes = number(1);
  }
  return result;
}

} // namespace msc::test
