// Compiles clusters given as text, loads the objects and runs the kernels.
#pragma once

#include "ClusterReference.h"
#include "GpuEmulator.h"
#include "passes/codegen/KernelLibrary.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <random>

namespace msc::test {

/// A context with the dialects of clusters, made once per process.
mlir::MLIRContext &context();
mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);

/// Memory that starts at a multiple of 64 bytes, with guard bytes behind it.
class Buffer {
public:
  explicit Buffer(size_t bytes);
  char *data() { return start; }
  size_t size() const { return bytes; }
  bool guardIntact() const;
  std::string content() const { return std::string(start, bytes); }

private:
  std::vector<char> storage;
  char *start;
  size_t bytes;
};

Buffer pack(const Tensor &tensor);
Tensor unpack(mlir::RankedTensorType type, Buffer &buffer);

/// A shared object in memory, mapped by the dynamic loader.
class LoadedObject {
public:
  explicit LoadedObject(const std::string &bytes);
  LoadedObject(LoadedObject &&other) : handle(std::exchange(other.handle, nullptr)) {}
  ~LoadedObject();
  void *symbol(const std::string &name) const;

private:
  void *handle;
};

void callKernel(void *symbol, const std::vector<void *> &pointers, int64_t begin, int64_t end);
/// Runs a kernel over [0, end) on the emulated GPU, in the grid that it asks for or, backwards, in a smaller one.
void callEmulated(GpuEmulator &gpu, const codegen::CompiledKernel &kernel, const std::vector<void *> &pointers, int64_t end,
                  GpuEmulator::Order order);
bool cpuHas(const std::string &isa);

/// How many rounds a random test runs: `count`, fifty times as many if the environment variable MSC_LONG is set.
unsigned rounds(unsigned count);

/// How a test draws arguments and compares results.
struct CheckOptions {
  double tolerance = 2e-6;     ///< relative to the larger of 1 and the expected value
  double low = -2, high = 2;   ///< floats
  double step = 0;             ///< of which they are multiples; 0: any
  int64_t wholeLow = -50, wholeHigh = 50;
  unsigned seed = 1;
  bool streams = false;        ///< also with results written around the caches, which must change no bit
  bool followFirst = false;    ///< all other functions take the form of the first one and count the same range
  bool likeCpu = false;        ///< no reference: kernels for GPUs are compared with those for CPUs
};

/// Compiles all functions of the text together. Each kernel must agree with the reference, stay inside its buffers, and
/// give the same bits on every instruction set that this CPU has and for random cuts of the range.
void checkClusters(const std::string &text, const CheckOptions &options = {});

} // namespace msc::test
