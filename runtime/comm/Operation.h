// What one collective is, as its members tell each other: the header that every operation carries and checks.
#pragma once

#include "runtime/comm/Communicator.h"

#include <type_traits>

namespace msc::comm {

enum class Operation : uint32_t { AllReduce, ReduceScatter, Exchange, Barrier, Broadcast };

/// "f32", "f64", "i32", "i64", "bool", "f16", "bf16".
const char *elementTypeName(ElementType type);

/// True for the types in which a reduction can be computed: f32, f64, i32, i64, bool.
bool isReducible(ElementType type);

/// An error that says which type cannot be reduced, or success.
Status checkReducible(ElementType type, const OperationLabel &label);

/// The header of one operation. Plain bytes: it travels through shared memory and messages.
struct OperationRecord {
  uint64_t sequence = 0; ///< number of the operation within its group, from 1
  int64_t count = 0;     ///< elements that all members must agree on; bytes for a broadcast; 0 for an exchange
  Operation operation = Operation::Barrier;
  ElementType type = ElementType::F32;
  ReduceKind kind = ReduceKind::Sum;
  int16_t root = 0;
  // Zero-terminated where they are shorter. The names that the compiler gives fit; others are cut at the front: their end, the
  // operator within its cells, the file without its folders, says more.
  char name[72] = {};        ///< of the step
  char forOperator[56] = {}; ///< of the user
  char place[48] = {};       ///< "net.mir:14"

  /// The members must agree on everything but the texts.
  bool agreesWith(const OperationRecord &other) const;
  /// "AllReduce 'grad' for 'matmul' of 1024 f32 (sum) at net.mir:14".
  std::string str() const;
};
static_assert(std::is_trivially_copyable_v<OperationRecord> && sizeof(OperationRecord) % 8 == 0);

/// Makes a record; `label` texts are cut to fit.
OperationRecord makeRecord(Operation operation, uint64_t sequence, int64_t count, ElementType type, ReduceKind kind,
                           const OperationLabel &label, int root = 0);

/// The error for two members that do different things.
Error mismatchError(int64_t rankA, const OperationRecord &a, int64_t rankB, const OperationRecord &b);

/// The error for an exchange in which `receiver` expects another number of elements than `sender` sends.
Error exchangeMismatchError(int64_t receiver, int64_t expected, int64_t sender, int64_t sent, const std::string &name);

/// Elements that `transfers` move to or from member `peer`.
int64_t countWith(const std::vector<Transfer> &transfers, int peer);

/// "ranks 2, 3" or "rank 2"; at most eight are listed.
std::string rankList(const std::vector<int64_t> &ranks);

} // namespace msc::comm
