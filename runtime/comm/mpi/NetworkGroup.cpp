#include "runtime/comm/mpi/NetworkGroup.h"
#include "runtime/comm/Reduce.h"
#include "runtime/comm/mpi/Stream.h"

#include <algorithm>
#include <cstring>

namespace msc::comm {

NetworkGroup::NetworkGroup(SharedRun &run, Connection &connection, std::vector<int64_t> members)
    : run(run), connection(connection), ranks(std::move(members)), outgoing(ranks.size()), incoming(ranks.size()) {
  own = static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), run.rank()) - ranks.begin());
}

char *NetworkGroup::scratch(std::vector<char> &memory, int64_t bytes) {
  if (static_cast<int64_t>(memory.size()) < bytes)
    memory.resize(bytes);
  return memory.data();
}

OperationRecord NetworkGroup::next(Operation operation, int64_t count, ElementType type, ReduceKind kind,
                                   const OperationLabel &label, int root) {
  OperationRecord record = makeRecord(operation, ++operations, count, type, kind, label, root);
  run.enter(record);
  return record;
}

Status NetworkGroup::finish(Status status) {
  run.exit();
  return status;
}

Error NetworkGroup::failWith(const Error &error) {
  run.fail(-1, error);
  connection.spreadFailure();
  run.exit();
  return *run.failure();
}

Status NetworkGroup::hello(const OperationRecord &record, size_t payload) {
  if (run.hasFailed())
    return finish(*run.failure());
  for (int m = 0; m < size(); ++m) {
    outgoing[m].record = record;
    if (m == own)
      continue;
    connection.receive(&incoming[m], sizeof(Hello), ranks[m]);
    connection.send(&outgoing[m], static_cast<int64_t>(sizeof(OperationRecord) + payload), ranks[m]);
  }
  incoming[own] = outgoing[own];
  if (Status done = connection.wait(record); !done)
    return done;
  for (int m = 1; m < size(); ++m)
    if (!incoming[0].record.agreesWith(incoming[m].record))
      return failWith(mismatchError(ranks[0], incoming[0].record, ranks[m], incoming[m].record));
  return Status::ok();
}

Status NetworkGroup::allReduce(const void *source, void *target, int64_t count, ElementType type, ReduceKind kind,
                               const OperationLabel &label) {
  if (Status valid = checkReducible(type, label); !valid)
    return valid;
  OperationRecord record = next(Operation::AllReduce, count, type, kind, label);
  int64_t size = static_cast<int64_t>(elementSize(type)), bytes = count * size;
  bool small = bytes <= static_cast<int64_t>(kInlineBytes);
  if (small)
    for (Hello &to : outgoing)
      copyBytes(to.data, source, bytes);
  if (Status met = hello(record, small ? bytes : 0); !met)
    return met;
  std::vector<const void *> terms;
  if (small) {
    for (const Hello &from : incoming)
      terms.push_back(from.data);
    reduceOrdered(terms, {&target, 1}, 0, count, type, kind, false);
    return finish(Status::ok());
  }
  // To each owner its piece, added there in rank order, and the sums back to all.
  Range piece = pieceOf(count, own, this->size());
  int64_t pieceBytes = piece.size() * size;
  char *received = scratch(receiveMemory, pieceBytes * this->size());
  auto *from = static_cast<const char *>(source);
  for (int m = 0; m < this->size(); ++m) {
    terms.push_back(m == own ? from + piece.begin * size : received + m * pieceBytes);
    if (m == own)
      continue;
    Range theirs = pieceOf(count, m, this->size());
    connection.receive(received + m * pieceBytes, pieceBytes, ranks[m]);
    connection.send(from + theirs.begin * size, theirs.size() * size, ranks[m]);
  }
  if (Status moved = connection.wait(record); !moved)
    return moved;
  void *sum = static_cast<char *>(target) + piece.begin * size;
  reduceOrdered(terms, {&sum, 1}, 0, piece.size(), type, kind, false);
  for (int m = 0; m < this->size(); ++m) {
    if (m == own)
      continue;
    Range theirs = pieceOf(count, m, this->size());
    connection.receive(static_cast<char *>(target) + theirs.begin * size, theirs.size() * size, ranks[m]);
    connection.send(sum, pieceBytes, ranks[m]);
  }
  return finish(connection.wait(record));
}

Status NetworkGroup::reduceScatter(const void *source, void *target, std::span<const Region> pieces, ElementType type,
                                   ReduceKind kind, const OperationLabel &label) {
  if (Status valid = checkReducible(type, label); !valid)
    return valid;
  int64_t count = 0, size = static_cast<int64_t>(elementSize(type));
  for (const Region &piece : pieces)
    count += piece.count();
  OperationRecord record = next(Operation::ReduceScatter, count, type, kind, label);
  if (Status met = hello(record, 0); !met)
    return met;
  int64_t ownBytes = pieces[own].count() * size;
  char *received = scratch(receiveMemory, ownBytes * this->size());
  char *packed = scratch(sendMemory, count * size);
  std::vector<const void *> terms;
  for (int m = 0; m < this->size(); ++m) {
    int64_t elements = pieces[m].count();
    packRegion(packed, source, pieces[m], 0, elements, size);
    terms.push_back(m == own ? packed : received + m * ownBytes);
    if (m != own) {
      connection.receive(received + m * ownBytes, ownBytes, ranks[m]);
      connection.send(packed, elements * size, ranks[m]);
    }
    packed += elements * size;
  }
  if (Status moved = connection.wait(record); !moved)
    return moved;
  reduceOrdered(terms, {&target, 1}, 0, pieces[own].count(), type, kind, false);
  return finish(Status::ok());
}

Status NetworkGroup::exchange(const void *source, void *target, const ExchangePlan &plan,
                              const OperationLabel &label) {
  OperationRecord record = next(Operation::Exchange, 0, plan.type, ReduceKind::Sum, label);
  for (int m = 0; m < size(); ++m) {
    int64_t count = countWith(plan.sends, m);
    memcpy(outgoing[m].data, &count, sizeof(count));
  }
  if (Status met = hello(record, sizeof(int64_t)); !met)
    return met;
  for (int m = 0; m < size(); ++m) {
    int64_t expected = countWith(plan.receives, m), sent = 0;
    memcpy(&sent, incoming[m].data, sizeof(sent));
    if (expected != sent)
      return failWith(exchangeMismatchError(ranks[own], expected, ranks[m], sent, label.name));
  }
  return finish(moveExchange(source, target, plan, record));
}

Status NetworkGroup::moveExchange(const void *source, void *target, const ExchangePlan &plan,
                                  const OperationRecord &record) {
  int64_t size = static_cast<int64_t>(elementSize(plan.type)), sent = 0, received = 0;
  auto bytesWith = [&](const std::vector<Transfer> &transfers, int m) { return countWith(transfers, m) * size; };
  for (int m = 0; m < this->size(); ++m) {
    sent += bytesWith(plan.sends, m);
    received += bytesWith(plan.receives, m);
  }
  char *out = scratch(sendMemory, sent), *in = scratch(receiveMemory, received);
  for (int m = 0; m < this->size(); ++m) {
    int64_t toPeer = bytesWith(plan.sends, m), fromPeer = bytesWith(plan.receives, m);
    if (m == own)
      continue;
    if (fromPeer)
      connection.receive(in, fromPeer, ranks[m]);
    packStream(out, source, plan.sends, m, 0, toPeer, size);
    if (toPeer)
      connection.send(out, toPeer, ranks[m]);
    in += fromPeer;
    out += toPeer;
  }
  copyOwn(target, source, plan, own);
  if (Status moved = connection.wait(record); !moved)
    return moved;
  in = receiveMemory.data();
  for (int m = 0; m < this->size(); ++m) {
    if (m == own)
      continue;
    int64_t fromPeer = bytesWith(plan.receives, m);
    unpackStream(target, plan.receives, m, in, 0, fromPeer, size);
    in += fromPeer;
  }
  return Status::ok();
}

Status NetworkGroup::barrier(const OperationLabel &label) {
  return finish(hello(next(Operation::Barrier, 0, ElementType::F32, ReduceKind::Sum, label), 0));
}

Status NetworkGroup::broadcast(void *data, size_t bytes, int root, const OperationLabel &label) {
  OperationRecord record = next(Operation::Broadcast, static_cast<int64_t>(bytes), ElementType::Bool, ReduceKind::Sum,
                                label, root);
  bool small = bytes <= kInlineBytes;
  if (small && own == root)
    for (Hello &to : outgoing)
      copyBytes(to.data, data, bytes);
  if (Status met = hello(record, small ? bytes : 0); !met)
    return met;
  if (small) {
    if (own != root)
      copyBytes(data, incoming[root].data, bytes);
    return finish(Status::ok());
  }
  if (own != root)
    connection.receive(data, static_cast<int64_t>(bytes), ranks[root]);
  else
    for (int m = 0; m < size(); ++m)
      if (m != own)
        connection.send(data, static_cast<int64_t>(bytes), ranks[m]);
  return finish(connection.wait(record));
}

} // namespace msc::comm
