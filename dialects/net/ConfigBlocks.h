// One reader per block; private to the configuration's own files. Each returns false after reporting what is wrong.
#pragma once

#include "dialects/net/Config.h"
#include "dialects/net/ConfigFields.h"
#include "dialects/net/Network.h"

namespace msc::net {

bool readDataset(Fields &fields, DatasetConfig &dataset);
/// A number or a call of a schedule. `schedule.values` holds the default of a constant.
void readSchedule(Fields &fields, llvm::StringRef key, ScheduleConfig &schedule);
/// The arguments of a call, those without a name under the names of `order`. Reports at `place` where there are too many.
mlir::DictionaryAttr withPositional(const CallValue &call, llvm::ArrayRef<llvm::StringRef> order, mlir::Location place,
                                    Fields &fields);
bool readTrain(Fields &fields, TrainConfig &train);
bool readCheckpoint(Fields &fields, CheckpointConfig &checkpoint);
/// `op` is null if the file has no context block. `config.devices` is known already. The block then holds the overrides.
bool readContext(ConfigOp op, mlir::ModuleOp module, llvm::ArrayRef<ConfigOverride> overrides, Config &config);

} // namespace msc::net
