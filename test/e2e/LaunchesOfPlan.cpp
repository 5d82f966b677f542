#include "runtime/plan/PlanIndex.h"
#include "test/e2e/PlanLaunches.h"

#include <algorithm>

namespace msc::e2e {

PlanLaunches launchesOf(const PlanIndex &index) {
  PlanLaunches result;
  for (const plan::CodeObject &object : index.plan().objects())
    if (object.isa() == "nvptx64")
      result.ptx = object.code();
  for (const plan::Kernel &kernel : index.plan().kernels())
    for (const plan::Kernel::Variant &variant : kernel.variants()) {
      const bool hasScratch = variant.gpu().unit_scratch() != 0;
      result.kernels[variant.gpu().entry()] = {kernel.arguments() + (hasScratch ? 2u : 1u), hasScratch};
    }
  for (const plan::Program &program : index.plan().programs())
    for (const plan::Variant &variant : program.variants())
      for (const plan::Step &step : variant.steps()) {
        if (!step.has_launch())
          continue;
        std::vector<uint64_t> offsets;
        std::vector<test::Access> list;
        for (uint32_t buffer : step.launch().arguments()) {
          const plan::Buffer &record = index.buffer(buffer);
          const bool writes = std::find(step.writes().begin(), step.writes().end(), buffer) != step.writes().end();
          offsets.push_back(record.offset());
          list.push_back({record.offset(), record.offset() + record.bytes(), writes});
        }
        for (const plan::Kernel::Variant &kernel : index.plan().kernels(static_cast<int>(step.launch().kernel())).variants())
          result.launches[{kernel.gpu().entry(), offsets}] = list;
      }
  return result;
}

} // namespace msc::e2e
