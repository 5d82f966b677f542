// What a file is, by its content: so that a wrong file on a command line is called by its name.
#pragma once

#include "runtime/Status.h"

#include <string>

namespace msc::tools {

enum class FileKind { Missing, Unreadable, Empty, Plan, Network, Dump, Array, Tensors, Checkpoint, Folder, Json, Program, Binary, Special, Text };

/// Reads at most the first 64 KiB of a regular file, and nothing of pipes and devices, which are Special.
FileKind fileKindOf(const std::string &path);

/// "x.npy is a NumPy array, not a plan", with the command that reads it. `wanted` says what the command takes: "a plan".
Error wrongKind(const std::string &path, FileKind kind, const std::string &wanted);

} // namespace msc::tools
