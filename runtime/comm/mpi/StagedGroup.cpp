#include "runtime/comm/mpi/StagedGroup.h"
#include "runtime/comm/Reduce.h"
#include "runtime/comm/Region.h"
#include "runtime/comm/mpi/Stream.h"

#include <algorithm>

namespace msc::comm {

char *Staging::base(int64_t rank) const {
  size_t index = std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
  return memory + index * bytesPerRank(ranks.size());
}

std::span<const void *const> StagedGroup::portions(int64_t turn, int64_t offset) {
  sourceList.clear();
  for (int m = 0; m < size(); ++m)
    sourceList.push_back(portion(m, turn) + offset);
  return sourceList;
}

Status StagedGroup::allReduce(const void *source, void *target, int64_t count, ElementType type, ReduceKind kind,
                              const OperationLabel &label) {
  if (Status valid = checkReducible(type, label); !valid)
    return valid;
  int64_t size = static_cast<int64_t>(elementSize(type)), bytes = count * size;
  if (fitsInline(bytes))
    return allReduceInline(source, target, count, type, kind, label);
  meeting.prepare(Operation::AllReduce, count, type, kind, label);
  const int64_t perRound = kPortionBytes / size, rounds = (count + perRound - 1) / perRound;
  const bool stream = bytes >= kStreamBytes;
  auto length = [&](int64_t round) { return std::min(perRound, count - round * perRound); };
  auto copyIn = [&](int64_t round) {
    copyBytes(portion(rank(), round), static_cast<const char *>(source) + round * kPortionBytes, length(round) * size);
  };
  copyIn(0);
  for (int64_t round = 0; round < rounds; ++round) {
    if (Status met = arrive(round); !met)
      return met;
    // The owner's sum takes the place of its own term, which nobody else reads.
    Range own = pieceOf(length(round), rank(), this->size());
    void *sum = portion(rank(), round);
    reduceOrdered(portions(round, 0), {&sum, 1}, own.begin, own.end, type, kind, false);
    if (Status met = meeting.sync(); !met)
      return met;
    for (int m = 0; m < this->size(); ++m) {
      Range piece = pieceOf(length(round), m, this->size());
      copyBytes(static_cast<char *>(target) + round * kPortionBytes + piece.begin * size,
                portion(m, round) + piece.begin * size, piece.size() * size, stream);
    }
    if (round + 1 < rounds)
      copyIn(round + 1);
  }
  return meeting.part();
}

Status StagedGroup::reduceScatter(const void *source, void *target, std::span<const Region> pieces, ElementType type,
                                  ReduceKind kind, const OperationLabel &label) {
  if (Status valid = checkReducible(type, label); !valid)
    return valid;
  int64_t count = 0, longest = 0, size = static_cast<int64_t>(elementSize(type));
  for (const Region &piece : pieces) {
    count += piece.count();
    longest = std::max(longest, piece.count());
  }
  meeting.prepare(Operation::ReduceScatter, count, type, kind, label);
  // A portion holds the next part of every member's piece, side by side.
  const int64_t perPiece = std::max<int64_t>(1, (kPortionBytes / size / this->size()) & ~int64_t{15});
  const int64_t rounds = std::max<int64_t>(1, (longest + perPiece - 1) / perPiece);
  for (int64_t round = 0; round < rounds; ++round) {
    int64_t begin = round * perPiece;
    for (int m = 0; m < this->size(); ++m)
      packRegion(portion(rank(), round) + m * perPiece * size, source, pieces[m], std::min(begin, pieces[m].count()),
                 std::min(begin + perPiece, pieces[m].count()), size);
    if (Status met = arrive(round); !met)
      return met;
    int64_t own = std::min(perPiece, pieces[rank()].count() - begin);
    void *to = static_cast<char *>(target) + begin * size;
    if (own > 0)
      reduceOrdered(portions(round, rank() * perPiece * size), {&to, 1}, 0, own, type, kind, false);
  }
  return meeting.part();
}

uint64_t StagedGroup::fillTable(const ExchangePlan &plan) {
  uint64_t *table = staging.table(members()[rank()]);
  uint64_t at = 0, bytes = elementSize(plan.type);
  for (int m = 0; m < size(); ++m) {
    table[m] = at;
    if (m != rank())
      at += countWith(plan.sends, m) * bytes;
  }
  return table[size()] = at;
}

Status StagedGroup::checkTables(const ExchangePlan &plan, const OperationLabel &label) {
  int64_t bytes = static_cast<int64_t>(elementSize(plan.type));
  for (int m = 0; m < size(); ++m) {
    const uint64_t *table = staging.table(members()[m]);
    int64_t expected = countWith(plan.receives, m), sent = static_cast<int64_t>(table[rank() + 1] - table[rank()]) / bytes;
    if (m == rank())
      sent = countWith(plan.sends, m);
    if (expected != sent)
      return meeting.failWith(exchangeMismatchError(members()[rank()], expected, members()[m], sent, label.name));
  }
  return Status::ok();
}

void StagedGroup::packSends(const void *source, const ExchangePlan &plan, int64_t round) {
  const uint64_t *table = staging.table(members()[rank()]);
  int64_t from = round * kPortionBytes, size = static_cast<int64_t>(elementSize(plan.type));
  for (int m = 0; m < this->size(); ++m) {
    int64_t begin = std::max<int64_t>(from, table[m]), end = std::min<int64_t>(from + kPortionBytes, table[m + 1]);
    if (begin < end)
      packStream(portion(rank(), round) + (begin - from), source, plan.sends, m, begin - table[m], end - table[m], size);
  }
}

void StagedGroup::unpackReceives(void *target, const ExchangePlan &plan, int64_t round) {
  int64_t from = round * kPortionBytes, size = static_cast<int64_t>(elementSize(plan.type));
  for (int i = 1; i < this->size(); ++i) {
    int m = (rank() + i) % this->size();
    const uint64_t *table = staging.table(members()[m]);
    int64_t start = table[rank()];
    int64_t begin = std::max(from, start), end = std::min<int64_t>(from + kPortionBytes, table[rank() + 1]);
    if (begin < end)
      unpackStream(target, plan.receives, m, portion(m, round) + (begin - from), begin - start, end - start, size);
  }
}

Status StagedGroup::exchange(const void *source, void *target, const ExchangePlan &plan,
                             const OperationLabel &label) {
  Publication &own = meeting.prepare(Operation::Exchange, 0, plan.type, ReduceKind::Sum, label);
  own.extra = fillTable(plan);
  packSends(source, plan, 0);
  if (Status met = meeting.meet(false); !met)
    return met;
  if (Status valid = checkTables(plan, label); !valid)
    return valid;
  int64_t longest = 0;
  for (int m = 0; m < size(); ++m)
    longest = std::max<int64_t>(longest, meeting.peer(m).extra);
  int64_t rounds = (longest + kPortionBytes - 1) / kPortionBytes;
  copyOwn(target, source, plan, rank());
  for (int64_t round = 0; round < rounds; ++round) {
    if (round > 0) {
      packSends(source, plan, round);
      if (Status met = meeting.sync(); !met)
        return met;
    }
    unpackReceives(target, plan, round);
  }
  return meeting.part();
}

Status StagedGroup::broadcast(void *data, size_t bytes, int root, const OperationLabel &label) {
  meeting.prepare(Operation::Broadcast, static_cast<int64_t>(bytes), ElementType::Bool, ReduceKind::Sum, label, root);
  int64_t total = static_cast<int64_t>(bytes), rounds = std::max<int64_t>(1, (total + kPortionBytes - 1) / kPortionBytes);
  for (int64_t round = 0; round < rounds; ++round) {
    int64_t count = std::min(kPortionBytes, total - round * kPortionBytes);
    char *own = static_cast<char *>(data) + round * kPortionBytes;
    if (rank() == root)
      copyBytes(portion(root, round), own, count);
    if (Status met = arrive(round); !met)
      return met;
    if (rank() != root)
      copyBytes(own, portion(root, round), count);
  }
  return meeting.part();
}

} // namespace msc::comm
