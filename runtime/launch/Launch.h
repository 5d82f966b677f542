// Who am I: which transport connects the ranks of this run, decided before anything is loaded.
#pragma once

#include "runtime/Status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace msc {

/// What connects the ranks.
enum class Transport { Threads, Mpi, Cluster };

/// "threads", "mpi", "cluster": the words of --transport and of the first line.
const char *transportName(Transport transport);

/// Reads one environment variable; std::nullopt if it is not set. `processEnvironment` is getenv.
using Environment = std::function<std::optional<std::string>(const char *)>;
std::optional<std::string> processEnvironment(const char *name);

/// How this process was started.
struct Launch {
  Transport transport = Transport::Threads;
  /// What mpirun says about itself; absent for threads, and where only PMIX_RANK is set.
  std::optional<int64_t> rank;
  std::optional<int64_t> size;
  /// Why this transport, e.g. "OMPI_COMM_WORLD_SIZE is set".
  std::string reason;
};

/// The value of --transport if given; else MS_ROLE; else OMPI_COMM_WORLD_SIZE or PMIX_RANK; else threads. Slurm's
/// variables alone say nothing. Contradictions are errors with the reason.
Result<Launch> detectLaunch(const std::optional<std::string> &transport, const Environment &environment);

/// This process's rank as mpirun has put it into the environment; 0 without mpirun.
int64_t rankInEnvironment(const Environment &environment);

/// An error with the right command if the plan was made for another number of ranks than were started.
/// `network`: the file that the plan was made of; empty: it cannot be compiled for other numbers of ranks as it stands.
Status checkRankCount(int64_t planRanks, const Launch &launch, int64_t started, const std::string &planPath,
                      const std::string &network);

/// The first line on stderr: "8 ranks: threads, cpu".
std::string launchLine(int64_t ranks, Transport transport, const std::string &device);

/// True if every rank has its own log: a worker, `mpirun --output-filename`, or --log-all-ranks.
bool printsOnEveryRank(bool logAllRanks, const Environment &environment);

} // namespace msc
