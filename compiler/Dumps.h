// The folder of dumps: `<path>/rank_<r>/<stage>_<NNNN>.ir`, and `.dot` beside it from level 3 on. NNNN counts the
// stages of a compilation, so a stage has the same name in every compile. Dumps wait in a folder of their own until the
// compile has succeeded; then they take the place of those of an earlier one, which are known by name and content. The
// file that is compiled and all other files stay as they are.
#pragma once

#include "runtime/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace msc::compiler {

/// Levels as `save_graphs` has them: 1 writes what was decided (step_parallel_begin) and what each rank does with it
/// (18_execute), 2 all stages, 3 the same as Graphviz, too.
class DumpFolder {
public:
  using Print = llvm::function_ref<void(int64_t rank, llvm::raw_ostream &)>;

  /// `ranks`: "" (all up to 16 devices, else one per local shapes), "all" or "0,5". Level 0 writes nothing.
  static Result<DumpFolder> create(std::string path, int level, const std::string &ranks, int64_t devices);

  /// Above 16 devices, from here on: the first rank of every combination of local shapes. What rank 0 has so far holds
  /// for all. `module` is partitioned.
  Status chooseRanks(mlir::ModuleOp module);

  /// Writes one stage for every chosen rank, unless the level leaves it out.
  Status write(llvm::StringRef stage, Print text, Print graph);
  /// Counts a stage that has no dump at this level.
  void skip() { ++stages; }
  /// Puts the dumps where they belong. `input`: the file that was compiled.
  Status finish(const std::string &input);

  DumpFolder();
  DumpFolder(DumpFolder &&) noexcept;
  DumpFolder &operator=(DumpFolder &&) noexcept;
  ~DumpFolder();

private:
  Status writeFile(int64_t rank, const std::string &name, Print print);

  struct Waiting;
  std::string path;
  int level = 0;
  bool onePerProgram = false;
  std::vector<int64_t> chosen;
  int stages = 0;
  std::unique_ptr<Waiting> waiting; ///< dumps that are not in their place yet
};

} // namespace msc::compiler
