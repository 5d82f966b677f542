// Folders that appear, change and go away as a whole.
#pragma once

#include "runtime/Status.h"

namespace msc {

/// "<parent>/.<name>.tmp" for "<parent>/<name>": where a folder is written before it gets its name.
std::string temporaryName(const std::string &folder);

/// An empty folder at `path` with all its parents; what was there before, from a run that died, is removed.
Status makeEmptyFolder(const std::string &path);

/// Gives the folder `from` the name `to` and brings that to the disk. A folder that is there already is exchanged with the
/// new one in one step and then removed.
Status renameFolder(const std::string &from, const std::string &to);

/// Removes a checkpoint's folder: the index first, so that half a folder is never taken for a whole one.
Status removeCheckpointFolder(const std::string &path);

} // namespace msc
