// PTX in tests: what the text says, and what NVIDIA's assembler makes of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace msc::test {

/// The text of one `.entry`, its body included.
std::string entryOf(const std::string &ptx, const std::string &entry);
std::vector<std::string> entriesOf(const std::string &ptx);
/// How often a word occurs.
size_t countOf(const std::string &text, const std::string &word);

/// The path of ptxas, in PATH, CUDA_HOME or /usr/local/cuda; empty: not installed.
std::string ptxasPath();

struct Assembled {
  unsigned registers = 0, spillBytes = 0, stackBytes = 0, sharedBytes = 0;
};
struct Assembly {
  std::map<std::string, Assembled> kernels; ///< by entry
  std::string error;                        ///< what ptxas said where it failed
};
/// Assembles for "sm_80", "sm_90".
Assembly assemble(const std::string &ptx, const std::string &chip);

} // namespace msc::test
