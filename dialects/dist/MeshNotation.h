// The notation of shardings over named axes, for people: "[x, y.z, -] +{w}". Plain C++, no MLIR.
//
// Per dimension the axes that cut it, joined by dots, most major first; '-' for a dimension that is whole. "x(2)2" is a part
// of axis x: the product of the more major parts, and its own size. "+{z}" partial sums over z, "+max{z}" partial maxima
// ("min", "prod" alike). Kinds are completed one after the other, the most minor axis first, in whatever order they are written:
// "+{x} +max{y}" over x=2,y=4 are sums of maxima.
#pragma once

#include "runtime/Status.h"
#include "runtime/plan/Sharding.h"

#include <string>
#include <vector>

namespace msc::dist {

/// One axis of a mesh.
struct MeshAxis {
  std::string name;
  int64_t size = 1;
};
using Mesh = std::vector<MeshAxis>; ///< most major first

/// "x=2,y=4".
Result<Mesh> parseMesh(const std::string &text);

/// A sharding of a tensor of `rank` dimensions; its device matrix refines the mesh as far as parts of axes are named.
Result<Sharding> parseMeshSharding(const std::string &text, const Mesh &mesh, size_t rank);

/// The sharding in this notation; Sharding::str() where its axes are no parts of the mesh's axes.
std::string meshText(const Sharding &sharding, const Mesh &mesh);

} // namespace msc::dist
