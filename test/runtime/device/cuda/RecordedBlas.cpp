// cuBLASLt for the recording driver: f32, bf16 and f16, columns first, strided batches, epilogues of bias and ReLU.
#include "runtime/plan/Bfloat16.h"
#include "test/runtime/device/cuda/RecordedState.h"

#include <algorithm>
#include <cstring>

namespace msc::test {
namespace {

RecordingDriver::State *world = nullptr;

struct Product {
  cublasComputeType_t compute;
  int32_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
};

size_t bytesOf(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }

float readElement(const void *data, int64_t index, cudaDataType type) {
  if (type == CUDA_R_32F)
    return static_cast<const float *>(data)[index];
  return type == CUDA_R_16F ? static_cast<float>(static_cast<const _Float16 *>(data)[index])
                            : static_cast<float>(static_cast<const Bfloat16 *>(data)[index]);
}

void writeElement(void *data, int64_t index, cudaDataType type, float value) {
  if (type == CUDA_R_32F)
    static_cast<float *>(data)[index] = value;
  else if (type == CUDA_R_16F)
    static_cast<_Float16 *>(data)[index] = static_cast<_Float16>(value);
  else
    static_cast<Bfloat16 *>(data)[index] = Bfloat16(value);
}

struct Layout {
  cudaDataType type;
  int64_t rows, columns, leading;
  int32_t batches = 1;
  int64_t stride = 0;

  int64_t at(int64_t batch, int64_t row, int64_t column) const { return batch * stride + column * leading + row; }
  uint64_t bytes() const {
    return static_cast<uint64_t>(((batches - 1) * stride + (columns - 1) * leading + rows)) * bytesOf(type);
  }
};

struct Preference {
  size_t workspace = 0;
  uint32_t sums = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256}; ///< of A, B, C, D
};

template <typename Object, typename Handle> Object &of(Handle handle) {
  return *reinterpret_cast<Object *>(const_cast<void *>(static_cast<const void *>(handle)));
}

#define BLAS_ENTER(name)                                                                                                       \
  std::lock_guard lock(world->mutex);                                                                                          \
  if (world->enter(name) != CUDA_SUCCESS)                                                                                      \
    return CUBLAS_STATUS_EXECUTION_FAILED;

cublasStatus_t create(cublasLtHandle_t *handle) {
  BLAS_ENTER("cublasLtCreate")
  ++world->live["cublasLt handle"];
  *handle = reinterpret_cast<cublasLtHandle_t>(world);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasLtHandle_t) {
  std::lock_guard lock(world->mutex);
  --world->live["cublasLt handle"];
  return CUBLAS_STATUS_SUCCESS;
}
const char *statusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS";
}

cublasStatus_t createProduct(cublasLtMatmulDesc_t *handle, cublasComputeType_t compute, cudaDataType_t scale) {
  if (scale != CUDA_R_32F || (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  std::lock_guard lock(world->mutex);
  ++world->callCounts[compute == CUBLAS_COMPUTE_32F ? "products in f32" : "products in tf32"];
  ++world->live["product"];
  *handle = reinterpret_cast<cublasLtMatmulDesc_t>(new Product{compute});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroyProduct(cublasLtMatmulDesc_t handle) {
  std::lock_guard lock(world->mutex);
  --world->live["product"];
  delete &of<Product>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t setProduct(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute, const void *value,
                          size_t bytes) {
  auto &product = of<Product>(handle);
  auto store = [&](auto &member) {
    if (bytes != sizeof(member))
      return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&member, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return store(product.transposeA);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return store(product.transposeB);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return store(product.epilogue);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return store(product.bias);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
cublasStatus_t createLayout(cublasLtMatrixLayout_t *handle, cudaDataType type, uint64_t rows, uint64_t columns,
                            int64_t leading) {
  if ((type != CUDA_R_32F && type != CUDA_R_16BF && type != CUDA_R_16F) || rows == 0 || columns == 0 || leading < static_cast<int64_t>(rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::lock_guard lock(world->mutex);
  ++world->live["layout"];
  *handle =
      reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroyLayout(cublasLtMatrixLayout_t handle) {
  std::lock_guard lock(world->mutex);
  --world->live["layout"];
  delete &of<Layout>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t setLayout(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                         size_t bytes) {
  auto &layout = of<Layout>(handle);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof(layout.batches))
    std::memcpy(&layout.batches, value, bytes);
  else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof(layout.stride))
    std::memcpy(&layout.stride, value, bytes);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t createPreference(cublasLtMatmulPreference_t *handle) {
  std::lock_guard lock(world->mutex);
  ++world->live["preference"];
  *handle = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroyPreference(cublasLtMatmulPreference_t handle) {
  std::lock_guard lock(world->mutex);
  --world->live["preference"];
  delete &of<Preference>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t setPreference(cublasLtMatmulPreference_t handle, cublasLtMatmulPreferenceAttributes_t attribute,
                             const void *value, size_t bytes) {
  auto &preference = of<Preference>(handle);
  int which = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof(size_t))
    std::memcpy(&preference.workspace, value, bytes);
  else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && bytes == sizeof(uint32_t))
    std::memcpy(&preference.sums, value, bytes);
  else if (which >= 0 && which < 4 && bytes == sizeof(uint32_t))
    std::memcpy(&preference.alignment[which], value, bytes);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

/// Do the shapes of a product fit? D = op(A) op(B), all columns first.
bool fits(const Product &product, const Layout &a, const Layout &b, const Layout &d) {
  auto [m, k] = product.transposeA == CUBLAS_OP_T ? std::pair(a.columns, a.rows) : std::pair(a.rows, a.columns);
  auto [k2, n] = product.transposeB == CUBLAS_OP_T ? std::pair(b.columns, b.rows) : std::pair(b.rows, b.columns);
  const bool typesFit = a.type == b.type && (d.type == CUDA_R_32F || d.type == a.type) &&
                        (a.type == CUDA_R_32F || product.compute == CUBLAS_COMPUTE_32F);
  return typesFit && m == d.rows && n == d.columns && k == k2 && a.batches == d.batches && b.batches == d.batches;
}

constexpr uint64_t firstAlgorithm = 42; ///< that runs, and the next one

cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int wanted,
                         cublasLtMatmulHeuristicResult_t *found, int *count) {
  BLAS_ENTER("cublasLtMatmulAlgoGetHeuristic")
  *count = 0;
  if (wanted < 1 || c != d || !fits(of<Product>(product), of<Layout>(a), of<Layout>(b), of<Layout>(d)))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto &wishes = of<Preference>(preference);
  if (of<Layout>(d).type != CUDA_R_32F && wishes.sums != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
    world->violations.push_back("a narrow result of cublasLtMatmul may be rounded more than once");
  *count = std::min(wanted, 3);
  for (int at = 0; at < *count; ++at) { // where several are asked for, the first cannot run
    const bool runs = at > 0 || wanted == 1;
    found[at] = {};
    found[at].state = runs ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    found[at].workspaceSize = wishes.workspace;
    found[at].algo.data[0] = runs ? firstAlgorithm + static_cast<uint64_t>(std::max(at - 1, 0)) : 0;
    for (int i = 0; i < 4; ++i)
      found[at].algo.data[1 + i] = wishes.alignment[i];
  }
  return CUBLAS_STATUS_SUCCESS;
}

void compute(const Product &product, const Layout &la, const void *a, const Layout &lb, const void *b, const Layout &ld, void *d) {
  int64_t depth = product.transposeA == CUBLAS_OP_T ? la.rows : la.columns;
  bool biased = product.epilogue == CUBLASLT_EPILOGUE_BIAS || product.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  bool relu = product.epilogue == CUBLASLT_EPILOGUE_RELU || product.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  std::vector<double> rowsOfA(static_cast<size_t>(ld.rows * depth)), columnsOfB(static_cast<size_t>(ld.columns * depth));
  for (int64_t batch = 0; batch < ld.batches; ++batch) {
    for (int64_t i = 0, at = 0; i < ld.rows; ++i)
      for (int64_t k = 0; k < depth; ++k, ++at)
        rowsOfA[static_cast<size_t>(at)] =
            static_cast<double>(readElement(a, product.transposeA == CUBLAS_OP_T ? la.at(batch, k, i) : la.at(batch, i, k), la.type));
    for (int64_t j = 0, at = 0; j < ld.columns; ++j)
      for (int64_t k = 0; k < depth; ++k, ++at)
        columnsOfB[static_cast<size_t>(at)] =
            static_cast<double>(readElement(b, product.transposeB == CUBLAS_OP_T ? lb.at(batch, j, k) : lb.at(batch, k, j), lb.type));
    for (int64_t j = 0; j < ld.columns; ++j)
      for (int64_t i = 0; i < ld.rows; ++i) {
        double sum = 0;
        const double *row = rowsOfA.data() + i * depth, *column = columnsOfB.data() + j * depth;
        for (int64_t k = 0; k < depth; ++k)
          sum += row[k] * column[k];
        auto value = static_cast<float>(sum);
        if (biased)
          value += readElement(product.bias, i, ld.type);
        writeElement(d, ld.at(batch, i, j), ld.type, relu && value < 0 ? 0 : value);
      }
  }
}

cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t handle, const void *alpha, const void *a,
                        cublasLtMatrixLayout_t layoutA, const void *b, cublasLtMatrixLayout_t layoutB, const void *beta,
                        const void *c, cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t layoutD,
                        const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes, cudaStream_t stream) {
  BLAS_ENTER("cublasLtMatmul")
  Product product = of<Product>(handle);
  Layout la = of<Layout>(layoutA), lb = of<Layout>(layoutB), ld = of<Layout>(layoutD);
  if (*static_cast<const float *>(alpha) != 1 || *static_cast<const float *>(beta) != 0 || c != d || algorithm->data[0] < firstAlgorithm)
    return CUBLAS_STATUS_INVALID_VALUE;
  ++world->callCounts[fmt::format("products by algorithm {}", algorithm->data[0])];
  auto at = [](const void *data) { return reinterpret_cast<uint64_t>(data); };
  const void *tensors[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (at(tensors[i]) % algorithm->data[1 + i] != 0)
      world->violations.push_back("an operand of cublasLtMatmul is aligned to less than the algorithm was chosen for");
  std::vector<Access> accesses{{at(a), at(a) + la.bytes(), false},
                               {at(b), at(b) + lb.bytes(), false},
                               {at(d), at(d) + ld.bytes(), true},
                               {at(workspace), at(workspace) + bytes, true}};
  if (product.bias)
    accesses.push_back({at(product.bias), at(product.bias) + static_cast<uint64_t>(ld.rows) * bytesOf(ld.type), false});
  world->enqueue(stream, {"cublasLtMatmul", accesses, [=] {
                            ++world->executed;
                            compute(product, la, a, lb, b, ld, d);
                            return CUDA_SUCCESS;
                          }});
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace

void recordBlasIn(RecordingDriver::State *state) { world = state; }

void fillBlasTable(device::cuda::BlasTable &t) {
  t.cublasLtGetVersion = [] { return size_t(130000); };
  t.cublasLtCreate = create, t.cublasLtDestroy = destroy, t.cublasLtGetStatusString = statusString;
  t.cublasLtMatmulDescCreate = createProduct, t.cublasLtMatmulDescDestroy = destroyProduct,
  t.cublasLtMatmulDescSetAttribute = setProduct;
  t.cublasLtMatrixLayoutCreate = createLayout, t.cublasLtMatrixLayoutDestroy = destroyLayout,
  t.cublasLtMatrixLayoutSetAttribute = setLayout;
  t.cublasLtMatmulPreferenceCreate = createPreference, t.cublasLtMatmulPreferenceDestroy = destroyPreference;
  t.cublasLtMatmulPreferenceSetAttribute = setPreference, t.cublasLtMatmulAlgoGetHeuristic = heuristic,
  t.cublasLtMatmul = multiply;
}

} // namespace msc::test
