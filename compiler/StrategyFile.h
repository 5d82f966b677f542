// Strategies kept beside a network: written by one compilation, read by another. MindSpore's strategy files.
#pragma once

#include "dialects/net/ShardingRule.h"
#include "runtime/Status.h"
#include "runtime/plan/plan.pb.h"

#include <map>
#include <string>

namespace msc::compiler {

/// A strategy of a file.
struct KeptStrategy {
  net::Strategy in;
  net::Strategy out; ///< empty: as the rule says
};

/// By the instance name of the operator.
using KeptStrategies = std::map<std::string, KeptStrategy>;

struct StrategyFile {
  KeptStrategies strategies;
  int64_t devices = 0; ///< for which they were saved; 0: the file does not say
};

/// A name for messages under which such a file does not take the place of the one that is read.
std::string newFileLike(const std::string &path);

/// JSON if the file's name ends in .json, else protobuf (compiler/strategies.proto).
Result<StrategyFile> readStrategies(const std::string &path);

/// What `path` has to hold so that the strategies of all operators of a plan are read from it; and how its parameters lie. An error
/// if operators with one name have different strategies.
Result<std::string> strategiesText(const std::string &path, const plan::Plan &plan);

} // namespace msc::compiler
