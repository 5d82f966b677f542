#include "passes/codegen/nvptx/ProductEmitter.h"

#include "passes/codegen/BodyEmitter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace msc::codegen {

using llvm::Value;

/// One column more than a tile has, so that its columns lie in different banks.
static constexpr int64_t lineOfTile = ProductEmitter::side + 1;

ProductEmitter::ProductEmitter(const MatMulShape &shape, llvm::Module &module, llvm::StringRef symbol)
    : shape(shape), function(createGpuKernel(module, symbol, {true, true, false}, block)), builder(&function->getEntryBlock()),
      memory(builder), loops(builder), threads(builder, builder.getInt64Ty()) {}

llvm::Function *ProductEmitter::emit() {
  Value *end = function->getArg(3), *thread = threads.thread();
  x = builder.CreateURem(thread, number(side));
  y = builder.CreateUDiv(thread, number(side));
  leftTile = threads.shared(memory.memory(shape.element), side * lineOfTile);
  rightTile = threads.shared(memory.memory(shape.element), side * lineOfTile);
  int64_t wide = llvm::divideCeil(shape.n, side);
  Value *rows = shape.batch.empty() ? end : number(shape.m), *columns = number(std::max<int64_t>(1, wide));
  Value *high = builder.CreateUDiv(builder.CreateAdd(rows, number(side - 1)), number(side));
  Value *batches = shape.batch.empty() ? number(1) : builder.CreateUDiv(end, number(std::max<int64_t>(1, shape.m)));
  Value *count = builder.CreateMul(builder.CreateMul(batches, high), number(wide));
  loops.loop(threads.block(), count, threads.blocks(), {}, [&](Value *tile, const Values &) -> Values {
    Value *column = builder.CreateMul(builder.CreateURem(tile, columns), number(side));
    Value *line = builder.CreateUDiv(tile, columns);
    Value *row = builder.CreateMul(builder.CreateURem(line, high), number(side));
    emitTile(shape.batch.empty() ? number(0) : builder.CreateUDiv(line, high), row, rows, column);
    return {};
  });
  builder.CreateRetVoid();
  return function;
}

// Takes the index apart from the innermost dimension outwards.
Value *ProductEmitter::operandBatch(Value *batch, bool BatchDim::*has) {
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

Value *ProductEmitter::place(Value *tile, Value *line, Value *column) {
  return memory.advance(shape.element, tile, builder.CreateAdd(builder.CreateMul(line, number(lineOfTile)), column));
}

void ProductEmitter::fetch(Value *matrix, Value *line, Value *lines, Value *column, Value *columns, Value *stride, Value *tile,
                           bool transpose) {
  Value *i = builder.CreateAdd(line, y), *k = builder.CreateAdd(column, x);
  Value *inside = builder.CreateAnd(builder.CreateICmpULT(i, lines), builder.CreateICmpULT(k, columns));
  Value *target = transpose ? place(tile, x, y) : place(tile, y, x);
  llvm::Type *type = memory.memory(shape.element);
  builder.CreateStore(llvm::Constant::getNullValue(type), target);
  threads.when(inside, [&] {
    Value *offset = builder.CreateAdd(builder.CreateMul(i, stride), k);
    builder.CreateStore(builder.CreateLoad(type, memory.advance(shape.element, matrix, offset)), target);
  });
}

void ProductEmitter::emitTile(Value *batch, Value *row, Value *rows, Value *column) {
  auto matrix = [&](unsigned argument, int64_t elements, Value *which) {
    return memory.advance(shape.element, function->getArg(argument), builder.CreateMul(which, number(elements)));
  };
  Value *left = matrix(0, shape.m * shape.k, operandBatch(batch, &BatchDim::inLeft));
  Value *right = matrix(1, shape.k * shape.n, operandBatch(batch, &BatchDim::inRight));
  Value *result = matrix(2, shape.m * shape.n, batch);
  Value *depth = number(shape.k), *width = number(shape.n);
  bool isFloat = mlir::isa<mlir::FloatType>(shape.element);
  llvm::Type *type = registerType(shape.element, builder.getContext());
  Values sum = loops.loop(number(0), depth, side, {llvm::Constant::getNullValue(type)}, [&](Value *k, const Values &carried) {
    if (shape.transposeLeft)
      fetch(left, k, depth, row, rows, rows, leftTile, true);
    else
      fetch(left, row, rows, k, depth, depth, leftTile, false);
    if (shape.transposeRight)
      fetch(right, column, width, k, depth, depth, rightTile, true);
    else
      fetch(right, k, depth, column, width, width, rightTile, false);
    threads.barrier();
    Value *total = carried[0];
    for (unsigned i = 0; i < side; ++i) {
      Value *a = builder.CreateLoad(type, place(leftTile, y, number(i)));
      Value *b = builder.CreateLoad(type, place(rightTile, number(i), x));
      total = isFloat ? builder.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, total})
                      : builder.CreateAdd(total, builder.CreateMul(a, b));
    }
    threads.barrier(); // before the next step overwrites the tiles
    return Values{total};
  });
  Value *i = builder.CreateAdd(row, y), *k = builder.CreateAdd(column, x);
  threads.when(builder.CreateAnd(builder.CreateICmpULT(i, rows), builder.CreateICmpULT(k, width)), [&] {
    Value *offset = builder.CreateAdd(builder.CreateMul(i, width), k);
    builder.CreateStore(sum[0], memory.advance(shape.element, result, offset));
  });
}

} // namespace msc::codegen
