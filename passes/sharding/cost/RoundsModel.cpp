#include "passes/sharding/cost/RoundsModel.h"

#include <algorithm>
#include <map>

namespace msc::passes {

using search::SharedCost;

RoundsModel::RoundsModel(const Problem &problem, StepModel &model)
    : problem(problem), model(model), sectionOf(model.network().options.size(), -1), argumentOf(problem.tensors.size(), -1) {
  findSections();
  for (size_t flow = 0; flow < model.flows().size(); ++flow)
    places.push_back(whereIs(model.flows()[flow].passage, model.flows()[flow].maker));
  findReadings();
}

RoundsModel::Amounts RoundsModel::perRound(Amounts amounts) const {
  amounts.resize(model.network().options.size() + asked.size());
  for (const Members &members : sections)
    for (int32_t variable : members.variables)
      for (double &amount : amounts[variable])
        amount /= static_cast<double>(members.rounds);
  return amounts;
}

/// Repeats of which each round is known by what it takes and what it makes.
void RoundsModel::findSections() {
  std::vector<char> isPlain(problem.repeats.size(), 1);
  std::vector<int32_t> around(problem.operators.size(), -1);
  std::vector<int32_t> madeIn(problem.tensors.size(), -1);
  for (size_t i = 0; i < problem.operators.size(); ++i) {
    const ProblemOperator &op = problem.operators[i];
    if (op.repeats.size() == 1)
      around[i] = op.repeats.front();
    else
      for (int32_t repeat : op.repeats)
        isPlain[repeat] = 0;
    for (int32_t tensor : op.results)
      madeIn[tensor] = around[i];
  }
  for (const ProblemHandover &handover : problem.handovers)
    if (handover.repeat >= 0 && !handover.crossesBorder)
      argumentOf[handover.to] = handover.repeat;
  for (const ProblemHandover &handover : problem.handovers) {
    const bool enters = handover.crossesBorder && argumentOf[handover.to] == handover.repeat;
    if (handover.repeat >= 0 && !enters && madeIn[handover.from] != handover.repeat)
      isPlain[handover.repeat] = 0; // what is handed on as it came
  }
  std::vector<int32_t> sectionOfRepeat(problem.repeats.size(), -1);
  for (size_t r = 0; r < problem.repeats.size(); ++r) {
    const int64_t rounds = problem.repeats[r].lastRound - problem.repeats[r].firstRound + 1;
    if (!isPlain[r] || rounds < 2)
      continue;
    Members members{.repeat = static_cast<int32_t>(r), .rounds = rounds, .variables = {}};
    for (size_t i = 0; i < around.size(); ++i)
      if (around[i] == members.repeat)
        members.variables.push_back(static_cast<int32_t>(i));
    if (members.variables.empty())
      continue;
    sectionOfRepeat[r] = static_cast<int32_t>(sections.size());
    for (int32_t op : members.variables)
      sectionOf[op] = sectionOfRepeat[r];
    sections.push_back(std::move(members));
  }
  for (const StepModel::Storage &storage : model.storages()) {
    const int32_t section = sectionOf[model.rules(storage).front().scope.back()]; // of any user
    if (section < 0 || problem.tensors[storage.tensor].rounds == 1)
      continue;
    sectionOf[storage.variable] = section;
    sections[section].variables.push_back(storage.variable);
  }
  for (int32_t &argument : argumentOf)
    argument = argument < 0 ? -1 : sectionOfRepeat[argument];
}

RoundsModel::Where RoundsModel::whereIs(const Passage &passage, int32_t maker) const {
  const int32_t made = maker < 0 ? -1 : sectionOf[maker];
  if (int32_t section = argumentOf[passage.tensor]; section >= 0)
    return {made == section ? Place::Carried : Place::Entry, section};
  if (made < 0)
    return {};
  if (passage.source != passage.tensor)
    return {Place::Exit, made};
  return {passage.made == Rounds::First ? Place::First : passage.made == Rounds::Later ? Place::Later : Place::Within, made};
}

/// What is there once and read in all rounds.
void RoundsModel::findReadings() {
  auto next = static_cast<int32_t>(model.network().options.size());
  for (size_t flow = 0; flow < places.size(); ++flow) {
    const std::vector<SharedCost::Reader> &readers = model.network().shared[flow].readers;
    readings.emplace_back(readers.size(), -1);
    if (places[flow].place != Place::Outside && places[flow].place != Place::Exit)
      continue;
    for (size_t r = 0; r < readers.size(); ++r) {
      if (sectionOf[readers[r].variable] < 0)
        continue;
      readings.back()[r] = static_cast<int32_t>(asked.size());
      Reading &reading = asked.emplace_back(Reading{sectionOf[readers[r].variable], readers[r].variable, next++, {}, {}});
      const auto storage = std::ranges::find(model.storages(), model.flows()[flow].maker, &StepModel::Storage::variable);
      std::map<std::pair<std::vector<int32_t>, std::vector<double>>, int32_t> classes;
      for (size_t option = 0; option < readers[r].items.size(); ++option) {
        std::vector<double> allowed;
        if (storage != model.storages().end())
          for (size_t i = option; i < model.rules(*storage)[r].costs.size(); i += readers[r].items.size())
            allowed.push_back(model.rules(*storage)[r].costs[i]);
        auto [found, isNew] = classes.try_emplace({readers[r].items[option], std::move(allowed)}, static_cast<int32_t>(classes.size()));
        if (isNew)
          reading.items.push_back(readers[r].items[option]);
        reading.classOf.push_back(found->second);
      }
    }
  }
}

const RoundsModel::Reading *RoundsModel::readingOf(size_t flow, size_t reader) const {
  const int32_t reading = readings[flow][reader];
  return reading < 0 ? nullptr : &asked[reading];
}

search::RepeatedNetwork RoundsModel::network(const Amounts &added) const {
  const search::CostNetwork &alike = model.network();
  search::RepeatedNetwork network{{alike.options, {}, {}, alike.constant}, {}};
  for (const Members &members : sections)
    network.sections.push_back({members.variables, members.rounds, {}, {}, {}, {}});
  for (const Reading &reading : asked) {
    network.network.options.push_back(static_cast<int32_t>(reading.items.size()));
    if (reading.items.size() == 1)
      continue;
    search::Table same{{reading.reader, reading.variable}, {}};
    for (int32_t made : reading.classOf)
      for (int32_t c = 0; c < static_cast<int32_t>(reading.items.size()); ++c)
        same.costs.push_back(c == made ? 0 : search::infinity);
    network.sections[reading.section].within.tables.push_back(std::move(same));
  }
  auto tablesOf = [&](int32_t section) -> std::vector<search::Table> & {
    return section < 0 ? network.network.tables : network.sections[section].within.tables;
  };
  auto addOwn = [&](int32_t variable, std::vector<double> costs) {
    const int32_t section = sectionOf[variable];
    if (section >= 0 && variable < static_cast<int32_t>(problem.operators.size()) && model.hasOwnFirstRound(variable)) {
      std::vector<double> later = model.ownCosts(variable, Rounds::Later);
      for (double &us : later)
        us /= static_cast<double>(sections[section].rounds - 1);
      network.sections[section].entry.tables.push_back({{variable}, model.ownCosts(variable, Rounds::First)});
      network.sections[section].carried.tables.push_back({{search::inNextRound(variable)}, std::move(later)});
      std::ranges::fill(costs, 0);
    }
    for (size_t option = 0; option < costs.size(); ++option) {
      if (section >= 0)
        costs[option] /= static_cast<double>(sections[section].rounds);
      if (!added.empty() && !added[variable].empty())
        costs[option] += added[variable][option];
    }
    tablesOf(section).push_back({{variable}, std::move(costs)});
  };
  for (int32_t op = 0; op < static_cast<int32_t>(problem.operators.size()); ++op)
    addOwn(op, model.ownCosts(op));
  for (size_t flow = 0; flow < places.size(); ++flow)
    addFlow(network, flow);
  addGradientSums(network);
  for (const StepModel::Storage &storage : model.storages()) {
    addOwn(storage.variable, storage.us);
    const size_t flow = std::ranges::find(model.flows(), storage.variable, &StepModel::Flow::maker) - model.flows().begin();
    const std::span<const search::Table> rules = model.rules(storage);
    for (size_t user = 0; user < rules.size(); ++user)
      if (const Reading *reading = readingOf(flow, user))
        network.network.tables.push_back(ruleFor(*reading, rules[user]));
      else
        tablesOf(sectionOf[storage.variable]).push_back(rules[user]);
  }
  return network;
}

void RoundsModel::addGradientSums(search::RepeatedNetwork &network) const {
  for (const StepModel::GradientSums &sums : model.gradientSums()) {
    const auto [place, number] = whereIs(sums.passage, sums.maker);
    search::Table table{{sums.maker}, sums.us};
    if (place == Place::Outside || (place == Place::Entry && sectionOf[sums.maker] < 0)) {
      network.network.tables.push_back(std::move(table));
      continue;
    }
    search::Section &section = network.sections[number];
    const double times = place == Place::Within ? static_cast<double>(section.rounds)
                         : place == Place::Carried || place == Place::Later ? static_cast<double>(section.rounds - 1) : 1;
    for (double &us : table.costs)
      us /= times;
    if (place == Place::Later)
      table.scope.front() = search::inNextRound(sums.maker);
    search::Terms &terms = place == Place::Within ? section.within : place == Place::Entry || place == Place::First ? section.entry
                         : place == Place::Exit ? section.exit : section.carried;
    terms.tables.push_back(std::move(table));
  }
}

/// The rule of what a reader asks for instead of one of its strategies.
search::Table RoundsModel::ruleFor(const Reading &reading, const search::Table &rule) {
  const size_t options = reading.classOf.size(), classes = reading.items.size();
  search::Table made{{rule.scope.front(), reading.variable}, std::vector<double>(rule.costs.size() / options * classes)};
  for (size_t i = 0; i < rule.costs.size(); ++i)
    made.costs[i / options * classes + reading.classOf[i % options]] = rule.costs[i];
  return made;
}

void RoundsModel::addFlow(search::RepeatedNetwork &network, size_t flow) const {
  const auto [place, number] = places[flow];
  const StepModel::Flow &way = model.flows()[flow];
  SharedCost cost = model.network().shared[flow];
  search::Terms outside;
  search::Terms *terms = &outside;
  if (place != Place::Outside) {
    search::Section &section = network.sections[number];
    terms = place == Place::Entry || place == Place::First ? &section.entry : place == Place::Within ? &section.within
          : place == Place::Carried || place == Place::Later ? &section.carried : &section.exit;
    if (place == Place::Within)
      cost.times /= static_cast<double>(section.rounds);
    if (place == Place::Carried || place == Place::Later)
      cost.times /= static_cast<double>(section.rounds - 1);
  }
  for (size_t r = 0; r < cost.readers.size(); ++r) {
    SharedCost::Reader &reader = cost.readers[r];
    if (place == Place::Carried || place == Place::Later)
      reader.variable = search::inNextRound(reader.variable);
    if (const Reading *reading = readingOf(flow, r))
      reader = {reading->variable, reading->items};
  }
  if (place == Place::Later)
    cost.producer = search::inNextRound(cost.producer);
  else if (way.maker >= 0 && cost.producer != way.maker) { // it reads what it made in the round before
    if (place == Place::Carried) {
      cost.producer = way.maker;
      cost.producerClass = way.classes;
    } else {
      search::Table same{{way.maker, cost.producer}, {}};
      for (int32_t made : way.classes)
        for (int32_t c = 0; c < static_cast<int32_t>(cost.costs.size()); ++c)
          same.costs.push_back(c == made ? 0 : search::infinity);
      terms->tables.push_back(std::move(same));
    }
  }
  terms->shared.push_back(std::move(cost));
  if (terms == &outside) {
    std::ranges::move(outside.tables, std::back_inserter(network.network.tables));
    std::ranges::move(outside.shared, std::back_inserter(network.network.shared));
  }
}

template <typename OfOwn, typename OfFlow>
void RoundsModel::forAllPaid(const search::RepeatedChoice &choice, OfOwn ofOwn, OfFlow ofFlow) const {
  std::vector<int32_t> position(sectionOf.size());
  for (const Members &members : sections)
    for (size_t i = 0; i < members.variables.size(); ++i)
      position[members.variables[i]] = static_cast<int32_t>(i);
  // `own`: of an operator of that section, in that run; of others in their first round or, where `isLast`, in their last one.
  auto optionOf = [&](int32_t op, int32_t own, const search::Run *run, bool isLast) {
    const int32_t section = op < static_cast<int32_t>(sectionOf.size()) ? sectionOf[op] : -1;
    if (section < 0)
      return choice.choice[op];
    const std::vector<search::Run> &runs = choice.runs[section];
    const search::Run &taken = section == own && run ? *run : isLast ? runs.back() : runs.front();
    return taken.options[position[op]];
  };
  auto pay = [&](size_t flow, const search::Run *from, const search::Run *to) {
    const StepModel::Flow &way = model.flows()[flow];
    const int32_t section = places[flow].section;
    const int32_t made = way.classOf(way.maker < 0 ? 0 : optionOf(way.maker, section, from, /*isLast=*/true));
    for (const SharedCost::Reader &reader : model.network().shared[flow].readers)
      for (int32_t item : reader.items[optionOf(reader.variable, section, to, /*isLast=*/false)])
        ofFlow(flow, made, item);
  };
  for (size_t op = 0; op < problem.operators.size(); ++op)
    if (sectionOf[op] < 0)
      ofOwn(op, choice.choice[op]);
    else
      for (const search::Run &run : choice.runs[sectionOf[op]])
        ofOwn(op, run.options[position[op]]);
  for (size_t flow = 0; flow < places.size(); ++flow) {
    const auto [place, section] = places[flow];
    if (place == Place::First) {
      pay(flow, &choice.runs[section].front(), &choice.runs[section].front());
    } else if (place == Place::Within || place == Place::Later || place == Place::Carried) {
      const std::vector<search::Run> &runs = choice.runs[section];
      for (size_t r = 0; r < runs.size(); ++r) {
        if (place == Place::Within || runs[r].rounds > 1 || (place == Place::Later && r > 0))
          pay(flow, &runs[r], &runs[r]);
        if (place == Place::Carried && r + 1 < runs.size())
          pay(flow, &runs[r], &runs[r + 1]);
      }
    } else {
      const bool leaves = place == Place::Exit;
      pay(flow, leaves ? &choice.runs[section].back() : nullptr, nullptr);
    }
  }
}

bool RoundsModel::makeExact(std::span<const search::RepeatedChoice> choices) {
  bool changes = false;
  for (const search::RepeatedChoice &choice : choices)
    forAllPaid(choice, [&](size_t op, int32_t option) { changes |= model.makeOwnExact(op, option); },
               [&](size_t flow, int32_t made, int32_t item) { changes |= model.makeExact(flow, made, item); });
  if (changes)
    model.refresh();
  return changes;
}

double RoundsModel::startsUs(const search::RepeatedChoice &choice) const {
  StepModel::Starts starts;
  forAllPaid(choice, [&](size_t op, int32_t option) { model.addStarts(op, option, starts); },
             [&](size_t flow, int32_t made, int32_t item) { model.addStarts(flow, made, item, starts); });
  double us = 0;
  for (auto [bucket, start] : starts)
    us += start;
  return us;
}

} // namespace msc::passes
