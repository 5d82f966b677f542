// Loops from the outside: batches, panels of columns, blocks of depth (packed onto the stack), groups of rows, depth.
// Every element is summed in the order of the depth, whatever the blocks: cuts and instruction sets change no bit.
#include "passes/codegen/cpu/MatMulEmitter.h"

#include "passes/codegen/BodyEmitter.h"
#include "passes/codegen/cpu/ClusterEmitter.h"

namespace msc::codegen {

using llvm::Value;

/// Depth of a packed block: with three vectors per row it fills 24 KiB, three quarters of a first-level cache.
static constexpr int64_t blockDepth = 128;

MatMulEmitter::MatMulEmitter(const MatMulShape &shape, unsigned vectorsPerRow, llvm::Module &module,
                             llvm::StringRef symbol)
    : shape(shape), lanes(shape.element.getIntOrFloatBitWidth() == 64 ? 8 : 16), vectors(vectorsPerRow),
      function(createKernel(module, symbol, 3)), builder(&function->getEntryBlock()), memory(builder, lanes),
      loops(builder) {}

llvm::Function *MatMulEmitter::emit() {
  auto *slot = builder.CreateAlloca(memoryType(shape.element, builder.getContext()), number(blockDepth * vectors * lanes));
  slot->setAlignment(llvm::Align(64));
  panel = slot;
  Value *begin = function->getArg(3), *end = function->getArg(4);
  Block block;
  block.left = function->getArg(0), block.right = function->getArg(1), block.result = function->getArg(2);
  block.low = begin, block.high = end;
  int64_t m = std::max<int64_t>(shape.m, 1);
  if (shape.batch.empty()) {
    emitBatch(block);
  } else {
    Value *last = builder.CreateSDiv(builder.CreateAdd(end, number(m - 1)), number(m));
    loops.loop(builder.CreateSDiv(begin, number(m)), last, 1, {}, [&](Value *batch, const Values &) -> Values {
      Block part = block;
      auto matrix = [&](Value *base, int64_t elements, Value *index) {
        return memory.advance(shape.element, base, builder.CreateMul(index, number(elements)));
      };
      part.left = matrix(block.left, shape.m * shape.k, operandBatch(batch, &BatchDim::inLeft));
      part.right = matrix(block.right, shape.k * shape.n, operandBatch(batch, &BatchDim::inRight));
      part.result = matrix(block.result, shape.m * shape.n, batch);
      Value *start = builder.CreateMul(batch, number(m));
      part.low = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smax, builder.CreateSub(begin, start), number(0));
      part.high = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, builder.CreateSub(end, start), number(m));
      emitBatch(part);
      return {};
    });
  }
  builder.CreateRetVoid();
  return function;
}

// Takes the index apart from the innermost dimension outwards.
Value *MatMulEmitter::operandBatch(Value *batch, bool BatchDim::*has) {
  Value *index = number(0);
  int64_t matrices = 1;
  for (const BatchDim &dim : llvm::reverse(shape.batch)) {
    bool outermost = &dim == shape.batch.begin();
    Value *size = number(std::max<int64_t>(1, dim.size));
    if (dim.*has) {
      Value *position = outermost ? batch : builder.CreateURem(batch, size);
      index = builder.CreateAdd(index, builder.CreateMul(position, number(matrices)));
      matrices *= dim.size;
    }
    if (!outermost)
      batch = builder.CreateUDiv(batch, size);
  }
  return index;
}

void MatMulEmitter::emitBatch(Block block) {
  int64_t width = int64_t(lanes) * vectors, whole = shape.n / width * width;
  loops.loop(number(0), number(whole), width, {}, [&](Value *column, const Values &) -> Values {
    Block part = block;
    part.column = column;
    part.columns = width;
    emitColumns(part);
    return {};
  });
  if (whole == shape.n)
    return;
  block.column = number(whole);
  block.columns = shape.n - whole;
  emitColumns(block);
}

void MatMulEmitter::emitColumns(Block block) {
  block.depth = number(0);
  block.depthCount = std::min(shape.k, blockDepth);
  emitDepth(block);
  block.isFirst = false;
  int64_t whole = shape.k / blockDepth * blockDepth;
  loops.loop(number(blockDepth), number(whole), blockDepth, {}, [&](Value *depth, const Values &) -> Values {
    Block part = block;
    part.depth = depth;
    part.depthCount = blockDepth;
    emitDepth(part);
    return {};
  });
  if (shape.k > blockDepth && whole < shape.k) {
    block.depth = number(whole);
    block.depthCount = shape.k - whole;
    emitDepth(block);
  }
}

void MatMulEmitter::emitDepth(const Block &block) {
  if (shape.transposeRight)
    packTransposed(block);
  else
    pack(block);
  Value *count = builder.CreateSub(block.high, block.low);
  Value *groups = builder.CreateMul(builder.CreateSDiv(count, number(rowsPerStep)), number(rowsPerStep));
  Value *middle = builder.CreateAdd(block.low, groups);
  auto rows = [&](int64_t number) {
    return [this, &block, number](Value *row, const Values &) -> Values {
      emitRows(block, row, number);
      return {};
    };
  };
  loops.loop(block.low, middle, rowsPerStep, {}, rows(rowsPerStep));
  loops.loop(middle, block.high, 1, {}, rows(1));
}

LaneMask MatMulEmitter::mask(const Block &block, unsigned group) const {
  int64_t left = block.columns - int64_t(group) * lanes;
  return left < int64_t(lanes) ? LaneMask{int(left)} : LaneMask();
}

Value *MatMulEmitter::element(Value *base, Value *row, int64_t stride, Value *column) {
  return memory.advance(shape.element, base, builder.CreateAdd(builder.CreateMul(row, number(stride)), column));
}

void MatMulEmitter::pack(const Block &block) {
  loops.loop(number(0), number(block.depthCount), 1, {}, [&](Value *inside, const Values &) -> Values {
    Value *from = element(block.right, builder.CreateAdd(block.depth, inside), shape.n, block.column);
    Value *to = memory.advance(shape.element, panel, builder.CreateMul(inside, number(int64_t(lanes) * vectors)));
    for (unsigned group = 0; group < groups(block); ++group) {
      Value *line = memory.load(shape.element, memory.advance(shape.element, from, int64_t(group) * lanes), 1, mask(block, group));
      memory.store(shape.element, line, memory.advance(shape.element, to, int64_t(group) * lanes), 1, {});
    }
    return {};
  });
}

// Right matrix stored [n, k]: square tiles through the registers.
void MatMulEmitter::packTransposed(const Block &block) {
  int64_t whole = block.depthCount / lanes * lanes;
  auto *vector = llvm::FixedVectorType::get(memoryType(shape.element, builder.getContext()), lanes);
  auto tile = [&](Value *inside, int64_t depth) {
    LaneMask depthMask = depth < int64_t(lanes) ? LaneMask{int(depth)} : LaneMask();
    for (unsigned group = 0; group < groups(block); ++group) {
      Values lines(lanes, llvm::Constant::getNullValue(vector));
      LaneMask valid = mask(block, group);
      for (int i = 0; i < (valid.isFull() ? int(lanes) : valid.valid); ++i) {
        Value *row = builder.CreateAdd(block.column, number(int64_t(group) * lanes + i));
        Value *from = element(block.right, row, shape.k, builder.CreateAdd(block.depth, inside));
        lines[i] = memory.load(shape.element, from, 1, depthMask);
      }
      lines = memory.transpose(lines);
      Value *to = memory.advance(shape.element, panel, builder.CreateMul(inside, number(int64_t(lanes) * vectors)));
      for (int64_t i = 0; i < depth; ++i)
        memory.store(shape.element, lines[i],
                     memory.advance(shape.element, to, (i * vectors + group) * int64_t(lanes)), 1, {});
    }
  };
  loops.loop(number(0), number(whole), lanes, {}, [&](Value *inside, const Values &) -> Values {
    tile(inside, lanes);
    return {};
  });
  if (whole < block.depthCount)
    tile(number(whole), block.depthCount - whole);
}

Value *MatMulEmitter::multiplyAdd(Value *a, Value *b, Value *sum) {
  if (a->getType()->isFPOrFPVectorTy())
    return builder.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, sum});
  return builder.CreateAdd(builder.CreateMul(a, b), sum);
}

void MatMulEmitter::emitRows(const Block &block, Value *row, int64_t rows) {
  unsigned width = groups(block);
  auto place = [&](int64_t i, unsigned group) {
    Value *base = element(block.result, builder.CreateAdd(row, number(i)), shape.n, block.column);
    return memory.advance(shape.element, base, int64_t(group) * lanes);
  };
  auto *vector = llvm::FixedVectorType::get(memoryType(shape.element, builder.getContext()), lanes);
  Values sums;
  for (int64_t i = 0; i < rows; ++i)
    for (unsigned group = 0; group < width; ++group)
      sums.push_back(block.isFirst ? llvm::Constant::getNullValue(vector)
                                   : memory.load(shape.element, place(i, group), 1, mask(block, group)));
  sums = loops.loop(number(0), number(block.depthCount), 1, sums, [&](Value *inside, const Values &carried) {
    Value *line = memory.advance(shape.element, panel, builder.CreateMul(inside, number(int64_t(lanes) * vectors)));
    Values right, next;
    for (unsigned group = 0; group < width; ++group)
      right.push_back(memory.load(shape.element, memory.advance(shape.element, line, int64_t(group) * lanes), 1, {}));
    Value *depth = builder.CreateAdd(block.depth, inside);
    for (int64_t i = 0; i < rows; ++i) {
      Value *position = builder.CreateAdd(row, number(i));
      Value *from = shape.transposeLeft ? element(block.left, depth, shape.m, position)
                                        : element(block.left, position, shape.k, depth);
      Value *left = memory.load(shape.element, from, 0, {});
      for (unsigned group = 0; group < width; ++group)
        next.push_back(multiplyAdd(left, right[group], carried[i * width + group]));
    }
    return next;
  });
  for (int64_t i = 0; i < rows; ++i)
    for (unsigned group = 0; group < width; ++group)
      memory.store(shape.element, sums[i * width + group], place(i, group), 1, mask(block, group));
}

} // namespace msc::codegen
