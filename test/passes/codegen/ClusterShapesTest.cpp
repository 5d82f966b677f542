// Clusters of every form over many shapes: against the scalar reference, on every instruction set, with random cuts.
#include "ClusterText.h"
#include "KernelTestSupport.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace msc::test {
namespace {

using Shape = std::vector<int64_t>;

std::string op(const std::string &name, const std::string &operands, const std::string &type = "f32") {
  return fmt::format("%y = {} {} : {}", name, operands, type);
}

/// Shapes from 0 to 70 with all tails: pairs that change together keep the number of kernels small. Later rounds are
/// random.
std::vector<std::pair<int64_t, int64_t>> shapes(unsigned round) {
  std::vector<std::pair<int64_t, int64_t>> list = {{0, 5}, {5, 0}, {1, 1}, {1, 70}, {70, 1}, {3, 16}, {16, 16}, {17, 64}};
  for (int64_t c = 2; c <= 70; c += 3)
    list.push_back({(c * 37 + 11) % 70 + 1, c});
  std::mt19937_64 random(round);
  for (auto &[r, c] : list)
    if (round > 0)
      r = random() % 70 + 1, c = random() % 70 + 1;
  return list;
}

/// Checks one cluster per shape; `build` adds to a function of the given name.
template <typename Build> void overShapes(CheckOptions options, Build build) {
  size_t count = 0;
  for (unsigned round = 0; round < rounds(1); ++round) {
    std::string text;
    for (auto [r, c] : shapes(round))
      text += build(ClusterText(fmt::format("f{}_{}_{}", count++, r, c)), r, c).str();
    checkClusters(text, options);
    options.seed += 1000;
  }
  fmt::print("  {}: {} shapes\n", testing::UnitTest::GetInstance()->current_test_info()->name(), count);
}

ClusterText addRelu(ClusterText f, Shape shape, const std::string &type) {
  std::string loops(shape.size(), 'p'), all = std::string("abcd").substr(0, shape.size());
  return f.argument("a", shape, type).argument("b", shape, type)
      .generic("s", shape, type, loops, {"a", "b"}, {all, all, all}, op("arith.addf", "%x0, %x1", type))
      .generic("y", shape, type, loops, {"s"}, {all, all},
               fmt::format("%z = arith.constant 0.0 : {0}\n %y = arith.maximumf %x0, %z : {0}", type))
      .returns({"y"});
}

TEST(ClusterShapes, PointwiseFlat) {
  overShapes({}, [](ClusterText f, int64_t r, int64_t c) { return addRelu(f, {r, c}, "f32"); });
  checkClusters(addRelu(ClusterText("f64"), {7, 13}, "f64").str() + addRelu(ClusterText("cube"), {3, 5, 7}, "f32").str() +
                addRelu(ClusterText("scalar"), {}, "f32").str() + addRelu(ClusterText("line"), {1000}, "f32").str());
}

TEST(ClusterShapes, BroadcastAlongRowsAndColumns) {
  overShapes({}, [](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {r, c}, "f32").argument("bias", {c}, "f32").argument("scale", {r, 1}, "f32")
        .argument("alpha", {}, "f32")
        .generic("t", {r, c}, "f32", "pp", {"x", "bias"}, {"ab", "b", "ab"}, op("arith.addf", "%x0, %x1"))
        .generic("u", {r, c}, "f32", "pp", {"t", "scale"}, {"ab", "a0", "ab"}, op("arith.mulf", "%x0, %x1"))
        .generic("y", {r, c}, "f32", "pp", {"u", "alpha"}, {"ab", "", "ab"}, op("arith.subf", "%x0, %x1"))
        .returns({"y", "t"});
  });
}

struct Reduction { const char *name, *initial; };
const Reduction reductions[] = {{"arith.addf", "0.0"}, {"arith.mulf", "1.0"}, {"arith.maximumf", "0xFF800000"},
                                {"arith.minimumf", "0x7F800000"}, {"arith.maxnumf", "0xFF800000"}, {"arith.minnumf", "0.5"}};

TEST(ClusterShapes, RowReductions) {
  CheckOptions options{.tolerance = 1e-4, .low = -1.2, .high = 1.3};
  for (const Reduction &reduction : reductions)
    overShapes(options, [&](ClusterText f, int64_t r, int64_t c) {
      return f.argument("x", {r, c}, "f32")
          .generic("q", {r, c}, "f32", "pp", {"x"}, {"ab", "ab"}, op("arith.mulf", "%x0, %x0"))
          .generic("s", {r}, "f32", "pr", {"q"}, {"ab", "a"}, op(reduction.name, "%acc, %x0"), reduction.initial)
          .generic("y", {r}, "f32", "p", {"s"}, {"a", "a"}, op("arith.addf", "%x0, %x0"))
          .returns({"y"});
    });
}

TEST(ClusterShapes, ColumnReductions) {
  CheckOptions options{.tolerance = 1e-4, .low = -1.2, .high = 1.3};
  for (const Reduction &reduction : reductions)
    overShapes(options, [&](ClusterText f, int64_t r, int64_t c) {
      return f.argument("x", {r, c}, "f32").argument("w", {c}, "f32")
          .generic("s", {1, c}, "f32", "rp", {"x"}, {"ab", "0b"}, op(reduction.name, "%x0, %acc"), reduction.initial)
          .generic("y", {1, c}, "f32", "pp", {"s", "w"}, {"ab", "b", "ab"}, op("arith.addf", "%x0, %x1"))
          .returns({"y"});
    });
}

TEST(ClusterShapes, FullReductions) {
  CheckOptions options{.tolerance = 1e-4};
  auto meanSquareError = [](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {r, c}, "f32").argument("t", {r, c}, "f32")
        .generic("d", {r, c}, "f32", "pp", {"x", "t"}, {"ab", "ab", "ab"}, op("arith.subf", "%x0, %x1"))
        .generic("s", {}, "f32", "rr", {"d"}, {"ab", ""},
                 "%q = arith.mulf %x0, %x0 : f32\n %y = arith.addf %acc, %q : f32", "0.0")
        .generic("y", {}, "f32", "", {"s"}, {"", ""}, "%k = arith.constant 0.125 : f32\n %y = arith.mulf %x0, %k : f32")
        .returns({"y"});
  };
  overShapes(options, meanSquareError);
  checkClusters(meanSquareError(ClusterText("long"), 300, 700).str(), options);
}

// One long row is cut into pieces: what it starts from counts once, sums that are swept together are parts of their own, elements are
// stored by their piece, and what needs a sum is swept behind all pieces.
TEST(ClusterShapes, CutRows) {
  CheckOptions options{.tolerance = 1e-4, .low = -1.2, .high = 1.3};
  for (const Reduction &reduction : reductions) {
    if (std::string(reduction.name) == "arith.mulf")
      continue; // of so many numbers it is 0
    checkClusters(ClusterText("flat").argument("x", {300'007}, "f32")
                      .generic("s", {}, "f32", "r", {"x"}, {"a", ""}, op(reduction.name, "%x0, %acc"), "1.25")
                      .returns({"s"}).str(), options);
  }
  std::string moments = ClusterText("moments").argument("x", {401, 700}, "f32").argument("w", {700}, "f32")
      .generic("y", {401, 700}, "f32", "pp", {"x", "w"}, {"ab", "b", "ab"}, op("arith.mulf", "%x0, %x1"))
      .generic("s", {}, "f32", "rr", {"y"}, {"ab", ""}, op("arith.addf", "%acc, %x0"), "0.0")
      .generic("q", {}, "f32", "rr", {"y"}, {"ab", ""}, "%q = arith.mulf %x0, %x0 : f32\n %y = arith.addf %acc, %q : f32", "0.0")
      .generic("d", {}, "f32", "", {"s", "q"}, {"", "", ""}, op("arith.subf", "%x1, %x0"))
      .returns({"y", "s", "d"}).str();
  checkClusters(moments, options);
  options.streams = true;
  checkClusters(ClusterText("softmax").argument("x", {200'000}, "f32")
                    .generic("m", {}, "f32", "r", {"x"}, {"a", ""}, op("arith.maximumf", "%acc, %x0"), "-1.0e30")
                    .generic("e", {200'000}, "f32", "p", {"x", "m"}, {"a", "", "a"}, "%d = arith.subf %x0, %x1 : f32\n %y = math.exp %d : f32")
                    .generic("s", {}, "f32", "r", {"e"}, {"a", ""}, op("arith.addf", "%acc, %x0"), "0.0")
                    .generic("y", {200'000}, "f32", "p", {"e", "s"}, {"a", "", "a"}, op("arith.divf", "%x0, %x1"))
                    .returns({"y"}).str(), options);
}

ClusterText softmax(ClusterText f, int64_t r, int64_t c, const std::string &type, bool overRows) {
  std::string iterators = overRows ? "pr" : "rp", kept = overRows ? "a0" : "0b";
  Shape row = overRows ? Shape{r, 1} : Shape{1, c};
  return f.argument("x", {r, c}, type)
      .generic("m", row, type, iterators, {"x"}, {"ab", kept}, op("arith.maximumf", "%acc, %x0", type), "-1.0e30")
      .generic("d", {r, c}, type, "pp", {"x", "m"}, {"ab", kept, "ab"}, op("arith.subf", "%x0, %x1", type))
      .generic("e", {r, c}, type, "pp", {"d"}, {"ab", "ab"}, op("math.exp", "%x0", type))
      .generic("s", row, type, iterators, {"e"}, {"ab", kept}, op("arith.addf", "%acc, %x0", type), "0.0")
      .generic("y", {r, c}, type, "pp", {"e", "s"}, {"ab", kept, "ab"}, op("arith.divf", "%x0, %x1", type))
      .returns({"y"});
}

TEST(ClusterShapes, Softmax) {
  overShapes({}, [](ClusterText f, int64_t r, int64_t c) { return softmax(f, r, c, "f32", true); });
  overShapes({}, [](ClusterText f, int64_t r, int64_t c) { return softmax(f, r, c, "f32", false); });
  checkClusters(softmax(ClusterText("long"), 3, 40000, "f32", true).str() + softmax(ClusterText("f64"), 5, 33, "f64", true).str() +
                softmax(ClusterText("deep"), 1000, 20, "f32", false).str());
}

ClusterText layerNorm(ClusterText f, int64_t r, int64_t c, const std::string &type) {
  std::string scale = fmt::format("%k = arith.constant {1:e} : {0}\n %y = arith.mulf %x0, %k : {0}", type, 1.0 / std::max<int64_t>(c, 1));
  return f.argument("x", {r, c}, type).argument("gamma", {c}, type).argument("beta", {c}, type)
      .generic("sum", {r, 1}, type, "pr", {"x"}, {"ab", "a0"}, op("arith.addf", "%acc, %x0", type), "0.0")
      .generic("mean", {r, 1}, type, "pp", {"sum"}, {"ab", "ab"}, scale)
      .generic("d", {r, c}, type, "pp", {"x", "mean"}, {"ab", "a0", "ab"}, op("arith.subf", "%x0, %x1", type))
      .generic("q", {r, 1}, type, "pr", {"d"}, {"ab", "a0"},
               fmt::format("%q = arith.mulf %x0, %x0 : {0}\n %y = arith.addf %acc, %q : {0}", type), "0.0")
      .generic("var", {r, 1}, type, "pp", {"q"}, {"ab", "ab"}, scale)
      .generic("rstd", {r, 1}, type, "pp", {"var"}, {"ab", "ab"},
               fmt::format("%e = arith.constant 1.0e-5 : {0}\n %v = arith.addf %x0, %e : {0}\n %y = math.rsqrt %v : {0}", type))
      .generic("n", {r, c}, type, "pp", {"d", "rstd"}, {"ab", "a0", "ab"}, op("arith.mulf", "%x0, %x1", type))
      .generic("y", {r, c}, type, "pp", {"n", "gamma", "beta"}, {"ab", "b", "b", "ab"},
               fmt::format("%m = arith.mulf %x0, %x1 : {0}\n %y = arith.addf %m, %x2 : {0}", type))
      .returns({"y", "mean", "rstd"});
}

TEST(ClusterShapes, LayerNorm) {
  // Where two columns nearly agree, rounding their mean is magnified: the mean of two whole numbers is exact.
  CheckOptions options{.tolerance = 2e-5, .low = -30, .high = 30, .step = 1};
  overShapes(options, [](ClusterText f, int64_t r, int64_t c) { return layerNorm(f, r, c, "f32"); });
  checkClusters(layerNorm(ClusterText("f64"), 9, 45, "f64").str(), {.tolerance = 1e-12});
}

TEST(ClusterShapes, Transposed) {
  for (const char *type : {"f32", "f64", "i32", "i1"}) {
    std::string add = type[0] == 'f' ? "arith.addf" : type[1] == '1' ? "arith.xori" : "arith.addi";
    overShapes({}, [&](ClusterText f, int64_t r, int64_t c) {
      return f.argument("x", {c, r}, type)
          .generic("y", {r, c}, type, "pp", {"x"}, {"ba", "ab"}, fmt::format("%y = {} %x0, %x0 : {}", add, type))
          .returns({"y"});
    });
    overShapes({}, [&](ClusterText f, int64_t r, int64_t c) {
      return f.argument("x", {c, r}, type).argument("z", {r, c}, type).argument("b", {r}, type)
          .generic("t", {r, c}, type, "pp", {"x", "z"}, {"ba", "ab", "ab"}, op(add, "%x0, %x1", type))
          .generic("y", {c, r}, type, "pp", {"t", "b"}, {"ba", "b", "ab"}, op(add, "%x0, %x1", type))
          .returns({"t", "y"});
    });
  }
}

TEST(ClusterShapes, PermutedDimensions) {
  std::string text;
  int number = 0;
  for (const char *permutation : {"acb", "bac", "bca", "cab", "cba"})
    for (Shape size : {Shape{3, 17, 20}, Shape{18, 2, 5}, Shape{1, 33, 64}}) {
      Shape input;
      for (const char *letter = permutation; *letter; ++letter)
        input.push_back(size[*letter - 'a']);
      text += ClusterText(fmt::format("p{}", number++)).argument("x", input, "f32").argument("w", {size[1]}, "f32")
                  .generic("y", size, "f32", "ppp", {"x", "w"}, {permutation, "b", "abc"}, op("arith.mulf", "%x0, %x1"))
                  .returns({"y"}).str();
    }
  checkClusters(text);
}

TEST(ClusterShapes, ReductionsOverOuterAndInnerDimensions) {
  std::string text;
  int number = 0;
  for (Shape s : {Shape{4, 3, 20}, Shape{1, 17, 70}, Shape{5, 1, 16}, Shape{0, 3, 4}, Shape{3, 0, 4}, Shape{300, 2, 3}}) {
    // Batch norm: statistics per channel over the batch and the picture.
    text += ClusterText(fmt::format("norm{}", number)).argument("x", s, "f32").argument("g", {s[1]}, "f32")
                .generic("m", {s[1]}, "f32", "rpr", {"x"}, {"abc", "b"}, op("arith.addf", "%acc, %x0"), "0.0")
                .generic("y", s, "f32", "ppp", {"x", "m", "g"}, {"abc", "b", "b", "abc"},
                         "%d = arith.subf %x0, %x1 : f32\n %y = arith.mulf %d, %x2 : f32")
                .returns({"y", "m"}).str();
    text += ClusterText(fmt::format("middle{}", number)).argument("x", s, "f32")
                .generic("m", {s[0], s[2]}, "f32", "prp", {"x"}, {"abc", "ac"}, op("arith.maximumf", "%acc, %x0"), "-9.0")
                .returns({"m"}).str();
    text += ClusterText(fmt::format("outer{}", number++)).argument("x", s, "f32")
                .generic("m", {s[1]}, "f32", "rpr", {"x"}, {"abc", "b"}, op("arith.addf", "%acc, %x0"), "1.0")
                .returns({"m"}).str();
  }
  checkClusters(text, {.tolerance = 1e-4});
}

TEST(ClusterShapes, TransposedOperandsInReductions) {
  overShapes({.tolerance = 1e-5}, [](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {c, r}, "f32").argument("z", {r, c}, "f32").argument("u", {r, c}, "f32")
        .generic("s", {r}, "f32", "pr", {"x", "z", "u"}, {"ba", "ab", "ab", "a"},
                 "%p = arith.mulf %x0, %x1 : f32\n %q = arith.addf %p, %x2 : f32\n %y = arith.addf %acc, %q : f32", "0.0")
        .returns({"s"});
  });
  overShapes({.tolerance = 1e-5}, [](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {c, r}, "f32")
        .generic("s", {r}, "f32", "pr", {"x"}, {"ba", "a"}, op("arith.addf", "%acc, %x0"), "0.0")
        .returns({"s"});
  });
}

TEST(ClusterShapes, InPlaceUpdate) {
  overShapes({}, [](ClusterText f, int64_t r, int64_t c) {
    return f.argument("p", {r, c}, "f32", 1).argument("v", {r, c}, "f32", 0).argument("g", {r, c}, "f32")
        .argument("lr", {}, "f32")
        .generic("w", {r, c}, "f32", "pp", {"v", "g"}, {"ab", "ab", "ab"},
                 "%k = arith.constant 0.5 : f32\n %m = arith.mulf %x0, %k : f32\n %y = arith.addf %m, %x1 : f32")
        .generic("q", {r, c}, "f32", "pp", {"p", "w", "lr"}, {"ab", "ab", "", "ab"},
                 "%m = arith.mulf %x1, %x2 : f32\n %y = arith.subf %x0, %m : f32")
        .returns({"w", "q"});
  });
  // The old value is read after the new one is known: softmax in place, with the input added at the end.
  overShapes({}, [](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {r, c}, "f32", 0)
        .generic("m", {r}, "f32", "pr", {"x"}, {"ab", "a"}, op("arith.maximumf", "%acc, %x0"), "-9.0")
        .generic("d", {r, c}, "f32", "pp", {"x", "m"}, {"ab", "a", "ab"}, op("arith.subf", "%x0, %x1"))
        .generic("s", {r}, "f32", "pr", {"d"}, {"ab", "a"}, op("arith.addf", "%acc, %x0"), "0.0")
        .generic("t", {r, c}, "f32", "pp", {"x", "s"}, {"ab", "a", "ab"}, op("arith.addf", "%x0, %x1"))
        .returns({"d", "t"});
  });
}

// What is updated in place, sums of it and what follows from it: a sum between two results must not put one of them off.
TEST(ClusterShapes, InPlaceUpdatesBesideSums) {
  for (bool follows : {false, true})
    overShapes({.tolerance = 1e-4}, [&](ClusterText f, int64_t r, int64_t c) {
      f.argument("a", {r, c}, "f32", 0).argument("m", {r, c}, "f32", 2).argument("g", {r, c}, "f32")
          .generic("b", {r, c}, "f32", "pp", {"a", "g"}, {"ab", "ab", "ab"}, op("arith.addf", "%x0, %x1"))
          .generic("n", {r, c}, "f32", "pp", {"m", "b"}, {"ab", "ab", "ab"}, op("arith.mulf", "%x0, %x1"))
          .generic("s", {}, "f32", "rr", {"n"}, {"ab", ""}, op("arith.addf", "%acc, %x0"), "0.0");
      if (follows)
        f.generic("k", {r, c}, "f32", "pp", {"n", "s"}, {"ab", "", "ab"}, op("arith.subf", "%x0, %x1"));
      return f.returns({"b", "s", follows ? "k" : "n"});
    });
}

TEST(ClusterShapes, ReductionsWithoutMergeRunInOrder) {
  // Horner's scheme: the order of the elements matters.
  overShapes({.tolerance = 1e-4, .low = -1, .high = 1}, [](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {r, c}, "f32")
        .generic("y", {r}, "f32", "pr", {"x"}, {"ab", "a"},
                 "%k = arith.constant 0.5 : f32\n %m = arith.mulf %acc, %k : f32\n %y = arith.addf %m, %x0 : f32", "0.25")
        .returns({"y"});
  });
}

TEST(ClusterShapes, IntegersAndBool) {
  for (const char *type : {"i32", "i64"})
    for (const char *name : {"arith.addi", "arith.muli", "arith.maxsi", "arith.minsi", "arith.divsi", "arith.remsi", "arith.xori"})
      checkClusters(ClusterText("whole").argument("a", {9, 23}, type).argument("b", {23}, type)
                        .generic("y", {9, 23}, type, "pp", {"a", "b"}, {"ab", "b", "ab"}, op(name, "%x0, %x1", type))
                        .returns({"y"}).str(), {.wholeLow = -6, .wholeHigh = 6});
  for (const char *type : {"i32", "i64"})
    checkClusters(ClusterText("sum").argument("a", {9, 53}, type)
                      .generic("y", {9}, type, "pr", {"a"}, {"ab", "a"}, op("arith.addi", "%acc, %x0", type), "0")
                      .generic("z", {9}, type, "pr", {"a"}, {"ab", "a"}, op("arith.maxsi", "%acc, %x0", type), "-1000")
                      .returns({"y", "z"}).str());
  overShapes({}, [](ClusterText f, int64_t r, int64_t c) {
    return f.argument("a", {r, c}, "f32").argument("b", {r, c}, "f32").argument("m", {r, c}, "i1").argument("n", {c}, "i1")
        .generic("g", {r, c}, "i1", "pp", {"a", "b"}, {"ab", "ab", "ab"}, op("arith.cmpf ogt,", "%x0, %x1"))
        .generic("h", {r, c}, "i1", "pp", {"g", "m", "n"}, {"ab", "ab", "b", "ab"},
                 "%t = arith.andi %x0, %x1 : i1\n %y = arith.ori %t, %x2 : i1")
        .generic("f", {r, c}, "f32", "pp", {"h", "a"}, {"ab", "ab", "ab"},
                 "%z = arith.constant 0.0 : f32\n %y = arith.select %x0, %x1, %z : f32")
        .generic("any", {r}, "i1", "pr", {"h"}, {"ab", "a"}, op("arith.andi", "%acc, %x0", "i1"), "1")
        .returns({"h", "f", "any"});
  });
}

TEST(ClusterShapes, CastsBetweenTypes) {
  auto cast = [](ClusterText f, const char *from, const char *name, const char *to) {
    return f.argument("a", {5, 37}, from)
        .generic("y", {5, 37}, to, "pp", {"a"}, {"ab", "ab"}, fmt::format("%y = {} %x0 : {} to {}", name, from, to))
        .returns({"y"}).str();
  };
  std::string text;
  const char *casts[][3] = {{"f32", "arith.extf", "f64"}, {"f64", "arith.truncf", "f32"}, {"i32", "arith.sitofp", "f32"},
                            {"i64", "arith.sitofp", "f32"}, {"i64", "arith.sitofp", "f64"}, {"i32", "arith.extsi", "i64"},
                            {"i64", "arith.trunci", "i32"}, {"i1", "arith.uitofp", "f32"}, {"i1", "arith.extui", "i64"},
                            {"f32", "arith.fptosi", "i32"}, {"f64", "arith.fptosi", "i64"}, {"f32", "arith.fptosi", "i64"}};
  for (auto &[from, name, to] : casts)
    text += cast(ClusterText(fmt::format("{}_{}", from, to)), from, name, to);
  checkClusters(text, {.low = -100, .high = 100});
  checkClusters(cast(ClusterText("saturates"), "f32", "arith.fptosi", "i32"), {.low = -1e12, .high = 1e12});
}

// Uneven pieces: a rank with one row or column reads [1, c] without seeing that it is repeated.
TEST(ClusterShapes, SmallerPiecesFollowTheFormOfTheLargest) {
  auto sizes = [](auto build) {
    std::string text;
    for (auto [r, c] : std::vector<std::pair<int64_t, int64_t>>{{18, 20}, {1, 20}, {17, 20}, {18, 1}, {1, 1}, {2, 3}, {0, 20}, {1, 0}})
      text += build(ClusterText(fmt::format("f_{}_{}", r, c)), r, c).str();
    return text;
  };
  // Like the operators' lowering: a dimension of size 1 becomes a constant 0 only where the result is larger.
  auto repeated = [](int64_t size, char letter) { return size == 1 ? letter : '0'; };
  CheckOptions options{.tolerance = 1e-5, .followFirst = true};
  checkClusters(sizes([&](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {r, c}, "f32").argument("b", {1, c}, "f32").argument("s", {r, 1}, "f32")
        .generic("t", {r, c}, "f32", "pp", {"x", "b"}, {"ab", {repeated(r, 'a'), 'b'}, "ab"}, op("arith.addf", "%x0, %x1"))
        .generic("u", {r, c}, "f32", "pp", {"t", "s"}, {"ab", {'a', repeated(c, 'b')}, "ab"}, op("arith.mulf", "%x0, %x1"))
        .returns({"u"});
  }), options);
  checkClusters(sizes([&](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {3, r, c}, "f32").argument("b", {1, 1, c}, "f32")
        .generic("t", {3, r, c}, "f32", "ppp", {"x", "b"}, {"abc", {'0', repeated(r, 'b'), 'c'}, "abc"}, op("arith.addf", "%x0, %x1"))
        .returns({"t"});
  }), options);
  checkClusters(sizes([&](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {c, r}, "f32").argument("b", {1, c}, "f32")
        .generic("t", {r, c}, "f32", "pp", {"x", "b"}, {"ba", {repeated(r, 'a'), 'b'}, "ab"}, op("arith.addf", "%x0, %x1"))
        .returns({"t"});
  }), options);
  checkClusters(sizes([](ClusterText f, int64_t r, int64_t c) { return softmax(f, r, c, "f32", true); }), options);
  checkClusters(sizes([](ClusterText f, int64_t r, int64_t c) { return softmax(f, r, c, "f32", false); }), options);
  checkClusters(sizes([](ClusterText f, int64_t r, int64_t c) { return addRelu(f, {r, c}, "f32"); }), options);
  checkClusters(sizes([](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {r, 5, c}, "f32")
        .generic("m", {5}, "f32", "rpr", {"x"}, {"abc", "b"}, op("arith.addf", "%acc, %x0"), "0.0")
        .generic("y", {r, 5, c}, "f32", "ppp", {"x", "m"}, {"abc", "b", "abc"}, op("arith.subf", "%x0, %x1"))
        .returns({"y", "m"});
  }), options);
  checkClusters(sizes([](ClusterText f, int64_t r, int64_t c) {
    return f.argument("x", {r, c}, "f32")
        .generic("s", {c}, "f32", "rp", {"x"}, {"ab", "b"}, op("arith.addf", "%acc, %x0"), "0.0").returns({"s"});
  }), options);
}

TEST(ClusterShapes, ResultsWrittenAroundTheCaches) {
  CheckOptions options{.tolerance = 1e-5, .streams = true};
  for (auto [r, c] : shapes(0)) {
    std::string text = addRelu(ClusterText("f32"), {r, c}, "f32").str() + addRelu(ClusterText("f64"), {r, c}, "f64").str();
    text += softmax(ClusterText("rows"), r, c / 16 * 16, "f32", true).str() + softmax(ClusterText("columns"), r, c, "f32", false).str();
    text += ClusterText("update").argument("w", {r, c}, "f32", 0).argument("g", {r, c}, "f32")
                .generic("v", {r, c}, "f32", "pp", {"w", "g"}, {"ab", "ab", "ab"}, op("arith.subf", "%x0, %x1"))
                .generic("t", {r, c}, "f32", "pp", {"v"}, {"ab", "ab"}, op("arith.mulf", "%x0, %x0"))
                .returns({"v", "t"}).str();
    checkClusters(text, options);
  }
}

// So many that a block of a GPU may not declare shared memory for the parts of all at once: pieces of few long columns, and many columns.
TEST(ClusterShapes, ManySumsOfColumns) {
  auto sums = [](const char *name, int64_t rows, int64_t columns, const std::string &type, int count) {
    ClusterText text(name);
    std::vector<std::string> all;
    text.argument("x", {rows, columns}, type);
    for (int i = 0; i < count; ++i) {
      const std::string s = fmt::format("s{}", i);
      all.push_back(s);
      // Of squares: in a sum of both signs the order of terms weighs more.
      const std::string first = fmt::format("%c = arith.constant {0}.0 : {1}\n %q = arith.mulf %x0, %x0 : {1}\n %m = arith.mulf %q, %c : {1}\n ", i + 1, type);
      text.generic(s, {columns}, type, "rp", {"x"}, {"ab", "b"}, first + op(i % 3 ? "arith.addf" : "arith.maximumf", "%acc, %m", type), "0.5");
    }
    return text.returns(all).str();
  };
  CheckOptions options{.tolerance = 1e-5};
  checkClusters(sums("pieces_f64", 512, 40, "f64", 8) + sums("pieces_f32", 512, 40, "f32", 13) + sums("columns_f64", 64, 4096, "f64", 14), options);
}

TEST(ClusterShapes, PositionsInLoops) {
  checkClusters(ClusterText("positions").argument("a", {6, 37}, "i64")
                    .generic("y", {6, 37}, "i64", "pp", {"a"}, {"ab", "ab"},
                             "%i = linalg.index 0 : index\n %j = linalg.index 1 : index\n %k = arith.constant 100 : index\n"
                             "%m = arith.muli %i, %k : index\n %s = arith.addi %m, %j : index\n"
                             "%t = arith.index_cast %s : index to i64\n %y = arith.addi %t, %x0 : i64")
                    .returns({"y"}).str());
}

} // namespace
} // namespace msc::test
