// What the choice of strategies decides beside them. Written by msc-assign-strategies, read by msc-partition.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/net/Network.h"
#include "passes/sharding/SearchFacts.h"

#include <optional>

namespace msc::passes {

/// Name of the attribute of a partitioned network with what is to be told of the forward operators in whose place others
/// stand, in their order: dictionaries of name, op, scope, location, in_strategy, out_strategy, origin (texts),
/// operand_types, operand_names, result_types, result_names. Absent if there are none.
inline constexpr llvm::StringLiteral expansionsAttributeName = "net.expansions";

/// Number of devices that the network is split over; 1 if nothing was decided.
int64_t getDevices(net::NetworkOp network);
void setDevices(net::NetworkOp network, int64_t devices);

/// Taken off the network when it is read: how good strategies are is no part of what they mean.
std::optional<SearchFacts> takeSearchFacts(net::NetworkOp network);
void setSearchFacts(net::NetworkOp network, const SearchFacts &facts);

/// What a search takes by itself, where another assignment is faster as a plan.
struct ModelChoice {
  double us = 0; ///< of a step, in the model
  llvm::DenseMap<mlir::Operation *, std::vector<std::vector<int64_t>>> pieces; ///< of operators: per factor, those that its rounds have
};

/// Taken off the operators of the network: how its strategies were found is no part of what they mean.
llvm::DenseMap<mlir::Operation *, std::vector<std::vector<int64_t>>> takeModelChoice(net::NetworkOp network);
void setModelChoice(mlir::Operation *op, const std::vector<std::vector<int64_t>> &pieces);

/// Name of the module attribute (a location) that says where the dataset strategy was written; it may be absent.
inline constexpr llvm::StringLiteral datasetPlaceAttributeName = "net.dataset_place";

/// How the dataset delivers the network's inputs, one sharding per input; empty if nothing was decided.
std::vector<Sharding> getInputShardings(net::NetworkOp network);
void setInputShardings(net::NetworkOp network, const std::vector<Sharding> &shardings);

/// How a parameter is stored between steps.
std::optional<Sharding> getStoredSharding(net::ParamOp param);
void setStoredSharding(net::ParamOp param, const Sharding &sharding);

} // namespace msc::passes
