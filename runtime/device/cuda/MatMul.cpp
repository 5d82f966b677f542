// Products by cuBLASLt, which add in f32. It counts columns first: our row-major result is its transposed result, so that the operands
// change places, and a bias along our columns is one along its rows.
#include "runtime/device/cuda/Operations.h"

#include <algorithm>
#include <array>

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
  cublasLtMatmulAlgo_t algorithm = {};
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

/// The largest power of two up to 256 that divides an address.
uint32_t alignmentOf(const std::byte *data) {
  auto address = reinterpret_cast<uint64_t>(data) | 256;
  return static_cast<uint32_t>(address & -address);
}

class Product final : public StreamOperation {
public:
  Product(Shared &shared, const MatMulSpec &spec)
      : StreamOperation(shared.streams[0]), shared(shared), blas(shared.blas), spec(spec) {}

  Status prepare() {
    for (const Run &run : runsOf(spec.batches)) {
      auto made = std::make_unique<Description>(blas);
      if (Status status = describe(run, *made); !status)
        return status;
      if (Status status = choose(run.start, *made); !status)
        return status;
      parts.push_back({run.start, std::move(made)});
    }
    return {};
  }

  Status enqueue(const Stream &stream) override {
    const float one = 1, zero = 0;
    for (const auto &[start, made] : parts) {
      std::byte *target = result(start);
      MSC_BLAS(cublasLtMatmul, shared.handle, made->product, &one, right(start), made->first, left(start), made->second, &zero,
               target, made->result, target, made->result, &made->algorithm, reinterpret_cast<void *>(stream.workspace),
               workspaceBytes, stream.handle);
    }
    return {};
  }

private:
  static std::byte *at(std::byte *data, int64_t element, plan::DataType type) {
    return data + element * static_cast<int64_t>(elementBytes(type));
  }
  std::byte *left(const MatMulSpec::Batch &batch) const { return at(spec.left, batch.left, spec.operands); }
  std::byte *right(const MatMulSpec::Batch &batch) const { return at(spec.right, batch.right, spec.operands); }
  std::byte *result(const MatMulSpec::Batch &batch) const { return at(spec.result, batch.result, spec.type); }

  /// A matrix of `shape` (rows and columns), stored as such in our order.
  Status layout(cublasLtMatrixLayout_t &layout, plan::DataType type, std::pair<int64_t, int64_t> shape, int64_t count, int64_t step) {
    auto [rows, columns] = shape;
    MSC_BLAS(cublasLtMatrixLayoutCreate, &layout, typeOf(type), static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), columns);
    auto batches = static_cast<int32_t>(count);
    MSC_BLAS(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof(batches));
    MSC_BLAS(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof(step));
    return {};
  }

  template <typename Value> Status set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, Value value) {
    MSC_BLAS(cublasLtMatmulDescSetAttribute, product, attribute, &value, sizeof(value));
    return {};
  }

  Status describe(const Run &run, Description &made) {
    const bool rounds = shared.tensorFloat && spec.operands == plan::F32;
    MSC_BLAS(cublasLtMatmulDescCreate, &made.product, rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    auto operation = [](bool transposed) { return static_cast<int32_t>(transposed ? CUBLAS_OP_T : CUBLAS_OP_N); };
    auto epilogue = static_cast<uint32_t>(spec.bias ? (spec.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                                                    : (spec.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT));
    int64_t depth = spec.depth;
    std::pair<int64_t, int64_t> left{spec.rows, depth}, right{depth, spec.columns};
    if (spec.transposeLeft)
      std::swap(left.first, left.second);
    if (spec.transposeRight)
      std::swap(right.first, right.second);
    for (Status status :
         {set(made.product, CUBLASLT_MATMUL_DESC_TRANSA, operation(spec.transposeRight)),
          set(made.product, CUBLASLT_MATMUL_DESC_TRANSB, operation(spec.transposeLeft)),
          set(made.product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue),
          spec.bias ? set(made.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void *>(spec.bias)) : Status(),
          layout(made.first, spec.operands, right, run.count, run.step.right),
          layout(made.second, spec.operands, left, run.count, run.step.left),
          layout(made.result, spec.type, {spec.rows, spec.columns}, run.count, run.step.result)})
      if (!status)
        return status;
    return {};
  }

  template <typename Value> Status prefer(Description &made, cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
    MSC_BLAS(cublasLtMatmulPreferenceSetAttribute, made.preference, attribute, &value, sizeof(value));
    return {};
  }

  /// Takes the first algorithm that cuBLASLt proposes and can run, so that every step runs the same one. Without being told it takes
  /// addresses for multiples of 256, and adds the parts of a narrow result in its own type.
  Status choose(const MatMulSpec::Batch &start, Description &made) {
    MSC_BLAS(cublasLtMatmulPreferenceCreate, &made.preference);
    uint32_t first = alignmentOf(right(start)), second = alignmentOf(left(start)), third = alignmentOf(result(start));
    const uint32_t sums = spec.type == plan::F32 ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    for (Status status : {prefer(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes),
                          prefer(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums),
                          prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, first),
                          prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, second),
                          prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, third),
                          prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, third)})
      if (!status)
        return status;
    std::array<cublasLtMatmulHeuristicResult_t, 8> found = {};
    int count = 0;
    cublasStatus_t status =
        blas.cublasLtMatmulAlgoGetHeuristic(shared.handle, made.product, made.first, made.second, made.result, made.result,
                                            made.preference, static_cast<int>(found.size()), found.data(), &count);
    const auto end = found.begin() + (status == CUBLAS_STATUS_SUCCESS ? count : 0);
    const auto best = std::find_if(found.begin(), end, [](const auto &one) { return one.state == CUBLAS_STATUS_SUCCESS; });
    if (best == end)
      return Error{
          ExitCode::NoResource,
          fmt::format("cuBLASLt cannot multiply {}x{} by {}x{}: {}", spec.rows, spec.depth, spec.depth, spec.columns,
                      blas.cublasLtGetStatusString(status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : status)),
          ""};
    made.algorithm = best->algo;
    return {};
  }

  Shared &shared;
  const BlasTable &blas;
  MatMulSpec spec;
  std::vector<std::pair<MatMulSpec::Batch, std::unique_ptr<Description>>> parts;
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
