// The machines that have a name. `presets/` holds one file for each kind of node.
#pragma once

#include "runtime/machine/MachineModel.h"

#include <optional>

namespace msc {

/// A preset that was asked for: the text of its file, and how much of that machine is meant.
struct PresetChoice {
  std::string text;
  std::string name;    ///< under which it was asked for
  int64_t devices = 0; ///< 0: any number
  bool isOneNode = false;
};

/// cpu-local; dgx-a100 and dgx-h100: any number of nodes; a100xN, h100xN, h200xN: N devices of one node; a100-N, h100-N,
/// h200-N: N devices in whole nodes.
std::optional<PresetChoice> findPreset(const std::string &name);

/// Names what is left of the machine that the file describes.
void narrowTo(const PresetChoice &preset, MachineModel &machine);

/// The next larger machine that there is, of "h100-12", "h100x12" (both "h100-16") and "h100x6" ("h100x8"); else nothing.
std::string presetNear(const std::string &name);

/// The preset of the same kind of nodes that has so many devices, in whole nodes; nothing where `name` is no preset, or any number will
/// do.
std::optional<std::string> presetOfDevices(const std::string &name, int64_t devices);

/// How presets are listed in a sentence.
std::string presetWords();

} // namespace msc
