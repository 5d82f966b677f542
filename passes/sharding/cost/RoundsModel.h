// What choices of strategies cost where the rounds of a repeat may take different ones.
//
// A repeat becomes a section of a RepeatedNetwork: what its operators cost and hand each other, what a round hands to the next one,
// and what comes into the first round and leaves the last one. All prices are those of a StepModel, in which all rounds are alike; the
// two agree wherever they are.
//
// Rounds ask alike for what is there for all of them, a mask, say. A repeat stays one decision per operator where it stands in another
// one or has one in it, or hands on what it did not make.
#pragma once

#include "passes/sharding/cost/StepModel.h"
#include "passes/sharding/search/Repeat.h"

namespace msc::passes {

class RoundsModel {
public:
  /// Holds references.
  RoundsModel(const Problem &problem, StepModel &model);

  /// Whether there is a repeat of which the rounds may differ.
  bool hasSections() const { return !sections.empty(); }
  using Amounts = std::vector<std::vector<double>>; ///< [variable][option]; an empty list: nothing
  /// Its first variables are those of the model's network, one per operator at first. Lower bounds until makeExact. `added`: to what
  /// variables cost in a round.
  search::RepeatedNetwork network(const Amounts &added = {}) const;
  /// What falls to one round of amounts of the variables of the model's network; of all variables of network().
  Amounts perRound(Amounts amounts) const;
  /// Makes exact all that the assignments pay. False: it was.
  bool makeExact(std::span<const search::RepeatedChoice> choices);
  bool makeExact(const search::RepeatedChoice &choice) { return makeExact({&choice, 1}); }
  /// What starting the collectives of gradients takes, each once for all that run together. All that is paid is exact.
  double startsUs(const search::RepeatedChoice &choice) const;
  /// Of each section, which repeat of the problem it is.
  int32_t repeatOf(size_t section) const { return sections[section].repeat; }
  /// The variables of a section: its operators, ascending, then storages of parameters.
  const std::vector<int32_t> &variablesOf(size_t section) const { return sections[section].variables; }

private:
  struct Members {
    int32_t repeat = 0;
    int64_t rounds = 1;
    std::vector<int32_t> variables; ///< operators, then storages of parameters
  };
  /// Where a flow of the model happens.
  enum class Place { Outside, Entry, First, Within, Later, Carried, Exit };
  struct Where {
    Place place = Place::Outside;
    int32_t section = -1;
  };
  /// Who reads in every round what is there once: its rounds have the same of these.
  struct Reading {
    int32_t section = 0, reader = 0, variable = 0; ///< the last one stands for what it asks
    std::vector<int32_t> classOf;                  ///< of each option of the reader; those of a class ask alike and rule alike how it is stored
    std::vector<std::vector<int32_t>> items;       ///< of each class
  };

  void findSections();
  void findReadings();
  Where whereIs(const Passage &passage, int32_t maker) const;
  const Reading *readingOf(size_t flow, size_t reader) const;
  static search::Table ruleFor(const Reading &reading, const search::Table &rule);
  void addFlow(search::RepeatedNetwork &network, size_t flow) const;
  void addGradientSums(search::RepeatedNetwork &network) const;
  /// Calls `ofOwn(op, option)` and `ofFlow(flow, option of its maker, item)` for all that an assignment pays, at least once.
  template <typename OfOwn, typename OfFlow> void forAllPaid(const search::RepeatedChoice &choice, OfOwn ofOwn, OfFlow ofFlow) const;

  const Problem &problem;
  StepModel &model;
  std::vector<Members> sections;
  std::vector<int32_t> sectionOf;       ///< of each variable of the model; -1: none
  std::vector<int32_t> argumentOf;      ///< of each tensor: the section that takes it from round to round; -1: none
  std::vector<Where> places;            ///< of each flow
  std::vector<std::vector<int32_t>> readings; ///< of each flow, of each reader: which of `asked`; -1: none
  std::vector<Reading> asked;
};

} // namespace msc::passes
