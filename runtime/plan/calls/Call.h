// Kernels of the runtime that a plan calls by name: what they take, in plain data, and what must hold before they run.
//
// The checker asks `checkCall` for every rank, and a device asks again before it binds addresses. One kernel = an entry
// here, with the function that checks its tensors and attributes, and an entry in runtime/device/<device>/calls.
#pragma once

#include "runtime/Status.h"
#include "runtime/plan/PlanIndex.h"

#include <cstddef>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

namespace msc {

/// One tensor of a call on one rank: dense and row-major, with the sizes of `box`.
struct CallTensor {
  plan::DataType type = plan::F32;
  std::vector<int64_t> shape; ///< global
  Box box;                    ///< what this rank holds of it
  std::byte *data = nullptr;  ///< null while a plan is being checked

  std::vector<int64_t> localShape() const { return sizes(box); }
  /// The rank holds the dimension from end to end.
  bool isWhole(size_t dim) const { return box[dim] == Range{0, shape[dim]}; }
};

/// The attributes of the operator that a call comes from. What is absent has the value that the reader names.
class CallAttributes {
public:
  CallAttributes() = default;
  explicit CallAttributes(const plan::Call &call);

  /// A list of whole numbers; a single number is a list of one.
  std::vector<int64_t> ints(const std::string &name) const;
  int64_t integer(const std::string &name, int64_t otherwise) const;
  bool flag(const std::string &name, bool otherwise = false) const { return integer(name, otherwise ? 1 : 0) != 0; }
  double number(const std::string &name, double otherwise) const;
  std::string text(const std::string &name, const std::string &otherwise = "") const;
  /// For calls that no plan describes: tests and benchmarks.
  void set(const std::string &name, std::vector<int64_t> ints);
  void setText(const std::string &name, const std::string &text);

private:
  std::map<std::string, plan::Call::Attribute> values;
};

/// A call on one rank.
struct CallSpec {
  std::string kernel;
  std::vector<CallTensor> operands, results;
  CallAttributes attributes;
  int64_t tasks = 1;
};

/// What `call` is on `rank`, without addresses. The buffers that it names exist.
CallSpec callOn(const PlanIndex &index, const plan::Call &call, int64_t rank);

/// The kernel exists, takes so many tensors, and their shapes, boxes, types and the attributes fit each other: a call
/// that passes stays within its tensors, whatever values they hold. BadFile with the reason otherwise, e.g. "MaxPool
/// needs ...". Only for ranks on which some result has an element.
Status checkCall(const CallSpec &spec);

/// All kernels by name.
std::vector<std::string> kernelNames();

namespace calls {

/// What the table knows about a kernel. `check` runs with the right numbers of tensors; `optional` operands may follow.
struct Kernel {
  size_t operands = 1, results = 1;
  Status (*check)(const CallSpec &spec) = nullptr;
  size_t optional = 0;
};
using Table = std::map<std::string, Kernel>;

/// The families, each in a file of its own.
void addAttention(Table &table);
void addConvolution(Table &table);
void addLookup(Table &table);
void addPooling(Table &table);
void addScan(Table &table);

/// The one kind of error that checks give.
template <typename... Args> Error refuse(fmt::format_string<Args...> text, Args &&...args) {
  return {ExitCode::BadFile, fmt::format(text, std::forward<Args>(args)...), ""};
}
/// Dimension `dimA` of `a` and `dimB` of `b` have the same size, and the rank holds the same part of both.
bool sameCut(const CallTensor &a, size_t dimA, const CallTensor &b, size_t dimB);
/// f16, bf16, f32 or f64, the same for all tensors.
bool allFloats(const CallSpec &spec);

} // namespace calls
} // namespace msc
