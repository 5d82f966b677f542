#include "runtime/plan/PlanFile.h"
#include "runtime/LinkTarget.h"
#include "runtime/MissingFile.h"
#include "runtime/WriteRepair.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <new>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace msc::plan {
namespace {

constexpr std::string_view magic = "msc-plan";
constexpr size_t formatBytes = 4;
constexpr size_t digestBytes = 32;
constexpr size_t overheadBytes = magic.size() + formatBytes + digestBytes;
// protobuf decodes at most 2 GiB.
constexpr uint64_t largestFile = (uint64_t{1} << 31) - 1;

std::string sha256(std::string_view bytes) {
  std::string digest(digestBytes, '\0');
  unsigned length = 0;
  // Of a digest that is built in nothing but its memory can be missing.
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char *>(digest.data()), &length, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
  return digest;
}

Error damaged(const std::string &name, const std::string &why) {
  return {ExitCode::BadFile, fmt::format("{} is damaged: {}", name, why), "compile the network again"};
}

Error cannotWrite(const std::string &path, int number) {
  return {ExitCode::NoResource, fmt::format("cannot write '{}': {}", path, std::strerror(number)), writeRepair(number)};
}

/// Closes a file descriptor at the end of a scope.
struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0)
      ::close(number);
  }
};

Status writeAll(int file, std::string_view bytes, const std::string &path) {
  while (!bytes.empty()) {
    ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return cannotWrite(path, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

/// Makes a rename durable.
void syncFolderOf(const std::string &path) {
  size_t slash = path.find_last_of('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  Descriptor directory{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (directory.number >= 0)
    ::fsync(directory.number);
}

} // namespace

uint32_t formatOf(const Plan &plan) {
  uint32_t format = oldestPlanFormat;
  for (const Program &program : plan.programs())
    for (const Variant &variant : program.variants())
      for (const Step &step : variant.steps())
        if (step.collective().has_regions() || step.copy().has_regions() || step.has_call())
          return 3;
        else if (step.collective().also_size() != 0)
          format = 2;
  return format;
}

std::string encodePlan(const Plan &plan, uint32_t format) {
  std::string bytes(magic);
  for (size_t i = 0; i < formatBytes; ++i)
    bytes.push_back(static_cast<char>(format >> (8 * i) & 0xff));
  {
    google::protobuf::io::StringOutputStream text(&bytes);
    google::protobuf::io::CodedOutputStream coded(&text);
    coded.SetSerializationDeterministic(true);
    plan.SerializeToCodedStream(&coded);
  }
  bytes += sha256(bytes);
  return bytes;
}

std::string checksumOf(const Plan &plan) {
  std::string bytes = encodePlan(plan);
  return bytes.substr(bytes.size() - digestBytes);
}

Result<Plan> decodePlan(std::string_view bytes, const std::string &name) {
  if (bytes.substr(0, magic.size()) != magic.substr(0, bytes.size()) || bytes.empty())
    return Error{ExitCode::BadFile, fmt::format("{} is not a plan", name),
                 "plans are written by 'msc compile net.mir'"};
  if (bytes.size() < overheadBytes)
    return damaged(name, fmt::format("it ends after {} bytes", bytes.size()));
  std::string_view content = bytes.substr(0, bytes.size() - digestBytes);
  if (sha256(content) != bytes.substr(content.size()))
    return damaged(name, fmt::format("the checksum of its {} bytes differs from the one at its end", bytes.size()));
  uint32_t format = 0;
  for (size_t i = 0; i < formatBytes; ++i)
    format |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[magic.size() + i])) << (8 * i);
  if (format < oldestPlanFormat || format > planFormat)
    return Error{ExitCode::BadFile,
                 fmt::format("{} has format {}, this msrun reads formats {}-{}", name, format, oldestPlanFormat,
                             planFormat),
                 "compile the network again with the msc of this installation"};
  content.remove_prefix(magic.size() + formatBytes);
  Plan plan;
  google::protobuf::LogSilencer ourErrorsOnly;
  google::protobuf::LogSilencer silencer; // what is wrong is said below, and names the file
  if (!plan.ParseFromArray(content.data(), static_cast<int>(content.size())))
    return damaged(name, "its content cannot be decoded");
  return plan;
}

Status writePlan(const std::string &name, const Plan &plan) {
  std::string bytes = encodePlan(plan);
  if (bytes.size() > largestFile)
    return Error{ExitCode::NoResource, fmt::format("the plan takes {} bytes, more than {}", bytes.size(), largestFile),
                 ""};
  // Devices and pipes are written to, not replaced.
  struct stat info {};
  if (::stat(name.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    Descriptor file{::open(name.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.number < 0 || ::fcntl(file.number, F_SETFL, O_WRONLY) != 0) // from here on a reader may be slow
      return cannotWrite(name, errno);
    return writeAll(file.number, bytes, name);
  }
  const std::string path = linkTarget(name);
  std::string temporary = fmt::format("{}.tmp{}", path, ::getpid());
  Status status;
  {
    Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
    if (file.number < 0)
      return cannotWrite(path, errno);
    status = writeAll(file.number, bytes, path);
    if (status && ::fsync(file.number) != 0)
      status = cannotWrite(path, errno);
  }
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = cannotWrite(path, errno);
  if (!status) {
    ::unlink(temporary.c_str());
    return status;
  }
  syncFolderOf(path);
  return {};
}

Result<Plan> readPlan(const std::string &path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info {};
  if (file.number < 0 && errno == ENOENT)
    return missingFile(path);
  if (file.number < 0 || ::fstat(file.number, &info) != 0)
    return Error{ExitCode::Usage, fmt::format("cannot open '{}': {}", path, std::strerror(errno)), fmt::format("'ls -l {}' shows who may read it", path)};
  if (!S_ISREG(info.st_mode))
    return Error{ExitCode::Usage, fmt::format("'{}' is not a file", path), "name a file"};
  if (static_cast<uint64_t>(info.st_size) > largestFile)
    return Error{ExitCode::BadFile, fmt::format("{} is not a plan: it takes {} bytes", path, info.st_size), ""};
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    ssize_t got = ::read(file.number, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Error{ExitCode::BadFile, fmt::format("cannot read '{}': {}", path, std::strerror(errno)), ""};
    if (got == 0)
      break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return decodePlan(bytes, path);
}

} // namespace msc::plan
