#include "passes/codegen/cpu/LaneMemory.h"

#include "passes/codegen/BodyEmitter.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace msc::codegen {

using llvm::Value;

llvm::Type *LaneMemory::memory(mlir::Type element) { return memoryType(element, builder.getContext()); }

Value *LaneMemory::toRegister(mlir::Type element, Value *value) {
  if (isNarrowFloat(element))
    return NarrowFloat(builder).load(value, element);
  return element.isInteger(1) ? builder.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType())) : value;
}

Value *LaneMemory::toMemory(mlir::Type element, Value *value) {
  if (isNarrowFloat(element))
    return NarrowFloat(builder).store(value, element);
  if (!element.isInteger(1))
    return value;
  llvm::Type *byte = builder.getInt8Ty();
  if (auto *vector = llvm::dyn_cast<llvm::VectorType>(value->getType()))
    byte = llvm::VectorType::get(byte, vector->getElementCount());
  return builder.CreateZExt(value, byte);
}

Value *LaneMemory::advance(mlir::Type element, Value *address, Value *elements) {
  return builder.CreateInBoundsGEP(memory(element), address, elements);
}
Value *LaneMemory::advance(mlir::Type element, Value *address, int64_t elements) {
  return elements == 0 ? address : advance(element, address, builder.getInt64(elements));
}

LaneMask LaneMemory::firstLanes(Value *count) {
  llvm::SmallVector<llvm::Constant *> numbers;
  for (unsigned lane = 0; lane < lanes; ++lane)
    numbers.push_back(builder.getInt32(lane));
  Value *limit = builder.CreateVectorSplat(lanes, builder.CreateTrunc(count, builder.getInt32Ty()));
  LaneMask mask;
  mask.dynamic = builder.CreateICmpSLT(llvm::ConstantVector::get(numbers), limit);
  return mask;
}

Value *LaneMemory::maskValue(const LaneMask &mask) {
  if (mask.dynamic)
    return mask.dynamic;
  llvm::SmallVector<llvm::Constant *> bits;
  for (int lane = 0; lane < int(lanes); ++lane)
    bits.push_back(builder.getInt1(mask.valid < 0 || lane < mask.valid));
  return llvm::ConstantVector::get(bits);
}

Value *LaneMemory::laneAddresses(mlir::Type element, Value *address, int64_t stride) {
  llvm::SmallVector<llvm::Constant *> offsets;
  for (unsigned lane = 0; lane < lanes; ++lane)
    offsets.push_back(builder.getInt64(lane * stride));
  return builder.CreateGEP(memory(element), address, llvm::ConstantVector::get(offsets));
}

Value *LaneMemory::load(mlir::Type element, Value *address, int64_t stride, const LaneMask &mask) {
  llvm::Type *type = memory(element);
  llvm::Align align(type->getScalarSizeInBits() / 8);
  auto *vector = llvm::FixedVectorType::get(type, lanes);
  if (stride == 0)
    return builder.CreateVectorSplat(lanes, toRegister(element, builder.CreateAlignedLoad(type, address, align)));
  llvm::Constant *zero = llvm::Constant::getNullValue(vector);
  if (stride == 1 && mask.isFull())
    return toRegister(element, builder.CreateAlignedLoad(vector, address, align));
  if (stride == 1)
    return toRegister(element, builder.CreateMaskedLoad(vector, address, align, maskValue(mask), zero));
  if (mask.dynamic)
    return toRegister(element, builder.CreateMaskedGather(vector, laneAddresses(element, address, stride), align,
                                                          mask.dynamic, zero));
  // Single loads beat gather instructions on processors with the gather mitigation.
  Value *value = zero;
  for (unsigned lane = 0; lane < (mask.valid < 0 ? lanes : unsigned(mask.valid)); ++lane) {
    Value *single = builder.CreateAlignedLoad(type, advance(element, address, lane * stride), align);
    value = builder.CreateInsertElement(value, single, uint64_t(lane));
  }
  return toRegister(element, value);
}

void LaneMemory::store(mlir::Type element, Value *value, Value *address, int64_t stride, const LaneMask &mask) {
  value = toMemory(element, value);
  llvm::Align align(memory(element)->getScalarSizeInBits() / 8);
  if (stride == 0) {
    builder.CreateAlignedStore(builder.CreateExtractElement(value, uint64_t(0)), address, align);
  } else if (stride == 1 && mask.isFull()) {
    builder.CreateAlignedStore(value, address, align);
  } else if (stride == 1) {
    builder.CreateMaskedStore(value, address, align, maskValue(mask));
  } else if (mask.dynamic) {
    builder.CreateMaskedScatter(value, laneAddresses(element, address, stride), align, mask.dynamic);
  } else {
    for (unsigned lane = 0; lane < (mask.valid < 0 ? lanes : unsigned(mask.valid)); ++lane)
      builder.CreateAlignedStore(builder.CreateExtractElement(value, uint64_t(lane)),
                                 advance(element, address, lane * stride), align);
  }
}

void LaneMemory::stream(mlir::Type element, Value *value, Value *address) {
  value = toMemory(element, value);
  llvm::Align align(value->getType()->getPrimitiveSizeInBits() / 8);
  llvm::StoreInst *store = builder.CreateAlignedStore(value, address, align);
  auto *one = llvm::ConstantAsMetadata::get(builder.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(builder.getContext(), one));
}

// Two-operand shuffles that x86 has as single instructions: first within chunks of 128 bits (unpack), then of whole
// chunks. `low` and `high` of a round replace rows `distance` apart.
Values LaneMemory::transpose(Values rows) {
  int count = rows.size();
  int chunk = std::max<int>(1, 128 / rows[0]->getType()->getScalarSizeInBits());
  bool inChunks = chunk > 1 && chunk < count;
  auto round = [&](int distance, llvm::ArrayRef<int> low, llvm::ArrayRef<int> high) {
    for (int row = 0; row < count; ++row) {
      if (row & distance)
        continue;
      Value *a = rows[row], *b = rows[row + distance];
      rows[row] = builder.CreateShuffleVector(a, b, low);
      rows[row + distance] = builder.CreateShuffleVector(a, b, high);
    }
  };
  llvm::SmallVector<int> low(count), high(count);
  if (!inChunks) { // exchange off-diagonal blocks of halving size
    for (int block = count / 2; block >= 1; block /= 2) {
      for (int lane = 0; lane < count; ++lane) {
        low[lane] = lane & block ? count + lane - block : lane;
        high[lane] = lane & block ? count + lane : lane + block;
      }
      round(block, low, high);
    }
    return rows;
  }
  for (int width = 1; width < chunk; width *= 2) { // interleave runs of `width` elements
    for (int lane = 0; lane < count; ++lane) {
      int inside = lane % chunk, run = inside / width;
      int from = lane - inside + run / 2 * width + inside % width + (run % 2 ? count : 0);
      low[lane] = from;
      high[lane] = from + chunk / 2;
    }
    round(width, low, high);
  }
  int chunks = count / chunk;
  for (int distance = 1; distance < chunks; distance *= 2) { // even and odd chunks of both rows
    for (int lane = 0; lane < count; ++lane) {
      int to = lane / chunk, from = 2 * to; // chunks of a, then of b
      low[lane] = from * chunk + lane % chunk;
      high[lane] = (from + 1) * chunk + lane % chunk;
    }
    round(distance * chunk, low, high);
  }
  // Within a chunk the rounds leave the columns in bit-reversed order.
  Values columns(count);
  for (int row = 0; row < count; ++row) {
    int reversed = 0;
    for (int bit = 1, other = chunk / 2; bit < chunk; bit *= 2, other /= 2)
      reversed |= row % chunk & bit ? other : 0;
    columns[row - row % chunk + reversed] = rows[row];
  }
  return columns;
}

llvm::Function *tileTransposition(llvm::Module &module, mlir::Type element, unsigned lanes) {
  if (element.isInteger(1) || isNarrowFloat(element)) // moved as they are
    element = mlir::IntegerType::get(element.getContext(), element.isInteger(1) ? 8 : 16);
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *type = memoryType(element, context);
  std::string name;
  llvm::raw_string_ostream(name) << "transpose_" << *type << "_" << lanes;
  if (llvm::Function *known = module.getFunction(name))
    return known;
  llvm::Type *pointer = llvm::PointerType::get(context, 0), *number = llvm::Type::getInt64Ty(context);
  auto *signature = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                            {pointer, number, pointer, number, number, number}, false);
  auto *function = llvm::Function::Create(signature, llvm::GlobalValue::InternalLinkage, name, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addParamAttr(0, llvm::Attribute::NoAlias);
  function->addParamAttr(2, llvm::Attribute::NoAlias);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", function));
  LaneMemory memory(builder, lanes);
  Value *lines = function->getArg(4), *length = function->getArg(5);
  // Line i counts in the lanes below `width` if i is below `count`.
  auto masks = [&](Value *count, Value *width) {
    Value *inLine = memory.firstLanes(width).dynamic;
    return [=, &builder](unsigned i) {
      Value *exists = builder.CreateVectorSplat(lanes, builder.CreateICmpSLT(builder.getInt64(i), count));
      return LaneMask{-1, builder.CreateAnd(inLine, exists)};
    };
  };
  auto place = [&](unsigned base, unsigned i) {
    Value *offset = builder.CreateMul(function->getArg(base + 1), builder.getInt64(i));
    return memory.advance(element, function->getArg(base), offset);
  };
  Values values;
  auto readMask = masks(lines, length), writeMask = masks(length, lines);
  for (unsigned i = 0; i < lanes; ++i)
    values.push_back(memory.load(element, place(0, i), 1, readMask(i)));
  values = memory.transpose(values);
  for (unsigned i = 0; i < lanes; ++i)
    memory.store(element, values[i], place(2, i), 1, writeMask(i));
  builder.CreateRetVoid();
  return function;
}

} // namespace msc::codegen
