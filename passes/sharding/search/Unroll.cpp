// What repeated networks mean: rounds one after the other.
#include "passes/sharding/search/TermsMap.h"

#include <algorithm>

namespace msc::search {

namespace {

/// Where each variable belongs.
struct Membership {
  std::vector<int32_t> section;  ///< of each variable; -1: none
  std::vector<int32_t> position; ///< in it

  explicit Membership(const RepeatedNetwork &network)
      : section(network.network.options.size(), -1), position(network.network.options.size()) {
    for (size_t s = 0; s < network.sections.size(); ++s)
      for (size_t i = 0; i < network.sections[s].variables.size(); ++i) {
        section[network.sections[s].variables[i]] = static_cast<int32_t>(s);
        position[network.sections[s].variables[i]] = static_cast<int32_t>(i);
      }
  }
};

/// Numbers of variables in an unrolled network.
struct Numbering {
  const RepeatedNetwork &network;
  const Unrolled &unrolled;
  Membership member;

  int32_t at(int32_t variable, int64_t round) const {
    const int32_t s = member.section[variable];
    if (s < 0 || round == 0)
      return variable;
    return unrolled.later[s] + static_cast<int32_t>((round - 1) * network.sections[s].variables.size()) +
           member.position[variable];
  }

  /// What a section's term in `round` means by a reference.
  int32_t operator()(int32_t reference, int32_t ownSection, int64_t round) const {
    if (reference < 0)
      return at(~reference, round + 1);
    const int32_t s = member.section[reference];
    if (s == ownSection)
      return at(reference, round);
    return at(reference, s >= 0 && s < ownSection ? network.sections[s].rounds - 1 : 0);
  }
};

/// Of each section: its first variable behind the first round.
std::vector<int32_t> laterOf(const RepeatedNetwork &network) {
  std::vector<int32_t> later;
  auto next = static_cast<int64_t>(network.network.options.size());
  for (const Section &section : network.sections) {
    later.push_back(static_cast<int32_t>(next));
    next += (section.rounds - 1) * static_cast<int64_t>(section.variables.size());
  }
  return later;
}

} // namespace

Unrolled unroll(const RepeatedNetwork &network) {
  Unrolled unrolled{network.network, laterOf(network)};
  std::vector<int32_t> &options = unrolled.network.options;
  for (const Section &section : network.sections)
    for (int64_t round = 1; round < section.rounds; ++round)
      for (int32_t variable : section.variables)
        options.push_back(options[variable]);
  Numbering numbering{network, unrolled, Membership(network)};
  for (size_t s = 0; s < network.sections.size(); ++s) {
    const Section &section = network.sections[s];
    auto add = [&](const Terms &terms, int64_t round) {
      append(unrolled.network, terms, [&](int32_t reference) { return numbering(reference, int32_t(s), round); });
    };
    add(section.entry, 0);
    for (int64_t round = 0; round < section.rounds; ++round) {
      add(section.within, round);
      if (round + 1 < section.rounds)
        add(section.carried, round);
    }
    add(section.exit, section.rounds - 1);
  }
  return unrolled;
}

RepeatedChoice rolled(const RepeatedNetwork &network, const Unrolled &unrolled, const Choice &choice) {
  RepeatedChoice result{Choice(choice.begin(), choice.begin() + network.network.options.size()), {}};
  Numbering numbering{network, unrolled, Membership(network)};
  for (const Section &section : network.sections) {
    std::vector<Run> &runs = result.runs.emplace_back();
    for (int64_t round = 0; round < section.rounds; ++round) {
      Choice options;
      for (int32_t variable : section.variables)
        options.push_back(choice[numbering.at(variable, round)]);
      if (runs.empty() || runs.back().options != options)
        runs.push_back({0, std::move(options)});
      ++runs.back().rounds;
    }
  }
  return result;
}

std::vector<std::vector<int32_t>> variablesInRounds(const RepeatedNetwork &network) {
  const Unrolled unrolled{{}, laterOf(network)};
  const Numbering numbering{network, unrolled, Membership(network)};
  std::vector<std::vector<int32_t>> variables(network.network.options.size());
  for (int32_t variable = 0; variable < static_cast<int32_t>(variables.size()); ++variable) {
    const int32_t section = numbering.member.section[variable];
    for (int64_t round = 0; round < (section < 0 ? 1 : network.sections[section].rounds); ++round)
      variables[variable].push_back(numbering.at(variable, round));
  }
  return variables;
}

Choice unrolledChoice(const RepeatedNetwork &network, const std::vector<std::vector<int32_t>> &inRounds, const RepeatedChoice &choice) {
  Choice options;
  for (size_t variable = 0; variable < inRounds.size(); ++variable) {
    options.resize(std::max(options.size(), static_cast<size_t>(inRounds[variable].back()) + 1));
    options[inRounds[variable].front()] = choice.choice[variable];
  }
  for (size_t section = 0; section < network.sections.size(); ++section) {
    int64_t round = 0;
    for (const Run &run : choice.runs[section])
      for (int64_t end = round + run.rounds; round < end; ++round)
        for (size_t i = 0; i < run.options.size(); ++i)
          options[inRounds[network.sections[section].variables[i]][round]] = run.options[i];
  }
  return options;
}

CostNetwork tied(const RepeatedNetwork &network) {
  CostNetwork result = network.network;
  for (const Section &section : network.sections) {
    append(result, section.entry, variableOf);
    append(result, section.within, variableOf, double(section.rounds));
    if (section.rounds > 1)
      append(result, section.carried, variableOf, double(section.rounds - 1));
    append(result, section.exit, variableOf);
  }
  return result;
}

EndsApart::EndsApart(const RepeatedNetwork &network) : costs(network.network), count(network.network.options.size()) {
  Membership member(network);
  for (const Section &section : network.sections) {
    std::vector<Part> &list = parts.emplace_back();
    list.push_back({1, section.variables});
    for (int64_t rounds : {section.rounds - 2, int64_t(1)}) {
      if (section.rounds == 1 || rounds == 0)
        continue;
      Part &part = list.emplace_back(Part{rounds, {}});
      for (int32_t variable : section.variables) {
        part.variables.push_back(static_cast<int32_t>(costs.options.size()));
        costs.options.push_back(network.network.options[variable]);
      }
    }
  }
  for (int32_t s = 0; s < static_cast<int32_t>(parts.size()); ++s) {
    const Section &section = network.sections[s];
    auto add = [&](const Terms &terms, const Part &here, const Part &next, int64_t times) {
      append(costs, terms, [&](int32_t reference) {
        const int32_t variable = variableOf(reference), other = member.section[variable], position = member.position[variable];
        if (other < 0)
          return variable;
        return (other != s ? (other < s ? parts[other].back() : parts[other].front()) : reference < 0 ? next : here).variables[position];
      }, static_cast<double>(times));
    };
    for (size_t p = 0; p < parts[s].size(); ++p) {
      const Part &part = parts[s][p];
      add(section.within, part, part, part.rounds);
      if (part.rounds > 1)
        add(section.carried, part, part, part.rounds - 1);
      if (p + 1 < parts[s].size())
        add(section.carried, part, parts[s][p + 1], 1);
    }
    add(section.entry, parts[s].front(), parts[s].front(), 1);
    add(section.exit, parts[s].back(), parts[s].back(), 1);
  }
}

RepeatedChoice EndsApart::rolled(const Choice &choice) const {
  RepeatedChoice result{Choice(choice.begin(), choice.begin() + static_cast<ptrdiff_t>(count)), {}};
  for (const std::vector<Part> &list : parts) {
    std::vector<Run> &runs = result.runs.emplace_back();
    for (const Part &part : list) {
      Run run{part.rounds, {}};
      for (int32_t variable : part.variables)
        run.options.push_back(choice[variable]);
      if (!runs.empty() && runs.back().options == run.options)
        runs.back().rounds += run.rounds;
      else
        runs.push_back(std::move(run));
    }
  }
  return result;
}

static RepeatedChoice untied(const RepeatedNetwork &network, Choice choice) {
  RepeatedChoice result{std::move(choice), {}};
  for (const Section &section : network.sections) {
    Run run{section.rounds, {}};
    for (int32_t variable : section.variables)
      run.options.push_back(result.choice[variable]);
    result.runs.push_back({std::move(run)});
  }
  return result;
}

RepeatedSolution solveTied(const RepeatedNetwork &network, const SolveLimits &limits) {
  Solution solution = solveExactly(tied(network), limits);
  return {untied(network, solution.choice), solution};
}

namespace {

/// A choice of some rounds of each section, each standing for itself.
struct Sample {
  const RepeatedNetwork &network;
  const RepeatedChoice &choice;
  Membership member{network};

  const Run &first(int32_t section) const { return choice.runs[section].front(); }
  const Run &last(int32_t section) const { return choice.runs[section].back(); }

  /// Cost of terms of section s, if its variables are as in `here` and those of the next round as in `next`.
  double operator()(const Terms &terms, int32_t s, const Run &here, const Run &next) const {
    // Behind the variables stand those of the next round.
    const int32_t count = static_cast<int32_t>(network.network.options.size());
    CostNetwork part{network.network.options, {}, {}, 0};
    part.options.insert(part.options.end(), network.network.options.begin(), network.network.options.end());
    Choice all(2 * count);
    for (int32_t variable = 0; variable < count; ++variable) {
      const int32_t other = member.section[variable], position = member.position[variable];
      all[variable] = other < 0    ? choice.choice[variable]
                      : other == s ? here.options[position]
                      : other < s  ? last(other).options[position]
                                   : first(other).options[position];
      if (other == s)
        all[count + variable] = next.options[position];
    }
    append(part, terms, [&](int32_t reference) { return reference < 0 ? count + ~reference : reference; });
    return costOf(part, all);
  }
};

} // namespace

double costOf(const RepeatedNetwork &network, const RepeatedChoice &choice) {
  double sum = costOf(network.network, choice.choice);
  Sample cost{network, choice};
  for (int32_t s = 0; s < static_cast<int32_t>(network.sections.size()); ++s) {
    const Section &section = network.sections[s];
    const std::vector<Run> &runs = choice.runs[s];
    sum += cost(section.entry, s, runs.front(), runs.front()) + cost(section.exit, s, runs.back(), runs.back());
    for (size_t r = 0; r < runs.size(); ++r) {
      sum += double(runs[r].rounds) * cost(section.within, s, runs[r], runs[r]);
      if (runs[r].rounds > 1)
        sum += double(runs[r].rounds - 1) * cost(section.carried, s, runs[r], runs[r]);
      if (r + 1 < runs.size())
        sum += cost(section.carried, s, runs[r], runs[r + 1]);
    }
  }
  return sum;
}

} // namespace msc::search
