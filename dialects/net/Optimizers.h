// The optimizers of the train block: their arguments with MindSpore's names, ranges and defaults.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace msc::net {

/// An argument besides the learning rate.
struct OptimizerArgument {
  /// Of a number: from 0 up; from 0 to below 1; above 0. Of a flag: true or false.
  enum class Range { NotNegative, Share, Positive, Flag };
  llvm::StringRef name;
  std::optional<double> otherwise; ///< the default; absent: it has to be given
  Range range = Range::NotNegative;
  llvm::StringRef synonym = {};    ///< another name for the same
};

struct OptimizerForm {
  llvm::StringRef name;
  std::optional<double> learningRate; ///< the default; absent: it has to be given
  llvm::ArrayRef<OptimizerArgument> arguments;
  unsigned positional; ///< so many arguments behind the learning rate may stand without a name
  int64_t states;      ///< tensors like the parameter that are kept for each, as far as they do not depend on arguments
};

/// Every optimizer, in the order in which messages name them.
llvm::ArrayRef<OptimizerForm> optimizerForms();
/// Null if there is none of that name.
const OptimizerForm *findOptimizer(llvm::StringRef name);

} // namespace msc::net
