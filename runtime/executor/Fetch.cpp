#include "runtime/executor/Fetch.h"

#include "runtime/executor/RunOptions.h"
#include "runtime/executor/Transfers.h"
#include "runtime/plan/Bfloat16.h"

#include <cstring>
#include <fmt/format.h>
#include <numeric>

namespace msc {

std::string elementText(plan::DataType type, const std::byte *data) {
  auto load = [&](auto value) {
    std::memcpy(&value, data, sizeof(value));
    return value;
  };
  switch (type) {
  case plan::F32: return lossText(load(float{}), type);
  case plan::F64: return lossText(load(double{}), type);
  case plan::I32: return std::to_string(load(int32_t{}));
  case plan::I64: return std::to_string(load(int64_t{}));
  case plan::BOOL: return *data == std::byte{0} ? "false" : "true";
  case plan::F16: return lossText(static_cast<double>(load(_Float16{})), plan::F32);
  case plan::BF16: return lossText(static_cast<double>(static_cast<float>(load(Bfloat16{}))), plan::F32);
  default: return "?";
  }
}

const plan::Program *programToRun(const PlanIndex &index) {
  for (auto purpose : {plan::Program::TRAIN, plan::Program::PREDICT, plan::Program::EVALUATE})
    if (const plan::Program *program = index.program(purpose))
      return program;
  return nullptr;
}

std::string fetchName(const plan::Parameter &parameter) {
  return (parameter.trained() ? "param:" : "state:") + parameter.name();
}

std::vector<std::string> fetchableNames(const PlanIndex &index, const plan::Program &program) {
  std::vector<std::string> names;
  for (const plan::Output &output : program.outputs())
    names.push_back(output.name());
  for (const plan::Parameter &parameter : index.plan().parameters())
    names.push_back(fetchName(parameter));
  return names;
}

Result<uint32_t> findFetch(const PlanIndex &index, const plan::Program &program, const std::string &name) {
  for (const plan::Output &output : program.outputs())
    if (output.name() == name)
      return output.buffer();
  for (const plan::Parameter &parameter : index.plan().parameters())
    if (fetchName(parameter) == name)
      return parameter.buffer();
  return Error{ExitCode::Usage, fmt::format("there is no result '{}' to fetch", name), ""};
}

Result<std::vector<std::byte>> gather(const PlanIndex &index, uint32_t buffer, comm::World &world,
                                      device::Device &device, const std::byte *arena) {
  std::vector<int64_t> everyone(static_cast<size_t>(world.size()));
  std::iota(everyone.begin(), everyone.end(), int64_t{0});
  Result<comm::Group *> group = world.group(everyone);
  if (!group)
    return group.error();
  const plan::Buffer &record = index.buffer(buffer);
  size_t bytes = elementBytes(record.dtype());
  std::vector<std::byte> local(static_cast<size_t>(index.localCount(buffer, world.rank())) * bytes), whole;
  if (Status status = device.download(local.data(), arena + record.offset(), local.size()); !status)
    return status.error();
  if (world.rank() == 0)
    whole.resize(static_cast<size_t>(elementCount(index.shape(buffer))) * bytes);
  comm::ExchangePlan plan = gatherToFirst(index.sharding(buffer), index.shape(buffer), world.rank(),
                                          static_cast<comm::ElementType>(record.dtype()));
  comm::OperationLabel label{"fetch of " + record.name(), index.place(record.location())};
  if (Status status = (*group)->exchange(local.data(), whole.data(), plan, label); !status)
    return status.error();
  return whole;
}

std::string valueText(const PlanIndex &index, uint32_t buffer, const std::string &name, const std::vector<std::byte> &value) {
  constexpr size_t mostElements = 8;
  const plan::Buffer &record = index.buffer(buffer);
  size_t bytes = elementBytes(record.dtype()), count = value.size() / bytes;
  std::string text = fmt::format("{}: {}[{}] =", name, dataTypeName(record.dtype()), fmt::join(record.shape(), ", "));
  for (size_t i = 0; i < count && i < mostElements; ++i)
    text += " " + elementText(record.dtype(), value.data() + i * bytes);
  return count > mostElements ? text + " ..." : text;
}

} // namespace msc
