#include "KernelTestSupport.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MathExtras.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace msc::test {

mlir::MLIRContext &context() {
  static mlir::MLIRContext *instance = [] {
    auto *created = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    created->loadDialect<mlir::func::FuncDialect, mlir::linalg::LinalgDialect, mlir::arith::ArithDialect,
                         mlir::math::MathDialect, mlir::tensor::TensorDialect>();
    created->allowUnregisteredDialects(true); // msc.in_place
    return created;
  }();
  return *instance;
}

mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text) {
  return mlir::parseSourceString<mlir::ModuleOp>(text, &context());
}

static constexpr char guard = 0x5a;

Buffer::Buffer(size_t bytes) : storage(bytes + 192, guard), bytes(bytes) {
  start = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64;
}

bool Buffer::guardIntact() const {
  for (size_t i = bytes; i < bytes + 128; ++i)
    if (start[i] != guard)
      return false;
  return true;
}

template <typename T> static void convert(const Tensor &tensor, Buffer &buffer) {
  for (auto [i, scalar] : llvm::enumerate(tensor.elements))
    reinterpret_cast<T *>(buffer.data())[i] = std::is_floating_point_v<T> ? T(scalar.real) : T(scalar.whole);
}
template <typename T> static void convertBack(Buffer &buffer, Tensor &tensor) {
  for (auto [i, scalar] : llvm::enumerate(tensor.elements)) {
    T value = reinterpret_cast<T *>(buffer.data())[i];
    std::is_floating_point_v<T> ? void(scalar.real = value) : void(scalar.whole = value);
  }
}

static size_t elementBytes(mlir::Type type) { return std::max(1u, type.getIntOrFloatBitWidth() / 8); }

static bool isNarrow(mlir::Type type) { return type.isBF16() || type.isF16(); }

Buffer pack(const Tensor &tensor) {
  mlir::Type type = tensor.type.getElementType();
  Buffer buffer(tensor.elements.size() * elementBytes(type));
  if (isNarrow(type)) {
    for (auto [i, scalar] : llvm::enumerate(tensor.elements)) {
      llvm::APFloat value(scalar.real);
      bool inexact;
      value.convert(mlir::cast<mlir::FloatType>(type).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
      reinterpret_cast<uint16_t *>(buffer.data())[i] = value.bitcastToAPInt().getZExtValue();
    }
    return buffer;
  }
  type.isF32()          ? convert<float>(tensor, buffer)
  : type.isF64()        ? convert<double>(tensor, buffer)
  : type.isInteger(32)  ? convert<int32_t>(tensor, buffer)
  : type.isInteger(64)  ? convert<int64_t>(tensor, buffer)
                        : convert<int8_t>(tensor, buffer);
  return buffer;
}

Tensor unpack(mlir::RankedTensorType tensorType, Buffer &buffer) {
  Tensor tensor{tensorType, std::vector<Scalar>(tensorType.getNumElements())};
  mlir::Type type = tensorType.getElementType();
  if (isNarrow(type)) {
    for (auto [i, scalar] : llvm::enumerate(tensor.elements)) {
      llvm::APFloat value(mlir::cast<mlir::FloatType>(type).getFloatSemantics(),
                          llvm::APInt(16, reinterpret_cast<uint16_t *>(buffer.data())[i]));
      bool inexact;
      value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
      scalar.real = value.convertToDouble();
    }
    return tensor;
  }
  type.isF32()          ? convertBack<float>(buffer, tensor)
  : type.isF64()        ? convertBack<double>(buffer, tensor)
  : type.isInteger(32)  ? convertBack<int32_t>(buffer, tensor)
  : type.isInteger(64)  ? convertBack<int64_t>(buffer, tensor)
                        : convertBack<int8_t>(buffer, tensor);
  return tensor;
}

LoadedObject::LoadedObject(const std::string &bytes) {
  int file = memfd_create("kernels", MFD_CLOEXEC);
  EXPECT_EQ(write(file, bytes.data(), bytes.size()), ssize_t(bytes.size()));
  handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  close(file);
}

LoadedObject::~LoadedObject() {
  if (handle)
    dlclose(handle);
}

void *LoadedObject::symbol(const std::string &name) const { return dlsym(handle, name.c_str()); }

template <size_t... I>
static void callWith(void *symbol, const std::vector<void *> &p, int64_t begin, int64_t end, std::index_sequence<I...>) {
  reinterpret_cast<void (*)(std::enable_if_t<(I >= 0), void *>..., int64_t, int64_t)>(symbol)(p[I]..., begin, end);
}

template <size_t N = 1> static void callAny(void *symbol, const std::vector<void *> &p, int64_t begin, int64_t end) {
  if (p.size() == N)
    return callWith(symbol, p, begin, end, std::make_index_sequence<N>());
  if constexpr (N < 48)
    return callAny<N + 1>(symbol, p, begin, end);
  FAIL() << "tests call kernels of 1 to 48 pointers";
}

void callKernel(void *symbol, const std::vector<void *> &pointers, int64_t begin, int64_t end) {
  callAny(symbol, pointers, begin, end);
}

void callEmulated(GpuEmulator &gpu, const codegen::CompiledKernel &kernel, const std::vector<void *> &pointers, int64_t end,
                  GpuEmulator::Order order) {
  const codegen::GpuLaunch &launch = kernel.gpu;
  EXPECT_LE(end, launch.mostRange);
  int64_t grid = std::max<int64_t>(1, llvm::divideCeil(end * launch.items, launch.blockItems));
  if (order == GpuEmulator::Order::Backward)
    grid = 1 + grid / 3;
  if (end == 0) // nothing is launched
    return;
  std::vector<void *> arguments = pointers;
  std::vector<int64_t> scratch(end * launch.unitScratch / 8);
  if (launch.unitScratch != 0)
    arguments.push_back(scratch.data());
  EXPECT_EQ(gpu.launch(launch.entry, launch.block, grid, arguments, end, order), "");
  if (launch.unitScratch != 0) // the counters are ready for the next launch
    EXPECT_EQ(std::vector<int64_t>(scratch.end() - end, scratch.end()), std::vector<int64_t>(end));
}

bool cpuHas(const std::string &isa) {
  return isa == "x86-64-v3" ? __builtin_cpu_supports("x86-64-v3") : isa == "x86-64-v4" && __builtin_cpu_supports("x86-64-v4");
}

unsigned rounds(unsigned count) {
  const char *isLong = std::getenv("MSC_LONG");
  return isLong && *isLong && std::string(isLong) != "0" ? 50 * count : count;
}

static Tensor draw(mlir::RankedTensorType type, const CheckOptions &options, std::mt19937_64 &random) {
  Tensor tensor{type, std::vector<Scalar>(type.getNumElements())};
  std::uniform_real_distribution<double> real(options.low, options.high);
  std::uniform_int_distribution<int64_t> whole(options.wholeLow, options.wholeHigh);
  auto drawReal = [&] { return options.step > 0 ? std::round(real(random) / options.step) * options.step : real(random); };
  for (Scalar &scalar : tensor.elements) {
    scalar.real = type.getElementType().isF32() ? double(float(drawReal())) : drawReal();
    scalar.whole = type.getElementType().isInteger(1) ? whole(random) & 1 : whole(random);
  }
  return tensor;
}

namespace {

/// One cluster: its arguments, the expected results, and runs of its kernel.
class Case {
public:
  CheckOptions options;

  Case(mlir::func::FuncOp func, codegen::CompiledKernel kernel, const CheckOptions &options)
      : options(options), func(func), kernel(std::move(kernel)), random(options.seed) {
    for (mlir::Type type : func.getArgumentTypes())
      arguments.push_back(draw(mlir::cast<mlir::RankedTensorType>(type), options, random));
    if (!options.likeCpu)
      expected = evaluateCluster(func, arguments);
    for (unsigned i = 0; options.likeCpu && i < func.getNumResults(); ++i) {
      auto type = mlir::cast<mlir::RankedTensorType>(func.getResultTypes()[i]);
      expected.push_back({type, std::vector<Scalar>(type.getNumElements())});
    }
  }

  /// Takes the results of a run for those that are expected.
  void expect(const std::string &bytes) {
    size_t position = 0;
    for (Tensor &want : expected)
      want = next(bytes, want.type, position);
  }

  int64_t extent() const {
    int64_t result = 1;
    for (auto [pointer, dim] : kernel.rangeSizes)
      result *= pointerType(pointer).getDimSize(dim);
    return result;
  }

  /// What a call on a CPU counts: the extent, or the pieces of a cut row.
  int64_t units() const { return kernel.pieces > 0 ? kernel.pieces : extent(); }

  /// Bytes of all results after running the pieces between the cuts, in random order.
  std::string run(const LoadedObject &object, const std::vector<int64_t> &cuts) {
    std::vector<std::pair<int64_t, int64_t>> pieces;
    for (size_t i = 0; i + 1 < cuts.size(); ++i)
      pieces.push_back({cuts[i], cuts[i + 1]});
    std::shuffle(pieces.begin(), pieces.end(), random);
    void *symbol = object.symbol(kernel.symbol);
    EXPECT_NE(symbol, nullptr) << kernel.symbol;
    return run([&](std::vector<void *> pointers) {
      Buffer scratch(kernel.scratch);
      if (kernel.pieces > 0)
        pointers.push_back(scratch.data());
      for (auto [begin, end] : pieces)
        callKernel(symbol, pointers, begin, end);
      if (kernel.pieces > 0)
        callKernel(symbol, pointers, kernel.pieces, kernel.pieces + 1);
      EXPECT_TRUE(scratch.guardIntact()) << name() << " wrote behind the scratch";
    });
  }

  /// The same on the emulated GPU.
  std::string run(GpuEmulator &gpu, GpuEmulator::Order order) {
    return run([&](const std::vector<void *> &pointers) { callEmulated(gpu, kernel, pointers, extent(), order); });
  }

  /// Nothing is added up: every order of computation gives the same bits.
  bool isPointwise() const {
    bool reduces = false;
    func.walk([&](mlir::linalg::GenericOp op) { reduces |= op.getNumReductionLoops() > 0; });
    return !reduces;
  }

  std::string run(llvm::function_ref<void(const std::vector<void *> &)> launch) {
    std::vector<Buffer> buffers;
    for (const Tensor &argument : arguments)
      buffers.push_back(pack(argument));
    std::vector<size_t> resultBuffer = resultPointers();
    for (auto [result, pointer] : llvm::enumerate(resultBuffer))
      if (pointer == buffers.size())
        buffers.push_back(pack(Tensor{expected[result].type, std::vector<Scalar>(expected[result].elements.size(), {-77, 1})}));
    EXPECT_EQ(buffers.size(), kernel.pointers);
    std::vector<void *> pointers;
    for (Buffer &buffer : buffers)
      pointers.push_back(buffer.data());
    launch(pointers);
    std::string bytes;
    for (Buffer &buffer : buffers)
      EXPECT_TRUE(buffer.guardIntact()) << name() << " wrote behind a buffer";
    for (size_t pointer : resultBuffer)
      bytes += buffers[pointer].content();
    return bytes;
  }

  void compare(const std::string &bytes) {
    size_t position = 0;
    for (const Tensor &want : expected)
      compareTensor(next(bytes, want.type, position), want);
  }

  std::vector<int64_t> randomCuts() {
    std::vector<int64_t> cuts = {0, units()};
    int64_t units = this->units() / kernel.unit;
    for (int i = 0; i < 3 && units > 0; ++i)
      cuts.push_back(std::uniform_int_distribution<int64_t>(0, units)(random) * kernel.unit);
    std::sort(cuts.begin(), cuts.end());
    return cuts;
  }

  std::string name() const { return func.getName().str(); }

private:
  /// The tensor that begins at `position`, which moves behind it.
  static Tensor next(const std::string &bytes, mlir::RankedTensorType type, size_t &position) {
    Buffer buffer(type.getNumElements() * elementBytes(type.getElementType()));
    std::copy_n(bytes.begin() + position, buffer.size(), buffer.data());
    position += buffer.size();
    return unpack(type, buffer);
  }

  /// Of results that are sums; what adds nothing up has to be equal.
  double toleranceOf(mlir::Type type) const {
    if (!options.likeCpu)
      return options.tolerance;
    return isPointwise() ? 0 : type.isBF16() ? 2e-2 : type.isF16() ? 2e-3 : type.isF64() ? 1e-11 : options.tolerance;
  }

  mlir::RankedTensorType pointerType(unsigned pointer) const {
    if (pointer < func.getNumArguments())
      return mlir::cast<mlir::RankedTensorType>(func.getArgumentTypes()[pointer]);
    std::vector<size_t> list = resultPointers();
    for (auto [result, at] : llvm::enumerate(list))
      if (at == pointer)
        return mlir::cast<mlir::RankedTensorType>(func.getResultTypes()[result]);
    return {};
  }

  std::vector<size_t> resultPointers() const {
    std::vector<size_t> list(func.getNumResults(), size_t(-1));
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (auto target = func.getArgAttrOfType<mlir::IntegerAttr>(i, "msc.in_place"))
        list[target.getInt()] = i;
    size_t next = func.getNumArguments();
    for (size_t &pointer : list)
      if (pointer == size_t(-1))
        pointer = next++;
    return list;
  }

  void compareTensor(const Tensor &got, const Tensor &want) {
    bool real = mlir::isa<mlir::FloatType>(want.type.getElementType());
    int reported = 0;
    for (size_t i = 0; i < want.elements.size() && reported < 3; ++i) {
      double a = got.elements[i].real, b = want.elements[i].real;
      bool good = real ? (std::isnan(b) ? std::isnan(a) : a == b || std::fabs(a - b) <= toleranceOf(want.type.getElementType()) * std::max(1.0, std::fabs(b)))
                       : got.elements[i].whole == want.elements[i].whole;
      if (good)
        continue;
      ++reported;
      ADD_FAILURE() << name() << " element " << i << ": got " << (real ? std::to_string(a) : std::to_string(got.elements[i].whole))
                    << ", want " << (real ? std::to_string(b) : std::to_string(want.elements[i].whole));
    }
  }

  mutable mlir::func::FuncOp func;
  codegen::CompiledKernel kernel;
  std::mt19937_64 random;
  std::vector<Tensor> arguments, expected;
};

} // namespace

/// The GPU kernels of the cases must agree with the reference for every grid and order of threads; those that add nothing up
/// with the bits of the CPU.
static void emulate(std::vector<Case> &cases, const std::string &ir, const std::vector<std::string> &onCpu) {
  GpuEmulator gpu(ir);
  for (auto [i, test] : llvm::enumerate(cases)) {
    std::string bytes = test.run(gpu, GpuEmulator::Order::Forward);
    EXPECT_TRUE(test.run(gpu, GpuEmulator::Order::Backward) == bytes) << test.name() << ": other bits on another grid";
    if (test.isPointwise() && !test.options.likeCpu)
      EXPECT_TRUE(bytes == onCpu[i]) << test.name() << ": other bits on a GPU than on a CPU";
    else
      test.compare(bytes);
  }
}

/// Checks all functions of the text; returns the bytes of their results.
static std::vector<std::string> checkOnce(const std::string &text, const CheckOptions &options, bool streams) {
  auto module = parse(text);
  if (!module) {
    ADD_FAILURE() << text;
    return {};
  }
  codegen::KernelLibrary library({.cpu = true, .gpu = true});
  std::vector<Case> cases;
  codegen::CompiledKernel first;
  for (auto func : module->getOps<mlir::func::FuncOp>()) {
    auto kernel = library.add(func, options.followFirst && !cases.empty() ? &first : nullptr, streams);
    if (mlir::failed(kernel)) {
      ADD_FAILURE() << func.getName().str();
      return {};
    }
    if (cases.empty())
      first = *kernel;
    if (options.followFirst) {
      EXPECT_EQ(kernel->rangeSizes, first.rangeSizes) << func.getName().str();
      EXPECT_EQ(kernel->unit, first.unit);
    }
    CheckOptions own = options;
    own.seed += cases.size();
    cases.emplace_back(func, *kernel, own);
  }
  std::string gpuIr = library.gpuIrText();
  auto objects = library.finish(module->getLoc());
  std::vector<std::string> expected(cases.size());
  if (mlir::failed(objects)) {
    ADD_FAILURE() << "the kernels do not compile";
    return expected;
  }
  for (const codegen::CodeObject &object : *objects) {
    if (!cpuHas(object.isa))
      continue; // PTX among them
    LoadedObject loaded(object.bytes);
    for (auto [i, test] : llvm::enumerate(cases)) {
      std::string bytes = test.run(loaded, {0, test.units()});
      if (expected[i].empty()) {
        expected[i] = bytes;
        options.likeCpu ? test.expect(bytes) : test.compare(bytes);
      }
      EXPECT_TRUE(bytes == expected[i]) << test.name() << ": other bits on " << object.isa;
      EXPECT_TRUE(test.run(loaded, test.randomCuts()) == bytes) << test.name() << ": other bits when the range is cut";
    }
  }
  emulate(cases, gpuIr, expected);
  return expected;
}

void checkClusters(const std::string &text, const CheckOptions &options) {
  std::vector<std::string> plain = checkOnce(text, options, false);
  if (options.streams) {
    EXPECT_TRUE(checkOnce(text, options, true) == plain) << "other bits when results go around the caches";
  }
}

} // namespace msc::test
