// Convolutions as plans of cuDNN: what is asked, which of its engines may answer, and the plans that a rank has.
#pragma once

#include "runtime/Status.h"
#include "runtime/device/cuda/Cudnn.h"
#include "runtime/plan/calls/Convolution.h"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace msc::device::cuda::cudnn {

/// "cudnnBackendExecute returned 5000 (CUDNN_STATUS_EXECUTION_FAILED)".
Error failed(const Table &table, const char *function, Code code);

/// A descriptor. The first call that fails is kept, and no other follows it.
class Object {
public:
  Object(const Table &table, Kind kind);
  ~Object();
  Object(Object &&other) noexcept;
  Object(const Object &) = delete;

  Object &set(Attribute attribute, Type type, int64_t count, const void *values);
  Object &set(Attribute attribute, int64_t value) { return set(attribute, Type::Int64, 1, &value); }
  Object &set(Attribute attribute, float value) { return set(attribute, Type::Float, 1, &value); }
  Object &set(Attribute attribute, DataType value) { return set(attribute, Type::DataType, 1, &value); }
  Object &set(Attribute attribute, ConvolutionMode value) { return set(attribute, Type::ConvolutionMode, 1, &value); }
  Object &set(Attribute attribute, HeuristicMode value) { return set(attribute, Type::HeuristicMode, 1, &value); }
  Object &set(Attribute attribute, Handle value) { return set(attribute, Type::Handle, 1, &value); }
  Object &set(Attribute attribute, const Object &value) { return set(attribute, Type::Descriptor, 1, &value.handle); }
  template <size_t count> Object &set(Attribute attribute, const std::array<int64_t, count> &values) {
    return set(attribute, Type::Int64, count, values.data());
  }
  template <size_t count> Object &set(Attribute attribute, const std::array<void *, count> &values) {
    return set(attribute, Type::VoidPointer, count, values.data());
  }
  /// True if nothing has failed.
  bool finalize();
  /// Up to `wanted` values, and how many these are; with 0 how many there would be. -1: it failed.
  int64_t get(Attribute attribute, Type type, int64_t wanted, void *values) const;

  Descriptor descriptor() const { return handle; }
  Code code() const { return result; }

private:
  const Table *table;
  Descriptor handle = nullptr;
  Code result = Code::Success;
};

using Sizes = std::array<int64_t, 4>;

/// One convolution, for cuDNN: sizes and strides of N, C, rows, columns. Sizes of the weights tell the groups.
struct Problem {
  ConvolutionResult result = ConvolutionResult::Output;
  DataType type = DataType::Float;
  bool tensorFloat = false; ///< f32 may be rounded to TF32
  bool anyEngine = false;   ///< rather one that no heuristic proposes than none
  Sizes x = {}, xStrides = {}, w = {}, wStrides = {}, y = {}, yStrides = {};
  std::array<int64_t, 2> stride = {}, dilation = {}, before = {}, after = {};
  std::array<int64_t, 3> alignment = {}; ///< of x, w and y

  auto operator<=>(const Problem &) const = default;
};

Sizes denseStrides(const Sizes &sizes);

/// What cuDNN computes a problem by.
struct Plan {
  std::shared_ptr<const std::vector<Object>> graph; ///< which the others need
  std::vector<Object> parts;                        ///< the plan is the last one, and needs those before it
  uint64_t workspaceBytes = 0;

  Descriptor descriptor() const { return parts.back().descriptor(); }
};

/// The plans that may compute a problem, and the one that does.
struct Ways {
  std::vector<std::unique_ptr<Plan>> plans; ///< the best first, as cuDNN thinks
  size_t chosen = 0;

  const Plan &plan() const { return *plans[chosen]; }
  uint64_t workspaceBytes() const; ///< of the one that needs most
};

/// One line that tells problems apart.
std::string textOf(const Problem &problem);

/// cuDNN for one rank.
class Library {
public:
  explicit Library(const Table &table) : table(table) {}
  ~Library();
  Library(const Library &) = delete;

  /// Up to `most` proposals that keep to what problems ask for; null if there is none. Equal problems have the same ones.
  Ways *waysOf(const Problem &problem, size_t most);
  /// Puts the work on a stream; tensors are x, w and y.
  Status execute(const Plan &plan, const std::array<void *, 3> &tensors, void *workspace, void *stream);

  /// "cuDNN 9.13.0".
  std::string name() const;
  std::string problem; ///< why it computes nothing; empty: it does

  /// No plan may take more memory to work in, less where little is free. Engines that reorder tensors of a batch of 256 images need more than 600 MiB: without them a convolution of
  /// ResNet-50 took 127 ms instead of less than one.
  uint64_t mostWorkspaceBytes = uint64_t{2} << 30;

private:
  bool open();
  std::vector<Object> describe(const Problem &problem);
  /// A configuration of an engine, last, behind what it needs.
  using Proposal = std::vector<Object>;
  std::vector<Proposal> proposals(const Object &graph, HeuristicMode mode);
  std::vector<Proposal> everyEngine(const Object &graph);
  bool mayRun(const Object &config, const Problem &problem);
  std::unique_ptr<Plan> planOf(Proposal proposal, const Problem &problem);
  Ways choose(const Problem &problem, size_t most);

  const Table &table;
  Handle handle = nullptr;
  void *current = nullptr;                        ///< stream of the handle
  std::map<Problem, Ways> known;                  ///< without plans: there are none
};

} // namespace msc::device::cuda::cudnn
