// The folder of dumps: `<path>/rank_<r>/<stage>_<NNNN>.ir`. NNNN counts the stages of a compilation, so a stage has the
// same name in every compile; dumps of an earlier compile are removed first, other files stay.
#pragma once

#include "runtime/Status.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msc::compiler {

class DumpFolder {
public:
  /// `ranks`: "" (all up to 16 devices, else rank 0), "all" or "0,5". Level 0 writes nothing.
  static Result<DumpFolder> create(std::string path, int level, const std::string &ranks, int64_t devices);

  bool isOn() const { return level > 0; }
  const std::vector<int64_t> &ranks() const { return chosen; }

  /// Writes one stage for every chosen rank; `print(rank, stream)` makes the text.
  Status write(llvm::StringRef stage, llvm::StringRef extension,
               llvm::function_ref<void(int64_t rank, llvm::raw_ostream &)> print);
  /// Counts a stage that has no dump at this level.
  void skip() { ++stages; }

private:
  std::string path;
  int level = 0;
  std::vector<int64_t> chosen;
  int stages = 0;
};

} // namespace msc::compiler
