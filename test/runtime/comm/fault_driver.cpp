// One rank of a run under mpirun in which something goes wrong: fault_driver FAULT FOLDER COUNT RANK STEP. Writes what it saw to
// FOLDER/rank_<r> and ends with the code of the first cause.
#include "runtime/comm/mpi/Loader.h"

#include <csignal>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <unistd.h>

using namespace msc;
using namespace msc::comm;

namespace {

const OperationLabel kLabel{"grad", "net.mir:14"};

/// What one rank does in one step; the others go on.
Status misbehave(const std::string &fault, World &world, Group &group) {
  if (fault == "kill")
    raise(SIGKILL);
  if (fault == "exit")
    _exit(0);
  if (fault == "stop")
    raise(SIGSTOP);
  if (fault == "abort")
    world.abort({ExitCode::BadFile, "record 12 is broken", "fix it"});
  if (fault == "leave")
    return Error{ExitCode::Done, "left early", ""};
  if (fault == "count") {
    std::vector<float> data(7);
    return group.allReduce(data.data(), data.data(), 7, ElementType::F32, ReduceKind::Sum, kLabel);
  }
  return Status::ok();
}

Status train(const std::string &fault, World &world, Group &group, int64_t count, int64_t culprit, int when) {
  std::vector<float> data(count, 1.0f);
  for (int step = 0; step < 50; ++step) {
    bool now = step == when && world.rank() == culprit;
    if (now)
      if (Status done = misbehave(fault, world, group); !done)
        return done;
    if (now && fault == "compute")
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (Status done = group.allReduce(data.data(), data.data(), count, ElementType::F32, ReduceKind::Max, kLabel); !done)
      return done;
  }
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 6)
    return 2;
  std::string fault = argv[1], folder = argv[2];
  Result<std::unique_ptr<World>> world = loadMpiWorld();
  if (!world) {
    fprintf(stderr, "error: %s\n", world.error().message.c_str());
    return static_cast<int>(world.error().code);
  }
  (*world)->setTimeout(std::chrono::seconds(3)); // a rank that is merely slow beside other programs is not named
  std::vector<int64_t> all((*world)->size());
  std::iota(all.begin(), all.end(), 0);
  // A rank that comes late finds a run that has failed already, and gets the cause instead of a group.
  Result<Group *> group = (*world)->group(all);
  Status done = group ? train(fault, **world, **group, std::stol(argv[3]), std::stol(argv[4]), std::stoi(argv[5])) : Status(group.error());
  int code = done.isOk() ? 0 : static_cast<int>(done.error().code);
  std::ofstream(folder + "/rank_" + std::to_string((*world)->rank()))
      << code << " " << (done.isOk() ? "done" : done.error().message) << std::endl;
  (*world).reset();
  return code;
}
