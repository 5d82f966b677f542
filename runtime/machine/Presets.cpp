#include "runtime/machine/Presets.h"

#include "runtime/machine/MachineFile.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <map>
#include <string_view>

namespace msc {
namespace {

/// Names and texts of the files in presets/.
const std::map<std::string, const char *, std::less<>> files = {
#include "runtime/machine/Presets.inc"
};

constexpr int64_t devicesPerNode = 8;

/// A number written without sign, blanks or leading zeros.
std::optional<int64_t> numberOf(std::string_view text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || text.front() == '0' || error != std::errc() || end != text.data() + text.size() || number < 1)
    return std::nullopt;
  return number;
}

} // namespace

std::optional<PresetChoice> findPreset(const std::string &name) {
  for (auto [whole, file] : {std::pair("cpu-local", "cpu-local"), std::pair("dgx-a100", "a100"), std::pair("dgx-h100", "h100")})
    if (name == whole)
      return PresetChoice{files.find(file)->second, name};
  for (const char *node : {"a100", "h100", "h200"}) {
    std::string_view rest = name;
    if (!rest.starts_with(node))
      continue;
    rest.remove_prefix(std::string_view(node).size());
    std::optional<int64_t> devices = rest.empty() ? std::nullopt : numberOf(rest.substr(1));
    PresetChoice choice{files.find(node)->second, name, devices.value_or(0)};
    if (devices && rest.front() == 'x' && devicesPerNode % *devices == 0) {
      choice.isOneNode = true;
      return choice;
    }
    if (devices && rest.front() == '-' && *devices % devicesPerNode == 0)
      return choice;
  }
  return std::nullopt;
}

void narrowTo(const PresetChoice &preset, MachineModel &machine) {
  machine.name = preset.name;
  machine.devices = preset.devices;
  if (preset.isOneNode)
    machine.levels.resize(1);
}

std::optional<std::string> presetOfDevices(const std::string &name, int64_t devices) {
  const std::optional<PresetChoice> preset = findPreset(name);
  if (!preset || preset->devices == 0)
    return std::nullopt;
  const int64_t nodes = (devices + devicesPerNode - 1) / devicesPerNode;
  return name.substr(0, name.find_first_of("x-")) + "-" + std::to_string(nodes * devicesPerNode);
}

std::string presetNear(const std::string &name) {
  for (std::string node : {"a100", "h100", "h200"}) {
    if (!name.starts_with(node + "-") && !name.starts_with(node + "x"))
      continue;
    const bool isNode = name[node.size()] == 'x';
    const std::optional<int64_t> devices = numberOf(std::string_view(name).substr(node.size() + 1));
    if (devices && *devices <= std::numeric_limits<int64_t>::max() - devicesPerNode)
      return isNode && *devices <= devicesPerNode ? node + "x8" : *presetOfDevices(node + "-8", *devices);
  }
  return "";
}

std::vector<std::string> machinePresets() {
  return {"cpu-local", "a100x8", "h100x8", "h200x8", "a100-64", "h100-64", "h100-1024", "h200-64", "dgx-a100", "dgx-h100"};
}

std::string presetWords() {
  return "cpu-local, a100x8, h100x8, h200x8, h100-64 (64 devices in nodes of 8; any multiple), dgx-a100, dgx-h100";
}

} // namespace msc
