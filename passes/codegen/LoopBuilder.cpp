#include "passes/codegen/LoopBuilder.h"

#include "llvm/ADT/STLExtras.h"

namespace msc::codegen {

Values LoopBuilder::loop(llvm::Value *low, llvm::Value *high, int64_t step, const Values &initial, Body body) {
  auto *first = llvm::dyn_cast<llvm::ConstantInt>(low), *last = llvm::dyn_cast<llvm::ConstantInt>(high);
  bool isConstant = first && last;
  if (isConstant && first->getSExtValue() >= last->getSExtValue())
    return initial;
  if (isConstant && first->getSExtValue() + step >= last->getSExtValue())
    return body(low, initial);
  return loop(low, high, llvm::ConstantInt::get(low->getType(), step), initial, body);
}

Values LoopBuilder::loop(llvm::Value *low, llvm::Value *high, llvm::Value *step, const Values &initial, Body body) {
  bool isConstant = llvm::isa<llvm::ConstantInt>(low) && llvm::isa<llvm::ConstantInt>(high); // and not empty
  llvm::Function *function = builder.GetInsertBlock()->getParent();
  llvm::LLVMContext &context = builder.getContext();
  llvm::BasicBlock *before = builder.GetInsertBlock();
  llvm::BasicBlock *inside = llvm::BasicBlock::Create(context, "loop", function);
  llvm::BasicBlock *after = llvm::BasicBlock::Create(context, "done", function);
  if (isConstant)
    builder.CreateBr(inside);
  else
    builder.CreateCondBr(builder.CreateICmpSLT(low, high), inside, after);

  builder.SetInsertPoint(inside);
  llvm::PHINode *counter = builder.CreatePHI(low->getType(), 2);
  counter->addIncoming(low, before);
  Values carried;
  for (llvm::Value *value : initial) {
    llvm::PHINode *phi = builder.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before);
    carried.push_back(phi);
  }
  Values next = body(counter, carried);
  llvm::Value *following = builder.CreateNSWAdd(counter, step);
  llvm::BasicBlock *end = builder.GetInsertBlock();
  counter->addIncoming(following, end);
  for (auto [phi, value] : llvm::zip(carried, next))
    llvm::cast<llvm::PHINode>(phi)->addIncoming(value, end);
  builder.CreateCondBr(builder.CreateICmpSLT(following, high), inside, after);

  builder.SetInsertPoint(after);
  if (isConstant)
    return next;
  Values results;
  for (auto [start, value] : llvm::zip(initial, next)) {
    llvm::PHINode *phi = builder.CreatePHI(value->getType(), 2);
    phi->addIncoming(start, before);
    phi->addIncoming(value, end);
    results.push_back(phi);
  }
  return results;
}

} // namespace msc::codegen
