#include "AllShardings.h"

#include "dialects/dist/MeshNotation.h"
#include "runtime/plan/Refinement.h"

#include <gtest/gtest.h>


using namespace msc;
using namespace msc::dist;

namespace {

std::string messageOf(const std::string &text, const std::string &mesh, size_t rank) {
  Result<Mesh> axes = parseMesh(mesh);
  if (!axes)
    return axes.error().message;
  Result<Sharding> sharding = parseMeshSharding(text, *axes, rank);
  return sharding ? "" : sharding.error().message;
}

TEST(MeshNotation, NamesAxesPartsAndPartialAxes) {
  Mesh mesh = *parseMesh("x=2,y=4");
  EXPECT_EQ(parseMeshSharding("[x, y]", mesh, 2)->canonical(), (Sharding{{2, 4}, {{0}, {1}}, {}}));
  EXPECT_EQ(parseMeshSharding("[x.y, -]", mesh, 2)->canonical(), (Sharding{{8}, {{0}, {}}, {}}));
  EXPECT_EQ(parseMeshSharding("[y(1)2, x]", mesh, 2)->canonical(), (Sharding{{2, 2, 2}, {{1}, {0}}, {}}));
  EXPECT_EQ(parseMeshSharding("[y(2)2, -] +{x}", mesh, 2)->canonical(),
            (Sharding{{2, 2, 2}, {{2}, {}}, {{0, ReduceKind::Sum}}}));
  EXPECT_EQ(parseMeshSharding("[] +max{x, y}", mesh, 0)->partial.size(), 2u);
}

TEST(MeshNotation, PrintsWhatItReads) {
  for (int64_t devices : {2, 4, 6, 8})
    for (const auto &matrix : test::factorisations(devices)) {
      Mesh mesh;
      for (int64_t size : matrix)
        mesh.push_back({std::string(1, static_cast<char>('a' + mesh.size())), size});
      for (const Sharding &sharding : test::allShardings(devices, 2, true)) {
        if (!commonRefinement({&matrix, &sharding.axes}))
          continue;
        std::string text = meshText(sharding, mesh);
        Result<Sharding> read = parseMeshSharding(text, mesh, 2);
        ASSERT_TRUE(read) << text << ": " << read.error().message;
        for (int64_t rank = 0; rank < devices; ++rank)
          ASSERT_EQ(read->localBox({24, 48}, rank), sharding.localBox({24, 48}, rank)) << text;
        ASSERT_EQ(meshText(*read, mesh), text);
      }
    }
}

TEST(MeshNotation, FallsBackWhereTheMeshDoesNotFit) {
  EXPECT_EQ(meshText({{3, 2}, {{0}, {1}}, {}}, *parseMesh("x=2,y=3")), "(3, 2) [0, 1]");
}

TEST(MeshNotation, RefusesWhatMakesNoSense) {
  EXPECT_EQ(messageOf("[x, x]", "x=2,y=4", 2), "'[x, x]' uses an axis twice");
  EXPECT_EQ(messageOf("[x, z]", "x=2,y=4", 2), "the mesh has no axis 'z'");
  EXPECT_EQ(messageOf("[x]", "x=2,y=4", 2), "'[x]' has 1 dimension, the shape has 2");
  EXPECT_EQ(messageOf("x, y", "x=2,y=4", 2), "'x, y' is no sharding");
  EXPECT_EQ(messageOf("[x, ]", "x=2,y=4", 2), "'[x, ]' names no axis for dimension 1");
  EXPECT_EQ(messageOf("[y(1)3, -]", "x=2,y=4", 2), "axis 'y' of size 4 has no part 'y(1)3'");
  EXPECT_EQ(messageOf("[y(2, -]", "x=2,y=4", 2), "'y(2' is no part of an axis");
  EXPECT_EQ(messageOf("[y(1)2, y]", "x=2,y=4", 2), "'[y(1)2, y]' uses an axis twice");
  EXPECT_EQ(messageOf("[z(2)3, z(1)3]", "z=6", 2), "parts of axis 'z' do not fit into each other");
  EXPECT_EQ(messageOf("[x, -] + y", "x=2,y=4", 2), "'+ y' is no list of partial axes");
  EXPECT_EQ(messageOf("[x, -] +mean{y}", "x=2,y=4", 2), "'+mean{y}' is no list of partial axes");
  EXPECT_EQ(messageOf("[-]", "x=2,x=4", 1), "the mesh has two axes 'x'");
  EXPECT_EQ(messageOf("[-]", "x=0", 1), "'x=0' is no axis of a mesh");
  EXPECT_EQ(messageOf("[-]", "2", 1), "'2' is no axis of a mesh");
}

} // namespace
