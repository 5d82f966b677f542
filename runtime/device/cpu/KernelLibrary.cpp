#include "runtime/device/cpu/KernelLibrary.h"

#include "runtime/plan/ElfImage.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace msc::device {
namespace {

bool writeAll(int file, const std::string &bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t written = ::write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno != EINTR)
      return false;
    done += written < 0 ? 0 : static_cast<size_t>(written);
  }
  return true;
}

/// dlopen of a memory file that can no longer change. Leaves `file` open on success.
void *openSealed(const std::string &code, int &file) {
  file = ::memfd_create("msc-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0)
    return nullptr;
  void *handle = nullptr;
  if (writeAll(file, code) &&
      ::fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    handle = ::dlopen(fmt::format("/proc/self/fd/{}", file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    ::close(file);
    file = -1;
  }
  return handle;
}

/// The same through a file in a folder of our own, where memory files cannot be executed. Gone when this returns.
void *openPrivateFile(const std::string &code, std::string &why) {
  const char *base = std::getenv("TMPDIR");
  std::string folder = fmt::format("{}/msc-XXXXXX", base && *base ? base : "/tmp");
  if (!::mkdtemp(folder.data())) {
    why = fmt::format("cannot create a folder '{}': {}", folder, std::strerror(errno));
    return nullptr;
  }
  std::string path = folder + "/kernels.so";
  void *handle = nullptr;
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500);
  bool written = file >= 0 && writeAll(file, code);
  if (!written)
    why = fmt::format("cannot write '{}': {}", path, std::strerror(errno));
  if (file >= 0)
    ::close(file);
  if (written && !(handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)))
    why = ::dlerror();
  ::unlink(path.c_str());
  ::rmdir(folder.c_str());
  return handle;
}

const plan::CodeObject *objectFor(const plan::Plan &plan, CpuLevel level) {
  const plan::CodeObject *best = nullptr;
  for (const plan::CodeObject &object : plan.objects()) {
    if (object.isa() == "x86-64-v4" && level == CpuLevel::V4)
      return &object;
    if (object.isa() == "x86-64-v3")
      best = &object;
  }
  return best;
}

} // namespace

CpuLevel cpuLevel() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4"))
    return CpuLevel::V4;
  return __builtin_cpu_supports("x86-64-v3") ? CpuLevel::V3 : CpuLevel::TooOld;
}

KernelLibrary::~KernelLibrary() {
  if (handle)
    ::dlclose(handle);
  if (file >= 0)
    ::close(file);
}

Result<std::shared_ptr<KernelLibrary>> KernelLibrary::load(const plan::Plan &plan, CpuLevel level) {
  std::shared_ptr<KernelLibrary> library(new KernelLibrary);
  if (level == CpuLevel::TooOld)
    return Error{ExitCode::NoResource, "this CPU is older than x86-64-v3 (AVX2 and FMA)",
                 "use a machine with a CPU of 2015 or later"};
  if (plan.kernels().empty())
    return library;
  const plan::CodeObject *object = objectFor(plan, level);
  if (!object) {
    std::string isas;
    for (const plan::CodeObject &other : plan.objects())
      isas += (isas.empty() ? "" : ", ") + other.isa();
    return Error{ExitCode::BadFile,
                 fmt::format("the plan has machine code for {}, this CPU needs x86-64-v3{}",
                             isas.empty() ? "no CPU" : isas, level == CpuLevel::V4 ? " or x86-64-v4" : ""),
                 "compile the network again with --device-target auto"};
  }
  if (Result<ElfImage> image = readKernelObject(object->code()); !image)
    return Error{ExitCode::BadFile,
                 fmt::format("the plan's machine code for {} is refused: {}", object->isa(), image.error().message), ""};
  std::string why;
  library->chosen = object->isa();
  library->handle = openSealed(object->code(), library->file);
  if (!library->handle)
    library->handle = openPrivateFile(object->code(), why);
  if (!library->handle)
    return Error{ExitCode::NoResource, fmt::format("cannot load the plan's machine code for {}: {}", object->isa(), why),
                 "allow executable files in the folder that TMPDIR names"};
  return library;
}

void *KernelLibrary::find(const std::string &symbol) const {
  return handle ? ::dlsym(handle, symbol.c_str()) : nullptr;
}

} // namespace msc::device
