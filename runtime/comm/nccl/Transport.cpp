#include "runtime/comm/nccl/Transport.h"

#include "runtime/comm/nccl/Communicator.h"

namespace msc::comm::nccl {
namespace {

class NcclTransport final : public StreamTransport {
public:
  NcclTransport(const Table &table, Options options, int version)
      : table(table), options(std::move(options)), version(version), title("NCCL " + versionText(version)) {}
  const std::string &name() const override { return title; }
  Result<std::unique_ptr<StreamCommunicator>> connect(World &world) override {
    auto communicator = std::make_unique<NcclCommunicator>(table, options, world);
    if (Status status = communicator->open(version); !status)
      return status.error();
    return std::unique_ptr<StreamCommunicator>(std::move(communicator));
  }

private:
  Table table;
  Options options;
  int version;
  std::string title;
};

} // namespace

Result<std::unique_ptr<StreamTransport>> makeTransport(const Table &table, Options options) {
  int version = 0;
  if (Code code = table.ncclGetVersion(&version); code != Code::Success)
    return Error{ExitCode::NoResource, "ncclGetVersion returned " + std::to_string(static_cast<int>(code)), ""};
  if (version < oldestVersion)
    return Error{ExitCode::NoResource, "NCCL " + versionText(version) + " is too old",
                 "install NCCL 2.22 or later, or let collectives go through the host with --collectives host"};
  return std::unique_ptr<StreamTransport>(new NcclTransport(table, std::move(options), version));
}

} // namespace msc::comm::nccl
