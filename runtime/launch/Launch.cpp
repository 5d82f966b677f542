#include "runtime/launch/Launch.h"

#include <charconv>
#include <cstdlib>

namespace msc {

const char *transportName(Transport transport) {
  switch (transport) {
  case Transport::Threads: return "threads";
  case Transport::Mpi: return "mpi";
  case Transport::Cluster: return "cluster";
  }
  return "?";
}

std::optional<std::string> processEnvironment(const char *name) {
  const char *value = getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

namespace {

Error usage(std::string message, std::string help) { return {ExitCode::Usage, std::move(message), std::move(help)}; }

Result<std::optional<int64_t>> number(const char *name, const Environment &environment) {
  std::optional<std::string> text = environment(name);
  if (!text)
    return std::optional<int64_t>();
  int64_t value = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0)
    return usage(std::string(name) + " is '" + *text + "', not a number", "start msrun by mpirun, or unset it");
  return std::optional<int64_t>(value);
}

/// What mpirun has put into the environment.
struct MpiTraces {
  std::optional<int64_t> rank, size;
  const char *variable = nullptr; ///< the one that shows it; null: not under mpirun
  bool many() const { return size.value_or(1) > 1; }
  std::string str() const { return variable + (size ? "=" + std::to_string(*size) : std::string()); }
};

Result<MpiTraces> mpiTraces(const Environment &environment) {
  MpiTraces traces;
  Result<std::optional<int64_t>> size = number("OMPI_COMM_WORLD_SIZE", environment);
  Result<std::optional<int64_t>> rank = number("OMPI_COMM_WORLD_RANK", environment);
  Result<std::optional<int64_t>> pmix = number("PMIX_RANK", environment);
  for (auto *value : {&size, &rank, &pmix})
    if (!*value)
      return value->error();
  traces.size = *size;
  traces.rank = *rank ? *rank : *pmix;
  traces.variable = *size ? "OMPI_COMM_WORLD_SIZE" : *pmix ? "PMIX_RANK" : nullptr;
  if (*size && **size == 0)
    return usage("OMPI_COMM_WORLD_SIZE is '0'", "start msrun by mpirun, or unset it");
  if (traces.size && traces.rank && *traces.rank >= *traces.size)
    return usage("OMPI_COMM_WORLD_RANK is " + std::to_string(*traces.rank) + ", but OMPI_COMM_WORLD_SIZE is " +
                     std::to_string(*traces.size),
                 "start msrun by mpirun, or unset both");
  return traces;
}

Launch launchOf(Transport transport, const MpiTraces &traces, std::string reason) {
  Launch launch{transport, {}, {}, std::move(reason)};
  if (transport == Transport::Mpi) {
    launch.rank = traces.rank;
    launch.size = traces.size;
  }
  return launch;
}

Error noCluster(const std::string &reason) {
  return {ExitCode::NoResource, "this build has no cluster transport (" + reason + ")",
          "use --transport threads, or mpirun -n N msrun net.plan"};
}

Result<Launch> byFlag(const std::string &flag, const MpiTraces &traces) {
  if (flag == "cluster")
    return noCluster("--transport cluster");
  if (flag == "threads") {
    if (traces.variable && (traces.many() || !traces.size))
      return usage("--transport threads, but mpirun started this process (" + traces.str() +
                       "): each process would train alone",
                   "leave out mpirun, or --transport");
    return launchOf(Transport::Threads, traces, "--transport threads");
  }
  if (flag == "mpi") {
    if (!traces.variable)
      return usage("--transport mpi, but mpirun did not start this process (neither OMPI_COMM_WORLD_SIZE nor PMIX_RANK "
                   "is set)",
                   "mpirun -n N msrun net.plan");
    return launchOf(Transport::Mpi, traces, "--transport mpi");
  }
  return usage("unknown transport '" + flag + "'", "choose threads or mpi");
}

} // namespace

Result<Launch> detectLaunch(const std::optional<std::string> &transport, const Environment &environment) {
  Result<MpiTraces> traces = mpiTraces(environment);
  if (!traces)
    return traces.error();
  std::optional<std::string> role = environment("MS_ROLE");
  if (transport)
    return byFlag(*transport, *traces);
  if (role) {
    if (traces->variable)
      return usage("MS_ROLE=" + *role + " asks for a cluster, but mpirun started this process (" + traces->str() + ")",
                   "unset MS_ROLE, or choose with --transport");
    return noCluster("MS_ROLE=" + *role);
  }
  if (traces->variable)
    return launchOf(Transport::Mpi, *traces, std::string(traces->variable) + " is set");
  return launchOf(Transport::Threads, *traces, "no launcher");
}

int64_t rankInEnvironment(const Environment &environment) {
  Result<MpiTraces> traces = mpiTraces(environment);
  return traces ? traces->rank.value_or(0) : 0;
}

Status checkRankCount(int64_t planRanks, const Launch &launch, int64_t started, const std::string &planPath,
                      const std::string &network) {
  if (planRanks == started)
    return Status::ok();
  auto ranks = [](int64_t n) { return std::to_string(n) + (n == 1 ? " rank" : " ranks"); };
  std::string message = planPath + " was made for " + ranks(planRanks) + ", but ";
  switch (launch.transport) {
  case Transport::Mpi: {
    std::string found = message + "mpirun started " + std::to_string(started);
    std::string as = planRanks == 1 ? "msrun " + planPath : "mpirun -n " + std::to_string(planRanks) + " msrun " + planPath;
    if (network.empty())
      return usage(found, as);
    std::string fitting = "compile for as many: msc compile " + network + " --devices " + std::to_string(started) + " -o " + planPath;
    return usage(found, planRanks == 1 ? fitting : as + ", or " + fitting);
  }
  case Transport::Threads:
    return usage(message + ranks(started) + (started == 1 ? " was" : " were") + " asked for", "msrun " + planPath);
  case Transport::Cluster: break;
  }
  return usage(message + "the cluster has " + std::to_string(started), "");
}

std::string launchLine(int64_t ranks, Transport transport, const std::string &device) {
  return std::to_string(ranks) + (ranks == 1 ? " rank: " : " ranks: ") + transportName(transport) + ", " + device;
}

bool printsOnEveryRank(bool logAllRanks, const Environment &environment) {
  std::optional<std::string> role = environment("MS_ROLE");
  std::optional<std::string> files = environment("OMPI_MCA_orte_output_filename");
  return logAllRanks || (role && *role == "MS_WORKER") || (files && !files->empty());
}

} // namespace msc
