#include "compiler/Rounds.h"

#include <tuple>

namespace msc::compiler {

std::string roundsText(const std::set<int64_t> &rounds, int64_t of) {
  if (static_cast<int64_t>(rounds.size()) == of)
    return "x " + std::to_string(of);
  std::string text;
  for (auto at = rounds.begin(); at != rounds.end();) {
    int64_t first = *at, last = first;
    for (++at; at != rounds.end() && *at == last + 1; ++at)
      ++last;
    text += text.empty() ? "" : ", ";
    if (first < last)
      text += std::to_string(first + 1) + ".." + std::to_string(last + 1);
    else
      text += first == 0 ? "first" : first == of - 1 ? "last" : std::to_string(first + 1);
  }
  return text;
}

std::vector<CollectiveInRounds> inRounds(const std::vector<CollectiveFacts> &collectives, const Findings &findings) {
  using Kind = std::tuple<std::string, std::string, std::string, const void *, uint64_t>;
  std::vector<CollectiveInRounds> result;
  std::map<std::pair<Kind, int64_t>, size_t> known; // a round may have several of a kind
  std::map<std::pair<Kind, int64_t>, int64_t> count; // by round
  for (const CollectiveFacts &facts : collectives) {
    auto found = findings.rounds.find(facts.cause);
    if (found == findings.rounds.end() || facts.tensors > 1) { // those may be of all rounds
      result.push_back({facts, {}, 1});
      continue;
    }
    const passes::Round &at = found->second;
    Kind kind{at.body, facts.phase, facts.kind, facts.groups.get(), facts.bytes};
    auto [entry, isNew] = known.try_emplace({kind, count[{kind, at.round}]++}, result.size());
    if (isNew)
      result.push_back({facts, {}, at.rounds});
    result[entry->second].rounds.insert(at.round);
  }
  return result;
}

} // namespace msc::compiler
