#include "runtime/comm/nccl/Transport.h"

#include <dlfcn.h>

namespace msc::comm::nccl {

template <typename Function> static bool find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

static Error tooOld(const std::string &what) {
  return {ExitCode::NoResource, what,
          "install NCCL 2.22 or later, or let collectives go through the host with --collectives host"};
}

Result<Table> loadTable(const char *file) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return Error{ExitCode::NoResource, std::string("NCCL is missing: ") + (why ? why : file),
                 "install NCCL 2.22 or later, put its folder into LD_LIBRARY_PATH, or let collectives go through the host with "
                 "--collectives host"};
  }
  Table table;
#define MSC_FIND(name, parameters)                                                                                             \
  if (!find(library, #name, table.name))                                                                                       \
    return tooOld(std::string(file) + " has no function '" #name "': it is too old");
  MSC_NCCL_FUNCTIONS(MSC_FIND)
  MSC_FIND(ncclGetErrorString, )
  MSC_FIND(ncclGetLastError, )
#undef MSC_FIND
  return table;
}

std::string versionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

} // namespace msc::comm::nccl
