#include "runtime/executor/EntryOrder.h"

#include <algorithm>

namespace msc {

void EntryOrder::join(Frontier &frontier, const Frontier &other) {
  for (const auto &[stream, entry] : other) {
    auto [at, isNew] = frontier.try_emplace(stream, entry);
    at->second = std::max(at->second, entry);
  }
}

EntryOrder::Frontier EntryOrder::before(const plan::Step &step) const {
  Frontier frontier;
  auto add = [&](const std::map<uint32_t, Frontier> &known, uint32_t key) {
    if (auto found = known.find(key); found != known.end())
      join(frontier, found->second);
  };
  add(endOfStream, step.stream());
  for (uint32_t earlier : step.after())
    add(endOfStep, earlier);
  if (step.has_wait())
    add(endOfStep, step.wait().step());
  return frontier;
}

std::vector<uint32_t> EntryOrder::othersBefore(const plan::Step &step, uint32_t stream) const {
  std::vector<uint32_t> others;
  for (const auto &[other, last] : before(step))
    if (other != stream)
      others.push_back(last);
  return others;
}

std::vector<uint32_t> EntryOrder::append(uint32_t number, const plan::Step &step, uint32_t entry) {
  std::vector<uint32_t> others = othersBefore(step, step.stream());
  // What it waits for is over for all that comes after it.
  endOfStep[number] = endOfStream[step.stream()] = {{step.stream(), entry}};
  return others;
}

std::vector<uint32_t> EntryOrder::start(uint32_t number, const plan::Step &step, uint32_t entry, uint32_t stream) {
  endOfStep[number] = {{stream, entry}};
  return othersBefore(step, stream);
}

void EntryOrder::pass(uint32_t number, const plan::Step &step) {
  endOfStep[number] = endOfStream[step.stream()] = before(step);
}

} // namespace msc
