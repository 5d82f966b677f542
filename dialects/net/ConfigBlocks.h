// One reader per block; private to the configuration's own files. Each returns false after reporting what is wrong.
#pragma once

#include "dialects/net/Config.h"
#include "dialects/net/ConfigFields.h"
#include "dialects/net/Network.h"

namespace msc::net {

bool readDataset(Fields &fields, DatasetConfig &dataset);
bool readTrain(Fields &fields, TrainConfig &train);
bool readCheckpoint(Fields &fields, CheckpointConfig &checkpoint);
/// `op` is null if the file has no context block. `config.devices` is known already. The block then holds the overrides.
bool readContext(ConfigOp op, mlir::ModuleOp module, llvm::ArrayRef<ConfigOverride> overrides, Config &config);

} // namespace msc::net
