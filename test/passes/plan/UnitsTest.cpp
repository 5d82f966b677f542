// Units of random training steps, formed under random answers of the kernel compiler: every operator is in exactly one
// unit, units stand behind what they read, and parameters are updated behind the last reader of the old value.
#include "dialects/net/Recompute.h"
#include "passes/plan/Units.h"
#include "test/passes/partition/RandomNetwork.h"
#include "test/passes/partition/TrainStep.h"

#include "llvm/ADT/DenseSet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace msc;
using namespace msc::test;

namespace {

using UnitOf = llvm::DenseMap<Operation *, size_t>;

UnitOf numberOperators(const std::vector<passes::Unit> &units) {
  UnitOf unitOf;
  for (auto [index, unit] : llvm::enumerate(units))
    for (Operation *op : unit.ops)
      EXPECT_TRUE(unitOf.try_emplace(op, index).second) << "an operator is in two units";
  return unitOf;
}

void checkOrder(net::NetworkOp network, const std::vector<passes::Unit> &units) {
  UnitOf unitOf = numberOperators(units);
  for (auto [index, unit] : llvm::enumerate(units))
    for (Value input : unit.inputs())
      if (Operation *producer = input.getDefiningOp(); producer && unitOf.contains(producer))
        EXPECT_LT(unitOf[producer], index) << "unit '" << unit.name() << "' reads what is computed later";
  for (auto update : network.getBody().front().getOps<net::UpdateOp>()) {
    Operation *writer = update.getNewValue().getDefiningOp();
    for (Operation *reader : update.getParameter().getUsers())
      if (unitOf.contains(reader) && unitOf.contains(writer))
        EXPECT_LE(unitOf[reader], unitOf[writer]) << "a parameter is updated before it is read";
  }
}

/// Number of operators that need a unit.
size_t stepsOf(net::NetworkOp network) {
  return llvm::count_if(network.getBody().front(), [](Operation &op) {
    return isa<net::Lower, dist::CollectiveOp, dist::SliceOp, net::ConstantOp>(op);
  });
}

TEST(Units, ReaderOfAUnitThatGrowsDependsOnWhatItTookUp) {
  NetContext context;
  loadDist(context);
  TestNetwork net(context);
  Value x = net.input("x", "4x4xf64"), y = net.input("y", "4x4xf64");
  Value a = net.value("Neg", {x}, "", "a"), b = net.value("Exp", {a}, "", "b"), d = net.value("Abs", {y}, "", "d");
  Value c = net.value("Add", {a, d}, "", "c"), e = net.value("Mul", {b, d}, "", "e");
  net.results({c, e}, {"c", "e"});
  // a and c become one unit, which then waits for d; so b waits for d too, and e, which reads b, cannot join d.
  auto fits = [](const passes::Unit &unit) {
    auto has = [&](StringRef name) {
      return llvm::any_of(unit.ops, [&](Operation *op) { return net::getInstanceName(op) == name; });
    };
    return !(has("a") && has("b")) && !(has("d") && has("c"));
  };
  std::vector<passes::Unit> units = passes::formUnits(net.network, {}, fits);
  checkOrder(net.network, units);
  ASSERT_EQ(units.size(), 3u);
  EXPECT_EQ(units[0].name(), "Abs");
  EXPECT_EQ(units[1].name(), "Neg_Add");
  EXPECT_EQ(units[2].name(), "Exp_Mul");
}

std::vector<std::string> namesOf(const std::vector<passes::Unit> &units) {
  std::vector<std::string> names;
  for (const passes::Unit &unit : units)
    names.push_back(unit.name());
  return names;
}

// What is large stays in the kernel that makes it, though something small was made later.
TEST(Units, OperatorsJoinTheClusterOfWhichTheyReadMost) {
  NetContext context;
  loadDist(context);
  TestNetwork net(context);
  Value x = net.input("x", "8x16xf32"), rows = net.input("rows", "8x1xf32");
  Value large = net.value("Exp", {x}), small = net.value("Neg", {rows});
  net.results({net.value("Mul", {small, large})}, {"y"});
  std::vector<passes::Unit> units = passes::formUnits(net.network, {}, [](const passes::Unit &) { return true; });
  checkOrder(net.network, units);
  EXPECT_EQ(namesOf(units), (std::vector<std::string>{"Neg", "Exp_Mul"}));
}

// The gradients of a norm's scale and shift: the second reads what the first reads, and is of the same shape.
TEST(Units, ReductionsOfTheSameShapeReadATensorOnce) {
  struct Case {
    const char *axis; ///< of the second
    std::vector<std::string> names;
  };
  for (const Case &one : {Case{"0", {"Mul_ReduceSum_ReduceSum"}}, Case{"1", {"Mul_ReduceSum", "ReduceSum"}}}) {
    NetContext context;
    loadDist(context);
    TestNetwork net(context);
    Value x = net.input("x", "4x8xf32"), y = net.input("y", "4x8xf32");
    Value scale = net.value("ReduceSum", {net.value("Mul", {x, y})}, "{axis = array<i64: 0>}");
    Value other = net.value("ReduceSum", {x}, std::string("{axis = array<i64: ") + one.axis + ">}");
    net.results({scale, other}, {"scale", "other"});
    std::vector<passes::Unit> units = passes::formUnits(net.network, {}, [](const passes::Unit &) { return true; });
    checkOrder(net.network, units);
    EXPECT_EQ(namesOf(units), one.names);
  }
}

// What a norm's scale gradient sums over rows is made of what the kernel of the input's gradient, which sums within rows, knows.
TEST(Units, SumsInAnotherDirectionMakeTheirElementsThemselves) {
  struct Case {
    const char *what;
    const char *centred; ///< how both are made of the input
    bool isSummedToo;    ///< what arrives: the gradient of the shift
    bool isReadElsewhere;
    std::vector<std::string> names;
    net::Phase phase = net::Phase::Backward;
  };
  const Case cases[] = {
      {"as much is read as was written and read", "Sub", false, false, {"Sub_ReduceSum_Mul_Mul", "ReduceSum"}},
      {"half of that is read anyway", "Sub", true, false, {"Sub_ReduceSum_Mul", "Sub_Mul_ReduceSum_ReduceSum"}},
      {"they are stored all the same", "Sub", true, true, {"Sub_ReduceSum_Mul_Mul_and_1_more", "ReduceSum", "ReduceSum"}},
      {"gradients name operators of the forward pass", "Sub", true, false, {"Sub_ReduceSum_Mul_Mul", "ReduceSum", "ReduceSum"}, net::Phase::Forward},
      {"they are dear", "Pow", true, false, {"Pow_ReduceSum_Mul_Mul", "ReduceSum", "ReduceSum"}},
  };
  for (const Case &one : cases) {
    SCOPED_TRACE(one.what);
    NetContext context;
    loadDist(context);
    TestNetwork net(context);
    Value x = net.input("x", "4x8xf32"), u = net.input("u", "4x1xf32"), dy = net.input("dy", "4x8xf32");
    Value n = net.value(one.centred, {x, u}), sum = net.value("ReduceSum", {n}, "{axis = array<i64: 1>, keep_dims = true}");
    Value dx = net.value("Mul", {n, sum}), product = net.value("Mul", {n, dy});
    SmallVector<Value> results{dx, net.value("ReduceSum", {product}, "{axis = array<i64: 0>}")};
    if (one.isSummedToo)
      results.push_back(net.value("ReduceSum", {dy}, "{axis = array<i64: 0>}"));
    if (one.isReadElsewhere)
      results.push_back(net.value("Neg", {product}));
    const StringRef names[] = {"dx", "scale", "shift", "other"};
    net.results(results, ArrayRef(names).take_front(results.size()));
    for (Operation &op : net.network.getBody().front().without_terminator())
      net::setPhase(&op, one.phase);
    auto fits = [](const passes::Unit &unit) { // sums of one direction
      std::set<int64_t> axes;
      for (Operation *op : unit.ops)
        if (auto reduction = dyn_cast<net::ReduceSumOp>(op))
          axes.insert(reduction.getAxis().front());
      return axes.size() <= 1;
    };
    std::vector<passes::Unit> units = passes::formUnits(net.network, {}, fits);
    checkOrder(net.network, units);
    EXPECT_EQ(namesOf(units), one.names);
  }
}

TEST(Units, ProductsTakeABiasAlong) {
  using Names = std::vector<std::string>;
  struct Case {
    const char *bias, *cast; ///< types
    int64_t columns;
    bool forGpus;
    Names names;
  };
  const Case cases[] = {
      {"6xf32", "", 6, false, {"MatMul_Add_ReLU"}},
      {"6xf32", "", 6, true, {"MatMul", "Add_ReLU"}}, // rows that begin anywhere are computed with more columns there
      {"8xf32", "", 8, true, {"MatMul_Add_ReLU"}},
      {"8xbf16", "f32", 8, true, {"Cast", "MatMul_Add_ReLU"}}, // no product takes a cast along
      {"8xbf16", "f32", 8, false, {"Cast", "MatMul_Add_ReLU"}},
      {"1xf32", "", 8, false, {"MatMul", "Add_ReLU"}},
      {"5x8xf32", "", 8, false, {"MatMul", "Add_ReLU"}},
  };
  for (const Case &one : cases) {
    NetContext context;
    loadDist(context);
    TestNetwork net(context);
    Value x = net.input("x", "5x4xf32"), w = net.param("w", "4x" + std::to_string(one.columns) + "xf32"), b = net.param("b", one.bias);
    if (*one.cast)
      b = net.value("Cast", {b}, std::string("{dst_type = ") + one.cast + "}");
    Value sum = net.value("Add", {net.value("MatMul", {x, w}), b});
    net.results({net.value("ReLU", {sum})}, {"y"});
    std::vector<passes::Unit> units =
        passes::formUnits(net.network, {.castsFollowReaders = one.forGpus}, [](const passes::Unit &) { return true; });
    checkOrder(net.network, units);
    EXPECT_EQ(namesOf(units), one.names) << one.bias << " " << one.forGpus;
  }
}

// A narrow product adds a bias where the sum would be stored for its own sake, and is large: for a step that is no kernel, or for the backward pass.
TEST(Units, NarrowProductsTakeABiasAlongThatIsStoredAnyway) {
  using Names = std::vector<std::string>;
  struct Case {
    const char *reader; ///< of the sum
    int64_t columns, least;
    bool forGpus;
    Names names;
    int64_t pieces = 1; ///< of the columns
    bool isRecomputed = false;
  };
  const Names apart{"MatMul", "Cast_Cast_Cast_Add_and_1_more"};
  const Case cases[] = {
      {"result", 16, 0, true, {"Cast", "MatMul_Add"}, 2},
      {"result", 16, 0, true, apart, 3}, // of 5, 5 and 6 columns
      {"result", 16, 0, true, apart, 4},
      {"result", 8, 0, true, apart, 1, true}, // what is computed again has other readers, and is rounded as it was
      {"result", 8, 0, true, {"Cast", "MatMul_Add"}},
      {"view", 8, 0, true, {"Cast", "MatMul_Add", "Reshape"}},
      {"relu", 8, 0, true, {"Cast", "MatMul_Add_ReLU"}}, // whose result is stored
      {"sum", 8, 0, true, {"MatMul", "Cast_Cast_Cast_Add_and_3_more"}},
      {"backward", 8, 0, true, {"Cast", "MatMul_Add", "Cast_ReduceSum"}},
      {"result", 8, 5 * 8 * 2, true, {"Cast", "MatMul_Add"}},
      {"result", 8, 5 * 8 * 2 + 1, true, apart},
      {"result", 12, 0, true, apart}, // rows begin at multiples of 8 bytes
      {"result", 8, 0, false, {"Cast_Cast", "MatMul", "Cast_Add_Cast"}},
  };
  for (const Case &one : cases) {
    SCOPED_TRACE(fmt::format("{} {} {} {} {} {}", one.reader, one.columns, one.least, one.forGpus, one.pieces, one.isRecomputed));
    NetContext context;
    loadDist(context);
    TestNetwork net(context);
    auto cast = [&](Value value, const char *type) { return net.value("Cast", {value}, std::string("{dst_type = ") + type + "}"); };
    const std::string columns = std::to_string(one.columns), reader = one.reader;
    Value x = net.input("x", "5x4xbf16"), w = net.input("w", "4x" + columns + "xbf16"), b = net.param("b", columns + "xf32");
    Value bias = cast(b, "bf16"), product = net.value("MatMul", {x, w});
    if (one.pieces > 1)
      product.setType(dist::withSharding(product.getType(), Sharding{{one.pieces}, {{}, {0}}, {}}));
    Value sum = net.value("Add", {cast(product, "f32"), cast(bias, "f32")}), y = cast(sum, "bf16");
    if (one.isRecomputed)
      net::setRecomputed(sum.getDefiningOp());
    if (reader == "view")
      y = net.value("Reshape", {y}, "{shape = array<i64: 8, 5>}");
    if (reader == "relu")
      y = cast(net.value("ReLU", {cast(y, "f32")}), "bf16");
    if (reader == "sum" || reader == "backward")
      y = net.value("ReduceSum", {cast(y, "f32")}, "{axis = array<i64: 0>}");
    if (reader == "backward")
      for (Operation *op : {y.getDefiningOp(), y.getDefiningOp()->getOperand(0).getDefiningOp()})
        net::setPhase(op, net::Phase::Backward);
    net.results({y}, {"y"});
    std::vector<passes::Unit> units = passes::formUnits(
        net.network, {.castsFollowReaders = one.forGpus, .leastBytesOfNarrowSums = one.least}, [](const passes::Unit &) { return true; });
    checkOrder(net.network, units);
    EXPECT_EQ(namesOf(units), one.names);
  }
}

// Operators of one phase that a reader of both joins; a cast of a narrow value goes where it is read.
TEST(Units, CastsFollowReadersAndClustersMerge) {
  for (bool follow : {false, true}) {
    NetContext context;
    loadDist(context);
    TestNetwork net(context);
    Value x = net.input("x", "4x4xbf16"), y = net.input("y", "4x4xf32"), z = net.input("z", "4x4xf32");
    Value wide = net.value("Cast", {x}, "{dst_type = f32}", "wide"), a = net.value("Neg", {y}, "", "a"), b = net.value("Add", {a, wide}, "", "b");
    Value c = net.value("Exp", {z}, "", "c"), d = net.value("Mul", {b, c}, "", "d");
    net.results({d}, {"d"});
    std::vector<passes::Unit> units =
        passes::formUnits(net.network, {.castsFollowReaders = follow}, [](const passes::Unit &) { return true; });
    checkOrder(net.network, units);
    EXPECT_EQ(namesOf(units), follow ? (std::vector<std::string>{"Neg_Cast_Add_Exp_and_1_more"})
                            : (std::vector<std::string>{"Cast", "Neg_Add", "Exp_Mul"}));
  }
}

// What the backward pass makes is rounded in the kernel that makes it, wherever that began; what the forward pass made is kept as it is.
TEST(Units, ACastJoinsWhatItsPassMade) {
  for (bool isBackward : {false, true}) { // of what is cast
    NetContext context;
    loadDist(context);
    TestNetwork net(context);
    Value a = net.value("Exp", {net.input("x", "4x4xf32")}, "", "a"), b = net.value("Neg", {a}, "", "b");
    Value narrow = net.value("Cast", {b}, "{dst_type = bf16}", "narrow");
    net.results({narrow}, {"narrow"});
    net::setPhase(narrow.getDefiningOp(), net::Phase::Backward);
    if (isBackward)
      net::setPhase(b.getDefiningOp(), net::Phase::Backward);
    std::vector<passes::Unit> units = passes::formUnits(net.network, {}, [](const passes::Unit &) { return true; });
    checkOrder(net.network, units);
    EXPECT_EQ(namesOf(units), isBackward ? (std::vector<std::string>{"Exp_Neg_Cast"}) : (std::vector<std::string>{"Exp_Neg", "Cast"}));
  }
}

// A new value that is only taken where all gradients are finite is computed where that is known.
TEST(Units, UpdatesWaitForWhatDecidesOfThem) {
  for (bool isKnownLate : {false, true}) {
    NetContext context;
    loadDist(context);
    TestNetwork net(context);
    Value rate = net.input("rate", "f32"), zero = net.input("zero", "f32"), sum;
    SmallVector<Value> parameters, gradients;
    for (StringRef name : {"p", "q"}) {
      parameters.push_back(net.param(name, "4x4xf32"));
      gradients.push_back(net.value("Mul", {net.input(("g" + name).str(), "4x4xf32"), rate}));
      Value difference = net.value("ReduceSum", {net.value("Sub", {gradients.back(), gradients.back()})});
      sum = sum ? net.value("Add", {sum, difference}) : difference;
    }
    Value finite;
    auto decide = [&] { finite = net.value("Equal", {sum, zero}); };
    if (!isKnownLate)
      decide();
    SmallVector<Value> made;
    for (auto [parameter, gradient] : llvm::zip(parameters, gradients))
      made.push_back(net.value("SGD", {parameter, rate, gradient}));
    if (isKnownLate) // collectives that run together stand behind what one of them needs
      decide();
    for (auto [parameter, value] : llvm::zip(parameters, made))
      net.builder.create<net::UpdateOp>(parameter.getLoc(), parameter, net.value("Select", {finite, value, parameter}));
    net.results({sum}, {"sum"});
    for (Operation &op : net.network.getBody().front())
      net::setPhase(&op, net::Phase::Update);
    std::vector<passes::Unit> units = passes::formUnits(net.network, {}, [](const passes::Unit &) { return true; });
    checkOrder(net.network, units);
    using Names = std::vector<std::string>;
    EXPECT_EQ(namesOf(units), isKnownLate ? (Names{"Mul_Sub_ReduceSum", "Mul_Sub_ReduceSum_Add", "Equal", "SGD_Select", "SGD_Select"})
                                 : (Names{"Mul_Sub_ReduceSum", "Mul_Sub_ReduceSum_Add_and_3_more", "SGD_Select"})); // the one that decides takes one along
  }
}

TEST(Units, RandomStepsUnderRandomFusion) {
  size_t operators = 0, formed = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    NetContext context;
    loadDist(context);
    TestNetwork net(context);
    RandomNetwork made(net, seed);
    passes::AssignStrategiesPassOptions options;
    options.devices = 1 + static_cast<int64_t>(seed % 4);
    options.datasetStrategy = "full_batch";
    ASSERT_TRUE(assignStrategies(net, options) && addTraining(net) && partitionAssigned(net)) << "seed " << seed;
    std::mt19937 random(seed);
    int64_t refusals = static_cast<int64_t>(seed % 4); // of 4 questions; 0: everything fits
    std::vector<passes::Unit> units = passes::formUnits(
        net.network, {.castsFollowReaders = seed > 300}, [&](const passes::Unit &) { return static_cast<int64_t>(random() % 4) >= refusals; });
    checkOrder(net.network, units);
    EXPECT_EQ(numberOperators(units).size(), stepsOf(net.network));
    for (const passes::Unit &unit : units) {
      EXPECT_LE(unit.ops.size(), passes::UnitOptions().maxOperators);
      operators += unit.ops.size();
    }
    formed += units.size();
  }
  EXPECT_GE(operators - formed, 500u) << "hardly anything was fused";
}

} // namespace
