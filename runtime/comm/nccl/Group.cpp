#include "runtime/comm/nccl/Group.h"

#include "runtime/comm/Operation.h"

namespace msc::comm::nccl {
namespace {

/// All calls of one collective, between ncclGroupStart and ncclGroupEnd.
class GroupedCall final : public StreamCall {
public:
  GroupedCall(NcclCommunicator &communicator, Handle handle, std::vector<NcclCommunicator::NamedStep> steps)
      : communicator(communicator), handle(handle), steps(std::move(steps)) {}
  Status enqueue(StreamHandle stream) override {
    return steps.empty() ? Status() : communicator.launch(handle, steps, stream);
  }

private:
  NcclCommunicator &communicator;
  Handle handle;
  std::vector<NcclCommunicator::NamedStep> steps;
};

DataType dataTypeOf(ElementType type) {
  switch (type) {
  case ElementType::F32: return DataType::Float32;
  case ElementType::F64: return DataType::Float64;
  case ElementType::I32: return DataType::Int32;
  case ElementType::I64: return DataType::Int64;
  case ElementType::F16: return DataType::Float16;
  case ElementType::BF16: return DataType::Bfloat16;
  case ElementType::Bool: break;
  }
  return DataType::Uint8;
}

/// Sums of truth values are "or", products are "and".
Reduction reductionOf(ElementType type, ReduceKind kind) {
  bool isBool = type == ElementType::Bool;
  switch (kind) {
  case ReduceKind::Sum: return isBool ? Reduction::Max : Reduction::Sum;
  case ReduceKind::Prod: return isBool ? Reduction::Min : Reduction::Prod;
  case ReduceKind::Min: return Reduction::Min;
  case ReduceKind::Max: break;
  }
  return Reduction::Max;
}

} // namespace

StreamGroup::Prepared NcclGroup::prepareAllReduce(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                                                  const OperationLabel &label) {
  if (Status status = checkReducible(type, label); !status)
    return status.error();
  std::vector<NcclCommunicator::NamedStep> steps;
  for (const ReducePart &part : parts)
    steps.push_back({"ncclAllReduce", [part, type = dataTypeOf(type), reduction = reductionOf(type, kind)](
                                          const Table &table, Handle handle, StreamHandle stream) {
                       return table.ncclAllReduce(part.source, part.target, static_cast<size_t>(part.count), type, reduction,
                                                  handle, stream);
                     }});
  return std::unique_ptr<StreamCall>(new GroupedCall(communicator, handle, std::move(steps)));
}

StreamGroup::Prepared NcclGroup::prepareReduceScatter(std::vector<ReducePart> parts, ElementType type, ReduceKind kind,
                                                  const OperationLabel &label) {
  if (Status status = checkReducible(type, label); !status)
    return status.error();
  std::vector<NcclCommunicator::NamedStep> steps;
  for (const ReducePart &part : parts)
    steps.push_back({"ncclReduceScatter", [part, type = dataTypeOf(type), reduction = reductionOf(type, kind)](
                                              const Table &table, Handle handle, StreamHandle stream) {
                       return table.ncclReduceScatter(part.source, part.target, static_cast<size_t>(part.count), type, reduction,
                                                      handle, stream);
                     }});
  return std::unique_ptr<StreamCall>(new GroupedCall(communicator, handle, std::move(steps)));
}

StreamGroup::Prepared NcclGroup::prepareAllGather(const void *source, void *target, int64_t count, ElementType type,
                                                  const OperationLabel &) {
  std::vector<NcclCommunicator::NamedStep> steps{
      {"ncclAllGather", [=, type = dataTypeOf(type)](const Table &table, Handle handle, StreamHandle stream) {
         return table.ncclAllGather(source, target, static_cast<size_t>(count), type, handle, stream);
       }}};
  return std::unique_ptr<StreamCall>(new GroupedCall(communicator, handle, std::move(steps)));
}

StreamGroup::Prepared NcclGroup::prepareExchange(std::vector<Message> sends, std::vector<Message> receives, ElementType type,
                                                 const OperationLabel &) {
  std::vector<NcclCommunicator::NamedStep> steps;
  for (const Message &message : sends)
    steps.push_back({"ncclSend", [message, type = dataTypeOf(type)](const Table &table, Handle handle, StreamHandle stream) {
                       return table.ncclSend(message.data, static_cast<size_t>(message.count), type, message.peer, handle,
                                             stream);
                     }});
  for (const Message &message : receives)
    steps.push_back({"ncclRecv", [message, type = dataTypeOf(type)](const Table &table, Handle handle, StreamHandle stream) {
                       return table.ncclRecv(message.data, static_cast<size_t>(message.count), type, message.peer, handle,
                                             stream);
                     }});
  return std::unique_ptr<StreamCall>(new GroupedCall(communicator, handle, std::move(steps)));
}

} // namespace msc::comm::nccl
