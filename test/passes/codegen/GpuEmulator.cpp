#include "GpuEmulator.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>

namespace msc::test {
namespace {

/// Leaves one stack, with all registers that a call preserves on it, and goes on where another was left (System V ABI of x86-64).
/// swapcontext of libc does the same with a system call for the signals each time: half of a run.
extern "C" void mscTestSwitchStack(void **left, void *entered);
asm(R"(
  .pushsection .text
  .type mscTestSwitchStack, @function
mscTestSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size mscTestSwitchStack, . - mscTestSwitchStack
  .popsection
)");

/// A thread of the emulated block.
struct Fiber {
  enum Status { Ready, AtBarrier, AtExchange, Done };
  void *top = nullptr; ///< of its stack, where it was left
  std::unique_ptr<char[]> stack;
  Status status = Done;
  unsigned site = 0;    ///< which barrier or shuffle of the code it waits at
  uint32_t value = 0, mask = 0;
};

constexpr size_t stackBytes = 128 * 1024;

/// One block at a time. The emulated functions find it here: kernels take no further argument.
struct Machine {
  std::vector<Fiber> fibers;
  void *scheduler = nullptr; ///< top of the stack that fibers are entered from
  unsigned threads = 0, current = 0, block = 0, blocks = 0;
  void (*kernel)(void *) = nullptr;
  void *arguments = nullptr;

  void wait(Fiber::Status status, unsigned site) {
    fibers[current].status = status;
    fibers[current].site = site;
    mscTestSwitchStack(&fibers[current].top, scheduler);
  }
};
Machine machine;

uint32_t threadOf() { return machine.current; }
uint32_t blockOf() { return machine.block; }
uint32_t blocksOf() { return machine.blocks; }
void barrierAt(uint32_t site) { machine.wait(Fiber::AtBarrier, site); }
uint32_t exchangeAt(uint32_t site, uint32_t value, uint32_t mask) {
  Fiber &fiber = machine.fibers[machine.current];
  fiber.value = value;
  fiber.mask = mask;
  machine.wait(Fiber::AtExchange, site);
  return fiber.value;
}

void runFiber() {
  machine.kernel(machine.arguments);
  machine.fibers[machine.current].status = Fiber::Done;
  mscTestSwitchStack(&machine.fibers[machine.current].top, machine.scheduler);
}

/// Lets a warp that has wholly arrived at one shuffle go on. A warp of which a thread is elsewhere is an error.
std::string exchangeInWarp(unsigned first, bool &moved) {
  unsigned waiting = 0, arrived = 0;
  std::array<uint32_t, 32> values{};
  for (unsigned lane = 0; lane < 32; ++lane) {
    const Fiber &fiber = machine.fibers[first + lane];
    waiting += fiber.status == Fiber::AtExchange;
    arrived += fiber.status == Fiber::AtExchange && fiber.site == machine.fibers[first].site;
    values[lane] = fiber.value;
  }
  moved = waiting != 0;
  if (moved && arrived != 32)
    return fmt::format("{} of 32 threads of a warp arrive at a shuffle", waiting);
  for (unsigned lane = 0; moved && lane < 32; ++lane) {
    Fiber &fiber = machine.fibers[first + lane];
    fiber.value = values[lane ^ fiber.mask];
    fiber.status = Fiber::Ready;
  }
  return "";
}

/// Runs a warp up to the next barrier or its end.
std::string runWarp(unsigned first, GpuEmulator::Order order) {
  for (bool moved = true; moved;) {
    for (unsigned k = 0; k < 32; ++k) {
      machine.current = first + (order == GpuEmulator::Order::Forward ? k : 31 - k);
      if (machine.fibers[machine.current].status == Fiber::Ready)
        mscTestSwitchStack(&machine.scheduler, machine.fibers[machine.current].top);
    }
    if (std::string error = exchangeInWarp(first, moved); !error.empty())
      return error;
  }
  return "";
}

std::string releaseBarrier() {
  unsigned arrived = 0;
  for (unsigned i = 0; i < machine.threads; ++i)
    arrived += machine.fibers[i].status == Fiber::AtBarrier && machine.fibers[i].site == machine.fibers[0].site;
  if (arrived != machine.threads)
    return fmt::format("{} of {} threads arrive at a barrier", arrived, machine.threads);
  for (unsigned i = 0; i < machine.threads; ++i)
    machine.fibers[i].status = Fiber::Ready;
  return "";
}

std::string runBlock(GpuEmulator::Order order) {
  for (unsigned i = 0; i < machine.threads; ++i) {
    Fiber &fiber = machine.fibers[i];
    if (!fiber.stack)
      fiber.stack = std::make_unique<char[]>(stackBytes);
    // Six registers, the function that is returned into, and the address that it would return to, with a stack aligned as for a call.
    auto *end = reinterpret_cast<void **>(reinterpret_cast<uintptr_t>(fiber.stack.get() + stackBytes) & ~uintptr_t(15));
    fiber.top = std::fill_n(end - 8, 6, nullptr) - 6;
    end[-2] = reinterpret_cast<void *>(runFiber);
    end[-1] = nullptr;
    fiber.status = Fiber::Ready;
  }
  // Each warp goes as far as it can before another one moves: a warp may be that much faster.
  for (;;) {
    for (unsigned k = 0; k < machine.threads; k += 32)
      if (std::string error = runWarp(order == GpuEmulator::Order::Forward ? k : machine.threads - 32 - k, order); !error.empty())
        return error;
    if (std::all_of(machine.fibers.begin(), machine.fibers.begin() + machine.threads,
                    [](const Fiber &fiber) { return fiber.status == Fiber::Done; }))
      return "";
    if (std::string error = releaseBarrier(); !error.empty())
      return error;
  }
}

/// Shared memory whose size a launch says ("extern") is as much as any GPU has.
void giveSharedMemory(llvm::Module &module) {
  constexpr uint64_t most = 227 << 10;
  for (llvm::GlobalVariable &variable : llvm::make_early_inc_range(module.globals())) {
    if (!variable.isDeclaration() || variable.getAddressSpace() != 3)
      continue;
    auto *type = llvm::ArrayType::get(llvm::Type::getInt8Ty(module.getContext()), most);
    auto *memory = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type),
                                            "shared", nullptr, llvm::GlobalValue::NotThreadLocal, 3);
    memory->setAlignment(llvm::Align(16));
    variable.replaceAllUsesWith(memory);
    variable.eraseFromParent();
  }
}

/// Every kernel declares no more shared memory than any GPU takes.
void checkSharedMemory(const llvm::Module &module) {
  std::map<llvm::StringRef, uint64_t> bytes;
  for (const llvm::GlobalVariable &variable : module.globals())
    if (variable.getAddressSpace() == 3 && !variable.isDeclaration()) {
      std::set<llvm::StringRef> users;
      for (const llvm::User *user : variable.users())
        if (const auto *instruction = llvm::dyn_cast<llvm::Instruction>(user))
          users.insert(instruction->getFunction()->getName());
      for (llvm::StringRef user : users)
        bytes[user] += llvm::alignTo(module.getDataLayout().getTypeAllocSize(variable.getValueType()), 16);
    }
  for (const auto &[kernel, all] : bytes)
    if (all > 48 << 10) {
      fmt::print(stderr, "emulator: {} declares {} bytes of shared memory, more than 48 KiB\n", kernel.str(), all);
      std::abort();
    }
}

/// Replaces what only a GPU has by calls of the functions above, and gives every kernel a wrapper that takes its arguments
/// as an array.
void rewrite(llvm::Module &module) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *word = llvm::Type::getInt32Ty(context), *pointer = llvm::PointerType::get(context, 0);
  llvm::Type *nothing = llvm::Type::getVoidTy(context), *number = llvm::Type::getInt64Ty(context);
  unsigned sites = 0;
  checkSharedMemory(module);
  giveSharedMemory(module);
  std::vector<llvm::Function *> kernels;
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      kernels.push_back(&function);
  for (llvm::Function &function : module) // the processor at hand runs it
    for (const char *attribute : {"target-cpu", "target-features"})
      function.removeFnAttr(attribute);
  for (llvm::Function *function : kernels)
    for (llvm::BasicBlock &block : *function)
      for (llvm::Instruction &instruction : llvm::make_early_inc_range(block)) {
        auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        if (!call || !call->getCalledFunction())
          continue;
        llvm::IRBuilder<> builder(call);
        auto replace = [&](const char *name, llvm::Type *result, std::vector<llvm::Value *> arguments) {
          std::vector<llvm::Type *> types(arguments.size(), word);
          llvm::Value *made = builder.CreateCall(
              module.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false)), arguments);
          if (!call->getType()->isVoidTy())
            call->replaceAllUsesWith(made);
          call->eraseFromParent();
        };
        switch (call->getCalledFunction()->getIntrinsicID()) {
        case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x: replace("emulated_thread", word, {}); break;
        case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x: replace("emulated_block", word, {}); break;
        case llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x: replace("emulated_blocks", word, {}); break;
        case llvm::Intrinsic::nvvm_barrier0: replace("emulated_barrier", nothing, {builder.getInt32(++sites)}); break;
        case llvm::Intrinsic::nvvm_bar_warp_sync: // like a shuffle that brings every lane its own
          replace("emulated_exchange", word, {builder.getInt32(++sites), builder.getInt32(0), builder.getInt32(0)});
          break;
        case llvm::Intrinsic::nvvm_membar_gl: call->eraseFromParent(); break; // blocks run one after the other
        case llvm::Intrinsic::nvvm_shfl_sync_bfly_i32:
          replace("emulated_exchange", word, {builder.getInt32(++sites), call->getArgOperand(1), call->getArgOperand(2)});
          break;
        default: break;
        }
      }
  for (llvm::Function *kernel : kernels) {
    auto *wrapper = llvm::Function::Create(llvm::FunctionType::get(nothing, {pointer}, false), llvm::GlobalValue::ExternalLinkage,
                                           "run_" + kernel->getName(), module);
    llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", wrapper));
    std::vector<llvm::Value *> arguments;
    for (llvm::Argument &argument : kernel->args()) {
      llvm::Value *place = builder.CreateConstGEP1_64(number, wrapper->getArg(0), argument.getArgNo());
      arguments.push_back(builder.CreateLoad(argument.getType(), place));
    }
    builder.CreateCall(kernel, arguments);
    builder.CreateRetVoid();
  }
}

template <typename T> T orDie(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  fmt::print(stderr, "emulator: {}\n", llvm::toString(value.takeError()));
  std::abort();
}

} // namespace

struct GpuEmulator::State {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

GpuEmulator::GpuEmulator(const std::string &ir) : state(std::make_unique<State>()) {
  static const bool initialised = [] { return !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter(); }();
  if (!initialised)
    std::abort();
  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(ir, diagnostic, *context);
  if (!module) {
    fmt::print(stderr, "emulator: {}\n", diagnostic.getMessage().str());
    std::abort();
  }
  state->jit = orDie(llvm::orc::LLJITBuilder().create());
  rewrite(*module);
  module->setTargetTriple(state->jit->getTargetTriple().str());
  module->setDataLayout(state->jit->getDataLayout());
  llvm::orc::SymbolMap symbols;
  auto define = [&](const char *name, auto *function) {
    symbols[state->jit->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported};
  };
  define("emulated_thread", threadOf);
  define("emulated_block", blockOf);
  define("emulated_blocks", blocksOf);
  define("emulated_barrier", barrierAt);
  define("emulated_exchange", exchangeAt);
  llvm::cantFail(state->jit->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))));
  llvm::cantFail(state->jit->addIRModule({std::move(module), std::move(context)}));
}

GpuEmulator::~GpuEmulator() = default;

std::string GpuEmulator::launch(const std::string &entry, unsigned block, unsigned grid, const std::vector<void *> &pointers,
                                int64_t end, Order order) {
  std::vector<void *> arguments = pointers;
  arguments.push_back(reinterpret_cast<void *>(end));
  machine.kernel = orDie(state->jit->lookup("run_" + entry)).toPtr<void (*)(void *)>();
  machine.arguments = arguments.data();
  machine.threads = block;
  machine.blocks = grid;
  machine.fibers.resize(std::max<size_t>(machine.fibers.size(), block));
  for (unsigned k = 0; k < grid; ++k) {
    machine.block = order == Order::Forward ? k : grid - 1 - k;
    if (std::string error = runBlock(order); !error.empty())
      return fmt::format("{}, block {}: {}", entry, machine.block, error);
  }
  return "";
}

} // namespace msc::test
