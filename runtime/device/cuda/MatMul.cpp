// Products by cuBLASLt, which add in f32. It counts columns first: our row-major result is its transposed result, so that the operands
// change places, and a bias along our columns is one along its rows. It has fast kernels only for rows that begin at multiples of 16
// bytes: large products of f16 and bf16 whose rows do not are computed in scratch memory, where they do.
#include "runtime/device/cuda/Operations.h"

#include "runtime/device/JoinBatches.h"
#include "runtime/device/cuda/Kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace msc::device::cuda {
namespace {

/// Objects of cuBLASLt for one product, destroyed together.
struct Description {
  explicit Description(const BlasTable &blas) : blas(blas) {}
  ~Description() {
    if (product)
      blas.cublasLtMatmulDescDestroy(product);
    for (cublasLtMatrixLayout_t layout : {first, second, result})
      if (layout)
        blas.cublasLtMatrixLayoutDestroy(layout);
    if (preference)
      blas.cublasLtMatmulPreferenceDestroy(preference);
  }
  Description(const Description &) = delete;
  Description &operator=(const Description &) = delete;

  const BlasTable &blas;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  std::vector<cublasLtMatmulAlgo_t> algorithms; ///< that can run, the one that cuBLASLt thinks fastest first
  size_t chosen = 0;
};

/// Batch entries whose operands lie at equal distances: one call.
struct Run {
  MatMulSpec::Batch start, step;
  int64_t count = 1;
};

std::vector<Run> runsOf(const std::vector<MatMulSpec::Batch> &batches) {
  auto between = [](const MatMulSpec::Batch &a, const MatMulSpec::Batch &b) {
    return MatMulSpec::Batch{b.left - a.left, b.right - a.right, b.result - a.result};
  };
  auto equal = [](const MatMulSpec::Batch &a, const MatMulSpec::Batch &b) {
    return a.left == b.left && a.right == b.right && a.result == b.result;
  };
  std::vector<Run> runs;
  for (size_t i = 0; i < batches.size(); ++i) {
    if (!runs.empty()) {
      Run &run = runs.back();
      MatMulSpec::Batch step = between(batches[i - 1], batches[i]);
      if (run.count == 1 || equal(step, run.step)) {
        run.step = step;
        ++run.count;
        continue;
      }
    }
    runs.push_back({batches[i], {}, 1});
  }
  return runs;
}

cudaDataType_t typeOf(plan::DataType type) {
  return type == plan::BF16 ? CUDA_R_16BF : type == plan::F16 ? CUDA_R_16F : CUDA_R_32F;
}

/// A matrix as it is stored, and how it lies where it is multiplied.
struct Matrix {
  plan::DataType type = plan::F32;
  int64_t rows = 0, columns = 0;
  int64_t heldRows = 0, pitch = 0; ///< those behind `rows`, and elements behind `columns`, are zeros of an operand
  uint64_t offset = 0;             ///< in the scratch memory
  bool isPacked = false;
  CUfunction kernel = nullptr; ///< that copies rows from one pitch to another

  Matrix() = default;
  Matrix(plan::DataType type, int64_t rows, int64_t columns)
      : type(type), rows(rows), columns(columns), heldRows(rows), pitch(columns) {}
  bool isAligned() const { return columns * static_cast<int64_t>(elementBytes(type)) % 16 == 0; }
  void pack() {
    const int64_t line = 64 / static_cast<int64_t>(elementBytes(type));
    isPacked = true, pitch = (columns + line - 1) / line * line;
  }
  uint64_t bytes() const { return static_cast<uint64_t>(heldRows * pitch) * elementBytes(type); }
};

/// The matrices of a product, how many of their columns or rows add up to one element, and how many columns are computed.
struct Matrices {
  Matrix left, right, result;
  int64_t depth = 0, columns = 0;

  explicit Matrices(const MatMulSpec &spec)
      : left(spec.operands, spec.rows, spec.depth), right(spec.operands, spec.depth, spec.columns),
        result(spec.type, spec.rows, spec.columns), depth(spec.depth), columns(spec.columns) {
    for (auto [matrix, transposed] : {std::pair(&left, spec.transposeLeft), std::pair(&right, spec.transposeRight)})
      if (transposed)
        *matrix = Matrix(matrix->type, matrix->columns, matrix->rows);
  }

  /// Packs those whose rows do not begin at multiples of 16 bytes. A depth that runs along rows becomes a multiple of 8 in both operands.
  void pack(const MatMulSpec &spec) {
    for (Matrix *matrix : {&left, &right, &result})
      if (!matrix->isAligned())
        matrix->pack();
    if (depth % 8 != 0 && (!spec.transposeLeft || spec.transposeRight)) {
      left.pack(), right.pack();
      depth = (depth + 7) / 8 * 8;
      if (spec.transposeLeft)
        left.heldRows = depth;
      if (!spec.transposeRight)
        right.heldRows = depth;
    }
    // Kernels for aligned rows want that many columns, too: some more are computed, which are not copied back. A bias has no more.
    if (result.isPacked && columns % 8 != 0 && !spec.bias) {
      right.pack();
      columns = (columns + 7) / 8 * 8;
      if (spec.transposeRight)
        right.heldRows = columns;
    }
    uint64_t end = 0;
    for (Matrix *matrix : {&left, &right, &result})
      if (matrix->isPacked) {
        matrix->offset = end;
        end += (matrix->bytes() + 255) / 256 * 256;
      }
  }
  uint64_t packedBytes() const {
    uint64_t bytes = 0;
    for (const Matrix *matrix : {&left, &right, &result})
      if (matrix->isPacked)
        bytes = matrix->offset + (matrix->bytes() + 255) / 256 * 256;
    return bytes;
  }

  /// A product of fewer operations per byte of copies would lose: an estimate, by 700 and 100 TFLOP/s of kernels for aligned rows and
  /// for others, and 3.5 TB/s of memory. For small ones the launches of the copies would.
  static constexpr int64_t leastPerByte = 64;
};

/// A product of one run. `packed` is null where it is computed as it lies.
struct Part {
  MatMulSpec::Batch start;
  Matrices matrices; ///< packed, where `packed` is not null
  std::unique_ptr<Description> made, packed;
  std::string batches; ///< "" for one, else how many, and how far apart
};

class Product final : public TunableOperation {
public:
  Product(Shared &shared, const MatMulSpec &spec)
      : TunableOperation(shared.streams[0]), shared(shared), blas(shared.blas), spec(joinBatches(spec)) {}

  Status prepare() {
    for (const Run &run : runsOf(spec.batches)) {
      Part part{run.start, Matrices(spec), std::make_unique<Description>(blas), nullptr,
                run.count == 1 ? "" : fmt::format(" {} times {},{},{} apart", run.count, run.step.left, run.step.right, run.step.result)};
      if (Status status = describe(run, part.matrices, *part.made); !status)
        return status;
      if (Status status = choose(run.start, part.matrices, *part.made); !status)
        return status;
      if (Status status = preparePacked(run, part); !status)
        return status;
      parts.push_back(std::move(part));
    }
    shared.needed.raise(scratch());
    // Several are small products of many batches.
    if (const Part &part = parts.front(); parts.size() == 1 && (part.made->algorithms.size() > 1 || (part.packed && part.packed->algorithms.size() > 1)))
      shared.tunables.push_back(this);
    return {};
  }

  /// What decides how fast an algorithm is, and whether it can run.
  std::string problem() const override {
    const Part &part = parts.front();
    const auto typeName = [](plan::DataType type) { return plan::DataType_Name(type); };
    const auto side = [](bool transposed) { return transposed ? "^T" : ""; };
    return fmt::format("cuBLASLt {}: {}x{}{} by {}x{}{}{} of {} to {}{}{} at {}{}{}", blas.cublasLtGetVersion(), spec.rows, spec.depth,
                       side(spec.transposeLeft), spec.depth, spec.columns, side(spec.transposeRight), part.batches, typeName(spec.operands),
                       typeName(spec.type), spec.bias ? " bias" : "", spec.relu ? " relu" : "",
                       fmt::join(alignmentsOf(part.start, Matrices(spec)), ","), shared.tensorFloat ? " tf32" : "",
                       packs(part, shared.streams.at(0)) ? " packed" : "");
  }
  size_t ways() const override { return tuned().algorithms.size(); }
  void use(size_t way) override { tuned().chosen = way; }

  Scratch scratch() const override {
    Scratch most;
    for (const Part &part : parts)
      if (part.packed)
        most.raise({.wished = part.matrices.packedBytes()});
    return most;
  }

  Status enqueue(const Stream &stream) override {
    for (const Part &part : parts) {
      const MatMulSpec::Batch &start = part.start;
      Status status = packs(part, stream) ? multiplyPacked(stream, part) : multiply(stream, *part.made, left(start), right(start), result(start));
      if (!status)
        return status;
    }
    return {};
  }

private:
  static bool packs(const Part &part, const Stream &stream) { return part.packed && part.matrices.packedBytes() <= stream.scratchBytes; }
  /// What is computed of the only part: streams have their memory by now.
  Description &tuned() const {
    const Part &part = parts.front();
    return packs(part, shared.streams.at(0)) ? *part.packed : *part.made;
  }

  static std::byte *at(std::byte *data, int64_t element, plan::DataType type) {
    return data + element * static_cast<int64_t>(elementBytes(type));
  }
  std::byte *left(const MatMulSpec::Batch &batch) const { return at(spec.left, batch.left, spec.operands); }
  std::byte *right(const MatMulSpec::Batch &batch) const { return at(spec.right, batch.right, spec.operands); }
  std::byte *result(const MatMulSpec::Batch &batch) const { return at(spec.result, batch.result, spec.type); }

  /// `count` matrices of `rows` and `columns`, stored as such in our order.
  Status layout(cublasLtMatrixLayout_t &layout, const Matrix &matrix, int64_t rows, int64_t columns, int64_t count, int64_t step) {
    MSC_BLAS(cublasLtMatrixLayoutCreate, &layout, typeOf(matrix.type), static_cast<uint64_t>(columns), static_cast<uint64_t>(rows),
             matrix.pitch);
    auto batches = static_cast<int32_t>(count);
    MSC_BLAS(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof(batches));
    MSC_BLAS(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof(step));
    return {};
  }

  template <typename Value> Status set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, Value value) {
    MSC_BLAS(cublasLtMatmulDescSetAttribute, product, attribute, &value, sizeof(value));
    return {};
  }

  Status describe(const Run &run, const Matrices &matrices, Description &made) {
    const bool rounds = shared.tensorFloat && spec.operands == plan::F32;
    MSC_BLAS(cublasLtMatmulDescCreate, &made.product, rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    auto operation = [](bool transposed) { return static_cast<int32_t>(transposed ? CUBLAS_OP_T : CUBLAS_OP_N); };
    auto epilogue = static_cast<uint32_t>(spec.bias ? (spec.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                                                    : (spec.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT));
    const int64_t depth = matrices.depth, columns = matrices.columns;
    std::pair<int64_t, int64_t> left{spec.rows, depth}, right{depth, columns};
    if (spec.transposeLeft)
      std::swap(left.first, left.second);
    if (spec.transposeRight)
      std::swap(right.first, right.second);
    for (Status status :
         {set(made.product, CUBLASLT_MATMUL_DESC_TRANSA, operation(spec.transposeRight)),
          set(made.product, CUBLASLT_MATMUL_DESC_TRANSB, operation(spec.transposeLeft)),
          set(made.product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue),
          spec.bias ? set(made.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void *>(spec.bias)) : Status(),
          layout(made.first, matrices.right, right.first, right.second, run.count, run.step.right),
          layout(made.second, matrices.left, left.first, left.second, run.count, run.step.left),
          layout(made.result, matrices.result, spec.rows, columns, run.count, run.step.result)})
      if (!status)
        return status;
    return {};
  }

  template <typename Value> Status prefer(Description &made, cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
    MSC_BLAS(cublasLtMatmulPreferenceSetAttribute, made.preference, attribute, &value, sizeof(value));
    return {};
  }

  /// Of the right operand, the left one and the result.
  std::array<uint32_t, 3> alignmentsOf(const MatMulSpec::Batch &start, const Matrices &matrices) const {
    auto alignment = [](const Matrix &matrix, const std::byte *data) { return matrix.isPacked ? 256 : alignmentOf(data, 256); };
    return {alignment(matrices.right, right(start)), alignment(matrices.left, left(start)), alignment(matrices.result, result(start))};
  }

  /// The algorithms that cuBLASLt proposes and can run: the first, so that every step runs the same one, or all where the fastest is to be
  /// measured. Without being told it takes addresses for multiples of 256, and adds the parts of a narrow result in its own type.
  Status choose(const MatMulSpec::Batch &start, const Matrices &matrices, Description &made) {
    MSC_BLAS(cublasLtMatmulPreferenceCreate, &made.preference);
    const auto [first, second, third] = alignmentsOf(start, matrices);
    const uint32_t sums = spec.type == plan::F32 ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    for (Status status : {prefer(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes),
                          prefer(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums),
                          prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, first),
                          prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, second),
                          prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, third),
                          prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, third)})
      if (!status)
        return status;
    std::array<cublasLtMatmulHeuristicResult_t, mostWays> found = {};
    int count = 0;
    cublasStatus_t status =
        blas.cublasLtMatmulAlgoGetHeuristic(shared.handle, made.product, made.first, made.second, made.result, made.result,
                                            made.preference, static_cast<int>(found.size()), found.data(), &count);
    const auto end = found.begin() + (status == CUBLAS_STATUS_SUCCESS ? count : 0);
    for (auto one = found.begin(); one != end && (made.algorithms.empty() || shared.choices); ++one)
      if (one->state == CUBLAS_STATUS_SUCCESS)
        made.algorithms.push_back(one->algo);
    if (made.algorithms.empty())
      return Error{
          ExitCode::NoResource,
          fmt::format("cuBLASLt cannot multiply {}x{} by {}x{}: {}", spec.rows, spec.depth, spec.depth, spec.columns,
                      blas.cublasLtGetStatusString(status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : status)),
          spec.bias || spec.relu ? "compile the network again with --no-fusion: kernels of their own add the bias then" : ""};
    return {};
  }

  /// Decides by sizes alone whether scratch memory is to be used, if there is enough of it.
  Status preparePacked(const Run &run, Part &part) {
    const bool isNarrow = spec.operands == plan::F16 || spec.operands == plan::BF16;
    const double operations = 2.0 * static_cast<double>(spec.rows) * static_cast<double>(spec.columns) * static_cast<double>(spec.depth);
    if (!isNarrow || run.count != 1 || operations < static_cast<double>(shared.packFrom))
      return {};
    Matrices &matrices = part.matrices;
    matrices.pack(spec);
    const uint64_t bytes = matrices.packedBytes();
    if (bytes == 0 || operations < static_cast<double>(Matrices::leastPerByte) * static_cast<double>(bytes))
      return {};
    for (Matrix *matrix : {&matrices.left, &matrices.right, &matrices.result})
      if (matrix->isPacked) {
        Result<CUfunction> kernel = shared.gpu->function(kernelsPtx, fmt::format("msc_repitch_{}", elementBytes(matrix->type)));
        if (!kernel)
          return kernel.error();
        matrix->kernel = *kernel;
      }
    auto packed = std::make_unique<Description>(blas);
    if (Status status = describe(run, matrices, *packed); !status)
      return status;
    if (choose(run.start, matrices, *packed)) // else there is an algorithm for the product as it lies
      part.packed = std::move(packed);
    return {};
  }

  Status multiply(const Stream &stream, const Description &made, const std::byte *left, const std::byte *right, std::byte *result) {
    const float one = 1, zero = 0;
    MSC_BLAS(cublasLtMatmul, shared.handle, made.product, &one, right, made.first, left, made.second, &zero, result, made.result,
             result, made.result, &made.algorithms[made.chosen], reinterpret_cast<void *>(stream.workspace), workspaceBytes, stream.handle);
    return {};
  }

  Status multiplyPacked(const Stream &stream, const Part &part) {
    const Matrix &left = part.matrices.left, &right = part.matrices.right, &result = part.matrices.result;
    auto place = [&](const Matrix &matrix, std::byte *data) {
      return matrix.isPacked ? reinterpret_cast<std::byte *>(stream.scratch + matrix.offset) : data;
    };
    std::byte *ownLeft = this->left(part.start), *ownRight = this->right(part.start), *ownResult = this->result(part.start);
    std::byte *inLeft = place(left, ownLeft), *inRight = place(right, ownRight), *inResult = place(result, ownResult);
    for (const auto &[matrix, own, in] : {std::tuple(&left, ownLeft, inLeft), std::tuple(&right, ownRight, inRight)})
      if (matrix->isPacked)
        if (Status status = repitch(stream, *matrix, in, own, matrix->heldRows, matrix->pitch, matrix->columns); !status)
          return status;
    if (Status status = multiply(stream, *part.packed, inLeft, inRight, inResult); !status || !result.isPacked)
      return status;
    return repitch(stream, result, ownResult, inResult, result.rows, result.columns, result.pitch);
  }

  /// Copies a matrix to `total` rows of `targetPitch` elements; what it has none for becomes zero.
  Status repitch(const Stream &stream, const Matrix &matrix, const std::byte *target, const std::byte *source, int64_t total,
                 int64_t targetPitch, int64_t sourcePitch) {
    const DriverTable &driver = shared.driver;
    const auto bytes = static_cast<int64_t>(elementBytes(matrix.type));
    const int64_t lanes = matrix.columns * bytes >= 8 * 4 * 256 ? 256 : 32; // eight words under way in each
    const int64_t blocks = std::min<int64_t>((total * lanes + kernelBlock - 1) / kernelBlock, 1 << 16);
    int64_t values[] = {static_cast<int64_t>(addressOf(target)), static_cast<int64_t>(addressOf(source)), matrix.rows, matrix.columns,
                        targetPitch, sourcePitch, lanes, total};
    void *places[] = {&values[0], &values[1], &values[2], &values[3], &values[4], &values[5], &values[6], &values[7]};
    MSC_CUDA(cuLaunchKernel, matrix.kernel, static_cast<unsigned>(blocks), 1, 1, kernelBlock, 1, 1, 0, stream.handle, places, nullptr);
    return {};
  }

  Shared &shared;
  const BlasTable &blas;
  MatMulSpec spec;
  std::vector<Part> parts;
};

/// Sums of nothing.
class EmptyProduct final : public StreamOperation {
public:
  EmptyProduct(Shared &shared, const MatMulSpec &spec)
      : StreamOperation(shared.streams[0]), driver(shared.driver), spec(spec) {}
  Status enqueue(const Stream &stream) override {
    for (const MatMulSpec::Batch &batch : spec.batches)
      MSC_CUDA(cuMemsetD8Async, addressOf(spec.result) + static_cast<uint64_t>(batch.result) * elementBytes(spec.type), 0,
               static_cast<size_t>(spec.rows * spec.columns) * elementBytes(spec.type), stream.handle);
    return {};
  }

private:
  const DriverTable &driver;
  MatMulSpec spec;
};

} // namespace

Prepared prepareMatMul(Shared &shared, const MatMulSpec &spec) {
  if (spec.depth == 0 && spec.bias)
    return Error{ExitCode::BadFile, "cuBLASLt adds no bias to a product of depth 0", "run on CPUs with --device cpu"};
  if (spec.depth == 0)
    return std::unique_ptr<Operation>(new EmptyProduct(shared, spec));
  auto product = std::make_unique<Product>(shared, spec);
  if (Status status = product->prepare(); !status)
    return status.error();
  return std::unique_ptr<Operation>(std::move(product));
}

} // namespace msc::device::cuda
