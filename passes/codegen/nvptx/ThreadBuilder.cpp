#include "passes/codegen/nvptx/ThreadBuilder.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

namespace msc::codegen {

using llvm::Value;

llvm::Function *createGpuKernel(llvm::Module &module, llvm::StringRef symbol, llvm::ArrayRef<bool> readOnly, unsigned block,
                                bool scratch, unsigned minBlocks) {
  llvm::LLVMContext &context = module.getContext();
  llvm::SmallVector<llvm::Type *> types(readOnly.size() + scratch, llvm::PointerType::get(context, globalMemory));
  types.push_back(llvm::Type::getInt64Ty(context));
  auto *function = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
                                          llvm::GlobalValue::ExternalLinkage, symbol, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  for (unsigned i = 0; i < readOnly.size(); ++i) {
    function->addParamAttr(i, llvm::Attribute::NoAlias);
    function->addParamAttr(i, llvm::Attribute::NoCapture);
    if (readOnly[i]) // lets loads go through the read-only path
      function->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  auto annotate = [&](llvm::StringRef name, unsigned value) {
    llvm::Metadata *fields[] = {llvm::ValueAsMetadata::get(function), llvm::MDString::get(context, name),
                                llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value))};
    module.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(context, fields));
  };
  annotate("kernel", 1);
  annotate("reqntidx", block);
  annotate("minctasm", minBlocks); // without it ptxas aims at an occupancy of its own and spills for it
  llvm::BasicBlock::Create(context, "entry", function);
  return function;
}

Value *ThreadBuilder::special(unsigned intrinsic) {
  return builder.CreateZExtOrTrunc(builder.CreateIntrinsic(intrinsic, {}, {}), index);
}

Value *ThreadBuilder::thread() { return special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x); }
Value *ThreadBuilder::block() { return special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x); }
Value *ThreadBuilder::blocks() { return special(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x); }

void ThreadBuilder::barrier() { builder.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }

Value *ThreadBuilder::comesLast(Value *counter, int64_t blocks) {
  auto fence = [&] { builder.CreateIntrinsic(llvm::Intrinsic::nvvm_membar_gl, {}, {}); };
  Value *flag = shared(builder.getInt8Ty(), 1);
  fence();
  barrier();
  when(builder.CreateICmpEQ(thread(), llvm::ConstantInt::get(index, 0)), [&] {
    Value *before = builder.CreateAtomicRMW(llvm::AtomicRMWInst::Add, counter, builder.getInt32(1), llvm::Align(4),
                                            llvm::AtomicOrdering::Monotonic);
    Value *last = builder.CreateICmpEQ(before, builder.getInt32(static_cast<uint32_t>(blocks - 1)));
    builder.CreateStore(builder.CreateZExt(last, builder.getInt8Ty()), flag);
    when(last, [&] { builder.CreateStore(builder.getInt32(0), counter, /*isVolatile=*/true); });
  });
  barrier();
  fence();
  return builder.CreateICmpNE(builder.CreateLoad(builder.getInt8Ty(), flag), builder.getInt8(0));
}

Value *ThreadBuilder::exchange(Value *value, unsigned mask) {
  llvm::Type *type = value->getType();
  llvm::Type *word = builder.getInt32Ty();
  auto move = [&](Value *bits) {
    return builder.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
                                   {builder.getInt32(-1), bits, builder.getInt32(mask), builder.getInt32(31)});
  };
  unsigned width = type->getPrimitiveSizeInBits();
  Value *bits = builder.CreateBitCast(value, builder.getIntNTy(width));
  if (width <= 32)
    bits = builder.CreateTrunc(move(builder.CreateZExt(bits, word)), builder.getIntNTy(width));
  else {
    Value *low = move(builder.CreateTrunc(bits, word)), *high = move(builder.CreateTrunc(builder.CreateLShr(bits, 32), word));
    low = builder.CreateZExt(low, bits->getType());
    bits = builder.CreateOr(low, builder.CreateShl(builder.CreateZExt(high, bits->getType()), 32));
  }
  return builder.CreateBitCast(bits, type);
}

Value *ThreadBuilder::shared(llvm::Type *element, uint64_t count) {
  llvm::Function *function = builder.GetInsertBlock()->getParent();
  auto *type = llvm::ArrayType::get(element, count);
  auto *array = new llvm::GlobalVariable(*function->getParent(), type, false, llvm::GlobalValue::InternalLinkage,
                                         llvm::UndefValue::get(type), function->getName() + "_shared", nullptr,
                                         llvm::GlobalValue::NotThreadLocal, sharedMemory);
  array->setAlignment(llvm::Align(16));
  return array;
}

void ThreadBuilder::when(Value *condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  llvm::Function *function = builder.GetInsertBlock()->getParent();
  auto *inside = llvm::BasicBlock::Create(builder.getContext(), "when", function);
  auto *after = llvm::BasicBlock::Create(builder.getContext(), "after", function);
  builder.CreateCondBr(condition, inside, after);
  builder.SetInsertPoint(inside);
  body();
  builder.CreateBr(after);
  builder.SetInsertPoint(after);
}

Value *ThreadBuilder::both(Value *a, Value *b) { return !a ? b : !b ? a : builder.CreateAnd(a, b); }

} // namespace msc::codegen
