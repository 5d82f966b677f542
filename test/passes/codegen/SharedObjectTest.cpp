// The linker: what it writes, and what it refuses by name.
#include "ClusterText.h"
#include "KernelTestSupport.h"
#include "passes/codegen/cpu/ObjectModule.h"
#include "passes/codegen/cpu/SharedObject.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/IRBuilder.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <elf.h>

namespace msc::test {
namespace {

/// Compiles a function of the given IR body.
llvm::Expected<std::string> compile(llvm::function_ref<void(llvm::Module &, llvm::IRBuilder<> &)> build) {
  codegen::ObjectModule object("x86-64-v3");
  llvm::Module &module = object.module();
  auto *type = llvm::FunctionType::get(llvm::Type::getInt64Ty(module.getContext()), {llvm::Type::getInt64Ty(module.getContext())}, false);
  auto *function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "probe", module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  build(module, builder);
  return object.compile();
}

TEST(SharedObject, LoadsAndRuns) {
  auto bytes = compile([](llvm::Module &module, llvm::IRBuilder<> &builder) {
    llvm::Value *x = builder.CreateSIToFP(module.getFunction("probe")->getArg(0), builder.getDoubleTy());
    llvm::Value *y = builder.CreateFMul(x, llvm::ConstantFP::get(builder.getDoubleTy(), 2.5)); // a constant in .rodata
    builder.CreateRet(builder.CreateFPToSI(y, builder.getInt64Ty()));
  });
  ASSERT_TRUE(bool(bytes)) << llvm::toString(bytes.takeError());
  LoadedObject loaded(*bytes);
  auto probe = reinterpret_cast<int64_t (*)(int64_t)>(loaded.symbol("probe"));
  ASSERT_NE(probe, nullptr);
  EXPECT_EQ(probe(4), 10);
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void *>(probe), &info), 0);
  EXPECT_STREQ(info.dli_sname, "probe");
}

TEST(SharedObject, NeverMapsMemoryThatIsWritableAndExecutable) {
  auto bytes = compile([](llvm::Module &, llvm::IRBuilder<> &builder) { builder.CreateRet(builder.getInt64(1)); });
  ASSERT_TRUE(bool(bytes));
  auto *header = reinterpret_cast<const Elf64_Ehdr *>(bytes->data());
  EXPECT_EQ(header->e_type, ET_DYN);
  auto *segments = reinterpret_cast<const Elf64_Phdr *>(bytes->data() + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i)
    EXPECT_NE(segments[i].p_flags & (PF_W | PF_X), unsigned(PF_W | PF_X)) << "segment " << i;
}

TEST(SharedObject, NamesAnUndefinedSymbol) {
  auto bytes = compile([](llvm::Module &module, llvm::IRBuilder<> &builder) {
    auto callee = module.getOrInsertFunction("expf_of_some_library", module.getFunction("probe")->getFunctionType());
    builder.CreateRet(builder.CreateCall(callee, {builder.getInt64(1)}));
  });
  ASSERT_FALSE(bool(bytes));
  EXPECT_EQ(llvm::toString(bytes.takeError()), "kernel code refers to undefined symbol 'expf_of_some_library'");
}

TEST(SharedObject, NamesAWritableSection) {
  auto bytes = compile([](llvm::Module &module, llvm::IRBuilder<> &builder) {
    auto *global = new llvm::GlobalVariable(module, builder.getInt64Ty(), false, llvm::GlobalValue::InternalLinkage,
                                            builder.getInt64(7), "state");
    builder.CreateStore(module.getFunction("probe")->getArg(0), global, /*isVolatile=*/true);
    builder.CreateRet(builder.CreateLoad(builder.getInt64Ty(), global, /*isVolatile=*/true));
  });
  ASSERT_FALSE(bool(bytes));
  EXPECT_EQ(llvm::toString(bytes.takeError()), "kernel code has the unexpected section '.data'");
}

TEST(SharedObject, RefusesWhatIsNoObject) {
  auto bytes = codegen::linkSharedObject(llvm::ArrayRef<char>("no elf", 6));
  ASSERT_FALSE(bool(bytes));
  EXPECT_EQ(llvm::toString(bytes.takeError()), "the code generator gave no elf object");
}

} // namespace
} // namespace msc::test
