// The folder of dumps: `<path>/rank_<r>/<stage>_<NNNN>.ir`, and `.dot` beside it from level 3 on. NNNN counts the
// stages of a compilation, so a stage has the same name in every compile; dumps of an earlier compile are removed
// first, other files stay.
#pragma once

#include "runtime/Status.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <string>
#include <vector>

namespace msc::compiler {

/// Levels as `save_graphs` has them: 1 writes what was decided (step_parallel_begin) and what each rank does with it
/// (18_execute), 2 all stages, 3 the same as Graphviz, too.
class DumpFolder {
public:
  using Print = llvm::function_ref<void(int64_t rank, llvm::raw_ostream &)>;

  /// `ranks`: "" (all up to 16 devices, else rank 0), "all" or "0,5". Level 0 writes nothing.
  static Result<DumpFolder> create(std::string path, int level, const std::string &ranks, int64_t devices);

  const std::vector<int64_t> &ranks() const { return chosen; }

  /// Writes one stage for every chosen rank, unless the level leaves it out.
  Status write(llvm::StringRef stage, Print text, Print graph);
  /// Counts a stage that has no dump at this level.
  void skip() { ++stages; }

private:
  Status writeFile(int64_t rank, const std::string &name, Print print) const;

  std::string path;
  int level = 0;
  std::vector<int64_t> chosen;
  int stages = 0;
};

} // namespace msc::compiler
