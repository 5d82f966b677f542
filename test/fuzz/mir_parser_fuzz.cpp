// Any text is either read or refused with a message: no crash, no hang, no unbounded memory. What is read prints, and the
// print reads back.
#include "dialects/dist/DistDialect.h"
#include "dialects/net/Config.h"
#include "dialects/net/NetDialect.h"
#include "frontend/Diagnostics.h"
#include "frontend/Frontend.h"
#include "frontend/Printer.h"

#include "mlir/IR/Verifier.h"

#include <cstdlib>

using namespace msc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mlir::DialectRegistry registry;
  net::registerNetDialect(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<net::NetDialect, dist::DistDialect>();
  llvm::SourceMgr sources;
  std::string said;
  llvm::raw_string_ostream stream(said);
  frontend::Diagnostics diagnostics(context, sources, stream);
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto module = frontend::parseString(text, "net.mir", context, {.devices = 8}, sources);
  if (static_cast<bool>(module) == (diagnostics.errors() > 0))
    std::abort(); // refused without a reason, or read in spite of one
  if (!module)
    return 0;
  if (mlir::failed(mlir::verify(*module)))
    std::abort();
  (void)net::readConfig(*module);
  std::string dump;
  llvm::raw_string_ostream out(dump);
  frontend::printBeginDump(*module, out);
  if (!frontend::parseString(dump, "dump.ir", context, {.devices = 8}, sources))
    std::abort();
  return 0;
}
