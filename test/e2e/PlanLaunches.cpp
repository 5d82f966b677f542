#include "test/e2e/PlanLaunches.h"

#include <istream>
#include <iterator>
#include <ostream>

namespace msc::e2e {
using test::Access;

std::vector<Access> PlanLaunches::accesses(const test::KernelCall &call, uint64_t arena) const {
  const bool hasScratch = kernels.at(call.entry).hasScratch;
  const size_t buffers = call.arguments.size() - (hasScratch ? 2 : 1);
  std::vector<uint64_t> offsets;
  for (size_t i = 0; i < buffers; ++i)
    offsets.push_back(call.arguments[i] - arena);
  auto known = launches.find({call.entry, offsets});
  if (known == launches.end()) // no step launches this: bytes that nobody may touch
    return {{1, 2, true}};
  std::vector<Access> result = known->second;
  for (Access &access : result)
    access.begin += arena, access.end += arena;
  if (hasScratch)
    result.push_back({call.arguments[buffers], call.arguments[buffers] + 8, true});
  return result;
}

// Kernels, launches, then the PTX.
void PlanLaunches::write(std::ostream &stream) const {
  stream << kernels.size() << '\n';
  for (const auto &[entry, kernel] : kernels)
    stream << entry << ' ' << kernel.arguments << ' ' << kernel.hasScratch << '\n';
  stream << launches.size() << '\n';
  for (const auto &[launch, list] : launches) {
    stream << launch.first << ' ' << launch.second.size();
    for (size_t i = 0; i < list.size(); ++i)
      stream << ' ' << launch.second[i] << ' ' << list[i].end << ' ' << list[i].writes;
    stream << '\n';
  }
  stream << ptx;
}

PlanLaunches PlanLaunches::read(std::istream &stream) {
  PlanLaunches result;
  size_t count = 0;
  stream >> count;
  for (size_t i = 0; i < count; ++i) {
    std::string entry;
    Kernel kernel;
    stream >> entry >> kernel.arguments >> kernel.hasScratch;
    result.kernels[entry] = kernel;
  }
  stream >> count;
  for (size_t i = 0; i < count; ++i) {
    Launch launch;
    size_t arguments = 0;
    stream >> launch.first >> arguments;
    std::vector<Access> list(arguments);
    for (Access &access : list) {
      stream >> access.begin >> access.end >> access.writes;
      launch.second.push_back(access.begin);
    }
    result.launches[launch] = list;
  }
  stream.ignore(); // the end of the line
  result.ptx.assign(std::istreambuf_iterator<char>(stream), {});
  return result;
}

} // namespace msc::e2e
