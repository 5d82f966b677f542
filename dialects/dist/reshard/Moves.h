// Where one step can lead: for a state, the moves that the planner tries.
//
// With few axes these are all moves of every kind. With more they are those that bring a dimension closer to what the
// goal has there; matrices of several axes that the goal does not know occur with few axes only.
#pragma once

#include "dialects/dist/reshard/Frame.h"

namespace msc::dist {

struct Move {
  MoveKind kind = MoveKind::Slice;
  State after;
  AxisSet group = 0;
  /// As in ReshardStep.
  int32_t dimension = -1, splitDimension = -1;
  ReduceKind reduce = ReduceKind::Sum;
};

/// A state that the search has reached.
struct Here {
  size_t node; ///< for the sink
  State state;
  AxisLists lists;
  int64_t elements; ///< of the largest shard
};

/// Takes the moves as they are found.
class MoveSink {
public:
  virtual void offer(const Here &here, const Move &move) = 0;

protected:
  ~MoveSink() = default;
};

class Moves {
public:
  Moves(Frame &frame, const ReshardQuestion &question, MoveSink &sink);

  /// All moves; slices only where `slices`: one does what several do.
  void from(const Here &here, bool slices) const;
  /// The plainest way on: all that is to be reduced, one kind after the other, then straight to the goal. Nothing where
  /// the goal lies over another matrix.
  void towardsEnd(const Here &here) const;

private:
  using DimSet = uint32_t; ///< one bit per dimension

  void exchange(const Here &here) const;
  void offerNamed(const Here &here) const;
  void reduce(const Here &here) const;
  std::pair<AxisSet, ReduceKind> reducible(const State &state) const;
  void allReduce(const Here &here, AxisSet set, ReduceKind kind) const;
  void scatter(const Here &here, AxisSet set, ReduceKind kind) const;
  void scatterAll(const Here &here, const Move &move, AxisSet left, size_t dim, size_t added, DimSet cut) const;
  void scatterTowardsGoal(const Here &here, Move move) const;
  bool continuesGoal(const AxisLists &lists, size_t dim, const std::vector<size_t> &run) const;
  void gather(const Here &here) const;
  void allToAll(const Here &here) const;
  void permute(const Here &here) const;
  void permuteAll(const Here &here, const State &state, AxisSet left, size_t dim, size_t position,
                  int64_t product) const;
  void permuteTowardsGoal(const Here &here) const;
  void slice(const Here &here) const;
  void sliceAll(const Here &here, const State &state, AxisSet left, size_t dim, size_t added, DimSet cut) const;
  void sliceTowardsGoal(const Here &here, size_t dim, const State &state) const;
  void sliceToPiecesOfGoal(const Here &here) const;
  size_t axisAt(const State &state, uint8_t place) const;

  // Two states take equally long to the goal if renaming axes that are alike, or dimensions of one size, makes one the
  // other and leaves the goal as it is. Of moves to such states only the first is offered.
  bool isFirstOfAlike(const State &state, AxisSet among, AxisSet set) const;
  bool isFirstOfAlike(const State &state, const std::vector<size_t> &run) const;
  bool isFirstOfAlike(const Here &here, size_t dim, DimSet cut = 0) const;

  Frame &frame;
  const std::vector<int64_t> &shape;
  MoveSink &sink;
  DimSet goalCuts = 0; ///< the dimensions that the goal cuts
};

} // namespace msc::dist
