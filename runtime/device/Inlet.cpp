#include "runtime/device/Device.h"

namespace msc::device {
namespace {

/// For devices on which nothing else runs meanwhile.
class PlainInlet final : public Inlet {
public:
  PlainInlet(Device &device, size_t bytes) : device(device), memory(bytes) {}
  Result<std::byte *> host() override { return memory.data(); }
  Status send() override { return {}; }
  Status place(std::byte *target) override { return device.upload(target, memory.data(), memory.size()); }

private:
  Device &device;
  std::vector<std::byte> memory;
};

} // namespace

Result<std::unique_ptr<Inlet>> Device::openInlet(size_t bytes) {
  return std::unique_ptr<Inlet>(new PlainInlet(*this, bytes));
}

} // namespace msc::device
