#include "runtime/comm/Operation.h"

#include "runtime/plan/ElementTypes.h"

#include <algorithm>
#include <cstring>

namespace msc::comm {

static_assert(static_cast<int>(ElementType::F32) == 0 && static_cast<int>(ElementType::F64) == 1 &&
              static_cast<int>(ElementType::I32) == 2 && static_cast<int>(ElementType::I64) == 3 &&
              static_cast<int>(ElementType::Bool) == 4 && static_cast<int>(ElementType::F16) == 5 &&
              static_cast<int>(ElementType::BF16) == 6); // the order of elementTypes

size_t elementSize(ElementType type) { return elementTypeFacts(static_cast<int>(type)).bytes; }

const char *elementTypeName(ElementType type) { return elementTypeFacts(static_cast<int>(type)).name; }

bool isReducible(ElementType type) {
  return static_cast<uint8_t>(type) <= static_cast<uint8_t>(ElementType::Bool);
}

Status checkReducible(ElementType type, const OperationLabel &label) {
  if (isReducible(type))
    return Status::ok();
  return Error{ExitCode::Usage,
               "'" + label.name + "' reduces " + elementTypeName(type) +
                   " values between ranks, which communicators do not",
               "reduce in f32"};
}

static const char *operationName(Operation operation) {
  switch (operation) {
  case Operation::AllReduce: return "AllReduce";
  case Operation::ReduceScatter: return "ReduceScatter";
  case Operation::Exchange: return "Exchange";
  case Operation::Barrier: return "Barrier";
  case Operation::Broadcast: return "Broadcast";
  }
  return "?";
}

bool OperationRecord::agreesWith(const OperationRecord &other) const {
  return sequence == other.sequence && count == other.count && operation == other.operation && type == other.type &&
         kind == other.kind && root == other.root;
}

template <size_t N> static std::string textOf(const char (&field)[N]) { return {field, strnlen(field, N)}; }

template <size_t N> static void store(const std::string &text, char (&field)[N]) {
  size_t kept = std::min(text.size(), N);
  memcpy(field, text.data() + (text.size() - kept), kept);
  if (kept < text.size())
    memcpy(field, "...", 3);
}

std::string OperationRecord::str() const {
  std::string text = operationName(operation);
  if (name[0])
    text += " '" + textOf(name) + "'";
  if (forOperator[0])
    text += " for '" + textOf(forOperator) + "'";
  if (operation == Operation::AllReduce || operation == Operation::ReduceScatter)
    text += " of " + std::to_string(count) + " " + elementTypeName(type) + " (" + reduceKindName(kind) + ")";
  else if (operation == Operation::Exchange)
    text += std::string(" of ") + elementTypeName(type);
  else if (operation == Operation::Broadcast)
    text += " of " + std::to_string(count) + " bytes from member " + std::to_string(root);
  if (place[0])
    text += " at " + textOf(place);
  return text;
}

OperationRecord makeRecord(Operation operation, uint64_t sequence, int64_t count, ElementType type, ReduceKind kind,
                           const OperationLabel &label, int root) {
  OperationRecord record;
  record.sequence = sequence;
  record.count = count;
  record.operation = operation;
  record.type = type;
  record.kind = kind;
  record.root = static_cast<int16_t>(root);
  store(label.name, record.name);
  store(label.forOperator, record.forOperator);
  store(label.place, record.place);
  return record;
}

Error mismatchError(int64_t rankA, const OperationRecord &a, int64_t rankB, const OperationRecord &b) {
  auto side = [](int64_t rank, const OperationRecord &record) {
    return "rank " + std::to_string(rank) + " is in " + record.str() + " (operation " +
           std::to_string(record.sequence) + " of the group)";
  };
  return {ExitCode::PeerFailed, "ranks do different things: " + side(rankA, a) + ", " + side(rankB, b),
          "run the same plan and the same build on all ranks"};
}

Error exchangeMismatchError(int64_t receiver, int64_t expected, int64_t sender, int64_t sent,
                            const std::string &name) {
  return {ExitCode::PeerFailed,
          "ranks do different things: in Exchange '" + name + "' rank " + std::to_string(receiver) + " expects " +
              std::to_string(expected) + " elements from rank " + std::to_string(sender) + ", which sends " +
              std::to_string(sent),
          "run the same plan and the same build on all ranks"};
}

int64_t countWith(const std::vector<Transfer> &transfers, int peer) {
  int64_t count = 0;
  for (const Transfer &transfer : transfers)
    if (transfer.peer == peer)
      count += elementCount(transfer.source.sizes);
  return count;
}

std::string rankList(const std::vector<int64_t> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < 8; ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > 8)
    text += " and " + std::to_string(ranks.size() - 8) + " more";
  return text;
}

} // namespace msc::comm
