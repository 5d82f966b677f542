// The driver: from a file to a plan, phase by phase.
#pragma once

#include "compiler/Changes.h"
#include "compiler/Report.h"
#include "compiler/StrategyFile.h"
#include "dialects/net/ShardingRule.h"
#include "runtime/Status.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace msc::passes {
struct SearchResult;
}

namespace msc::compiler {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

/// What the kernels of a plan are compiled for.
enum class MachineCode {
  All,           ///< every instruction set of what device_target names
  ThisProcessor, ///< of processors this one alone: the plan runs at once and is not kept
  None,          ///< the plan is read and does not run
};

/// What `msc compile` and `msc explain` ask for. Nothing here is checked yet.
struct CompileOptions {
  std::string input;              ///< a network (.mir) or a dump of ours
  int64_t devices = 0;            ///< 0: what the network says, else 1
  KeyValues context;              ///< flags that override the context block: option name (snake case) and text
  KeyValues defines;              ///< -D name=value
  std::vector<std::string> keep;  ///< values to keep as results: "%a", "grad:w"
  std::string saveGraphsRanks;    ///< "" (all up to 16 devices, else one per local shapes), "all" or "0,5"
  std::string machine = "cpu-local"; ///< preset or file of the machine model that prices all choices
  bool fusion = true;             ///< off: one kernel per operator
  bool commFusion = true;         ///< off: every collective on its own, whatever comm_fusion says
  bool reuse = true;              ///< off: the backward pass computes its statistics again, as 18_execute shows it
  bool partialSums = true;        ///< off: sums are completed before linear operators, as 18_execute shows it
  bool moves = true;              ///< off: completions and redistributions run as 18_execute shows them
  bool overlap = true;            ///< off: a collective is complete when its step ends
  int64_t candidates = 0;         ///< assignments of which a search takes the one that is fastest with all passes; 0: what takes little time
  uint64_t memoryLimit = 0;       ///< bytes that a rank may need; 0: any
  int64_t searchBytes = 0;          ///< that by the measure of the search; 0: any
  std::string strategyFile;       ///< strategies for operators that have none; empty: no file
  bool repropagate = false;       ///< of a dump, keep only the strategies that the user wrote or edited
  bool explains = false;          ///< surprises and what other strategies would cost are wanted
  std::string op;                 ///< the operator whose alternatives are wanted, by its instance name; empty: none
  net::Strategy forcedStrategy;   ///< that this operator takes whatever the network says; empty: none
  KeptStrategies roundsLike;      ///< with that: rounds that differ here are searched apart
  std::function<void(const std::string &)> onCluster; ///< gets every cluster that becomes a kernel as MLIR; for tests
  std::function<void(const std::string &)> onGpuIr; ///< gets the IR of all kernels for GPUs; for tests
  std::function<void(double, double)> onSearch; ///< passes::SearchWatch; in a trial it hears (0, infinity), which is that there is one
  NetworkChanges changes;         ///< tried by compileWithin (MemoryLimit.h)
  std::shared_ptr<std::set<std::string>> said; ///< warnings and notes that earlier attempts have printed; null: there were none
  bool isTrial = false;           ///< nothing is said, dumped or explained: what it needs and takes is wanted
  bool estimates = false;         ///< what a search expects stands for the plan, which then has no programs
  int64_t searchOperations = 0;   ///< that a search may spend, see AssignStrategies; 0: what one search may
  bool closesGap = true;          ///< off: a search within `searchBytes` looks less far
  std::shared_ptr<std::vector<passes::SearchResult>> searched; ///< what a search within `searchBytes` finds; not empty: is not asked again
  MachineCode machineCode = MachineCode::All;
  bool strict = false;            ///< surprises become errors: passes/sharding/Surprises.h, and a parameter used under two strategies
};

/// A plan that passed its own check, and what making it took.
struct CompileOutcome {
  plan::Plan plan;
  Findings findings;
  NetworkFacts facts;
  std::vector<std::string> sources; ///< files of the user that were read: the network, what it imports
  std::optional<Error> refusal; ///< a rank needs more than it may; only where `explains` asked for explanations, else that is the error
};

/// Compiles. Mistakes in the network are printed on stderr where they are found (file, line, caret, repair); then the
/// returned error has an empty message and the exit code to end with.
Result<CompileOutcome> compile(const CompileOptions &options);

/// Reports all mistakes of a network, its blocks and its strategies as `compile` does, and makes nothing of it.
Status check(const CompileOptions &options);

/// The text of a file in the one layout. Mistakes are printed on stderr; then the error's message is empty.
Result<std::string> format(const std::string &text, const std::string &path);

/// An option of the context block that a flag may override: its name in snake case, one line about it, which is empty for
/// options that are understood, but not supported, and its values if they are few: "BOOL", "0..3".
struct ContextOption {
  std::string name;
  std::string help;
  std::string values;
};
std::vector<ContextOption> contextOptions();

/// Where the layer library lies: ../share/msc from the folder of the program, in the build tree and when installed.
std::string libraryFolder();

/// "net.plan" for "dir/net.mir": where the plan goes unless -o says otherwise.
std::string defaultOutput(const std::string &input);

} // namespace msc::compiler
