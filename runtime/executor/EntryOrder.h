// What the entries of a sequence have to wait for, out of the order of a plan's steps.
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <map>
#include <vector>

namespace msc {

/// Follows the steps of a variant in their order. A step becomes one entry, several, or none where it does nothing on a rank or
/// waits for a collective; what comes after such a step comes after all that it comes after.
class EntryOrder {
public:
  /// Entries of other streams that an entry of `step`, which is appended now, has to wait for. `entry`: its number.
  std::vector<uint32_t> append(uint32_t number, const plan::Step &step, uint32_t entry);
  /// The same for an asynchronous collective, whose entry is on `stream`: what follows on the step's own stream does not wait for
  /// it before its wait comes.
  std::vector<uint32_t> start(uint32_t number, const plan::Step &step, uint32_t entry, uint32_t stream);
  /// A step without an entry.
  void pass(uint32_t number, const plan::Step &step);
  /// Nothing so far is a part of the sequence that begins now.
  void restart() { *this = {}; }

private:
  /// The last entry of each stream that has to be over.
  using Frontier = std::map<uint32_t, uint32_t>;
  static void join(Frontier &frontier, const Frontier &other);
  Frontier before(const plan::Step &step) const;
  std::vector<uint32_t> othersBefore(const plan::Step &step, uint32_t stream) const;

  std::map<uint32_t, Frontier> endOfStep, endOfStream;
};

} // namespace msc
