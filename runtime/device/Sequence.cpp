#include "runtime/device/Device.h"

namespace msc::device {
namespace {

class InOrder final : public Sequence {
public:
  explicit InOrder(std::vector<SequenceEntry> entries) : entries(std::move(entries)) {}
  Status run(size_t &failed) override {
    for (failed = 0; failed < entries.size(); ++failed)
      if (Status status = entries[failed].operation->run(); !status)
        return status;
    return {};
  }

private:
  std::vector<SequenceEntry> entries;
};

} // namespace

std::unique_ptr<Sequence> runInOrder(std::vector<SequenceEntry> entries) {
  return std::make_unique<InOrder>(std::move(entries));
}

} // namespace msc::device
