// From fused clusters of pointwise and reduction operators to machine code.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace msc::codegen {

/// Code for one instruction set: an ELF shared object that exports every kernel of a library and imports nothing, or PTX.
struct CodeObject {
  std::string isa;   ///< "x86-64-v3", "x86-64-v4", "nvptx64"
  std::string bytes;
};

struct KernelForm;

/// What kernels are compiled for.
struct KernelTargets {
  bool cpu = true, gpu = false;
  bool thisProcessor = false; ///< of the instruction sets of CPUs, the best that this one has
};

/// How a kernel is launched on a GPU: `entry(pointers..., int64_t end)` computes the whole range [0, end).
struct GpuLaunch {
  std::string entry;          ///< in the library's PTX; empty: there is none
  unsigned block = 0;         ///< threads per block, exactly
  /// ceil(end * items / blockItems) blocks give every thread one step; any number from 1 gives the same bits.
  int64_t items = 1, blockItems = 1;
  int64_t mostRange = 0;      ///< the largest end
  /// Not 0: `entry(pointers..., void *scratch, int64_t end)`; scratch has so many bytes for each unit of the range, zeros at
  /// first. What it holds after a launch serves the next one.
  int64_t unitScratch = 0;
};

/// `void symbol(void *arg0, ..., void *argN, int64_t begin, int64_t end)`: one pointer per argument of the function,
/// then one per result that is not written in place. Buffers start at multiples of 64 bytes and do not overlap. The
/// kernel computes the part [begin, end) of its range.
///
/// One long row may be cut: `void symbol(void *arg0, ..., void *argN, void *scratch, int64_t begin, int64_t end)` reduces the pieces
/// [begin, end) of `pieces`, in any order, and piece number `pieces`, behind all others, is what follows from their values.
struct CompiledKernel {
  std::string symbol;
  /// Loops of the cluster's widest operator whose product is the extent of the range; empty: extent 1.
  llvm::SmallVector<unsigned> rangeDims;
  /// For each of them a pointer (by ABI position) and a dimension of its tensor with that size.
  llvm::SmallVector<std::pair<unsigned, unsigned>> rangeSizes;
  /// Pointers and dimensions whose sizes are constants in the code. A kernel fits every shape that agrees in them.
  llvm::SmallVector<std::pair<unsigned, unsigned>> innerSizes;
  unsigned pointers = 0;
  int64_t unit = 1;   ///< cuts of the range are multiples of this
  bool flat = false;  ///< no size stands in the code
  int64_t pieces = 0; ///< of the one row; 0: the range counts rows
  int64_t scratch = 0; ///< bytes, with pieces
  GpuLaunch gpu;
  std::shared_ptr<const KernelForm> form; ///< for `like` of add()
};

/// One batch dimension of a matrix product. An operand that has it not (size 1, or none at all) is repeated along it.
struct BatchDim {
  int64_t size = 1;                 ///< of the result
  bool inLeft = true, inRight = true;
};

/// A matrix product for element types that no library serves: result[b, i, j] = sum over k of left[b, i, k] * right[b, k, j]
/// with b over all batch dimensions.
struct MatMulShape {
  mlir::Type element;               ///< f32, f64, i32, i64
  int64_t m = 0, n = 0, k = 0;
  bool transposeLeft = false;       ///< left is stored [k, m]
  bool transposeRight = false;      ///< right is stored [n, k]
  llvm::SmallVector<BatchDim> batch; ///< outermost first
};

/// Collects kernels, each distinct one once, and compiles them together for every instruction set. Not thread-safe.
class KernelLibrary {
public:
  explicit KernelLibrary(KernelTargets targets = {});
  ~KernelLibrary();

  /// Adds the kernel of a cluster: a function of one block of linalg.generic (with tensor.empty, linalg.fill and
  /// arith.constant) on tensors of static shape. Emits a diagnostic where the cluster cannot be one kernel.
  /// Ranks with uneven pieces need the same cluster for other sizes: add the largest piece first and pass its kernel as
  /// `like` for the others; then all of them count the same range in the same unit. `streams`: the results are so large
  /// that they leave the caches before they are read; they are written around them.
  mlir::FailureOr<CompiledKernel> add(mlir::func::FuncOp cluster, const CompiledKernel *like = nullptr,
                                      bool streams = false);

  /// Adds a matrix product `(left, right, result, begin, end)`; the range counts the rows of all batches.
  mlir::FailureOr<CompiledKernel> addMatMul(const MatMulShape &shape, mlir::Location location);

  /// Why the cluster cannot be one kernel, or one per size; empty if it can. `variants` are the same cluster for all
  /// sizes that occur, the largest piece first.
  static std::string whyNot(llvm::ArrayRef<mlir::func::FuncOp> variants);

  /// Compiles everything that was added for every target. The same kernels in the same order give the same bytes.
  mlir::FailureOr<llvm::SmallVector<CodeObject>> finish(mlir::Location location);

  /// Number of distinct kernels.
  unsigned size() const;
  /// The IR of all kernels; for dumps and tests, before finish().
  std::string irText() const;
  /// The IR of all GPU kernels as the code generator gets it.
  std::string gpuIrText() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace msc::codegen
