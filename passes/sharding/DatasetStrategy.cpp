#include "passes/sharding/DatasetStrategy.h"

#include <cctype>

namespace msc::passes {

namespace {

/// Characters of a nested tuple of integers, blanks skipped.
class TupleReader {
public:
  explicit TupleReader(const std::string &text) : text(text) {}

  std::optional<net::Strategy> strategy() {
    net::Strategy result;
    if (!take('('))
      return std::nullopt;
    while (!take(')')) {
      auto tuple = integers();
      if (!tuple)
        return std::nullopt;
      result.push_back(std::move(*tuple));
      if (!take(',') && peek() != ')')
        return std::nullopt;
    }
    return peek() == '\0' ? std::optional(std::move(result)) : std::nullopt;
  }

private:
  const std::string &text;
  size_t at = 0;

  char peek() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
    return at < text.size() ? text[at] : '\0';
  }
  bool take(char wanted) {
    bool found = peek() == wanted;
    at += found;
    return found;
  }
  std::optional<std::vector<int64_t>> integers() {
    std::vector<int64_t> result;
    if (!take('('))
      return std::nullopt;
    while (!take(')')) {
      bool negative = take('-');
      if (!std::isdigit(static_cast<unsigned char>(peek())))
        return std::nullopt;
      int64_t value = 0;
      while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) && value < (int64_t(1) << 40))
        value = value * 10 + (text[at++] - '0');
      result.push_back(negative ? -value : value);
      if (!take(',') && peek() != ')')
        return std::nullopt;
    }
    return result;
  }
};

std::variant<Sharding, StrategyError> givenSharding(const InputFacts &input, const std::vector<int64_t> &tuple,
                                                    int64_t devices, bool repeatOnRight, int32_t index) {
  // An input is an operator whose factors are its dimensions.
  OperatorFacts facts{.op = "dataset", .operandNames = {input.name}, .operandShapes = {input.shape}};
  facts.rule.operands.emplace_back();
  for (int64_t size : input.shape)
    facts.rule.operands[0].push_back({facts.rule.add({.name = "d", .size = size})});
  auto pieces = piecesOfStrategy(facts, {tuple}, devices);
  if (auto *error = std::get_if<StrategyError>(&pieces)) {
    for (std::string *text : {&error->text, &error->help})
      for (size_t at = 0; (at = text->find("in_strategy", at)) != std::string::npos; at += 16)
        text->replace(at, 11, "dataset_strategy");
    error->operand = index;
    return *error;
  }
  return operandSharding(facts.rule, assignmentOf(facts.rule, std::get<Pieces>(pieces), devices, !repeatOnRight), 0)
      .canonical();
}

} // namespace

std::optional<net::Strategy> parseStrategy(const std::string &text) {
  return TupleReader(text).strategy();
}

std::variant<std::vector<Sharding>, StrategyError> datasetShardings(const std::vector<InputFacts> &inputs,
                                                                    const std::string &strategy, int64_t devices,
                                                                    bool repeatOnRight) {
  std::vector<Sharding> shardings;
  for (const InputFacts &input : inputs)
    shardings.push_back(Sharding::replicated(devices, input.shape.size()));
  if (devices == 1 || strategy == "full_batch")
    return shardings;
  if (strategy == "data_parallel") {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].shape.empty())
        continue; // a scalar is the same for all samples
      shardings[i].dims[0] = {0};
    }
    return shardings;
  }
  std::optional<net::Strategy> tuples = parseStrategy(strategy);
  if (!tuples)
    return StrategyError{"cannot read dataset_strategy '" + strategy + "'",
                         "use data_parallel, full_batch or pieces per dimension per input, e.g. ((2, 1), (2, 1))"};
  if (tuples->size() != inputs.size())
    return StrategyError{"dataset_strategy has " + std::to_string(tuples->size()) +
                             (tuples->size() == 1 ? " tuple" : " tuples") + ", the network has " +
                             std::to_string(inputs.size()) + (inputs.size() == 1 ? " input" : " inputs"),
                         "write one tuple per input"};
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto given = givenSharding(inputs[i], (*tuples)[i], devices, repeatOnRight, static_cast<int32_t>(i));
    if (auto *error = std::get_if<StrategyError>(&given))
      return *error;
    shardings[i] = std::get<Sharding>(given);
  }
  return shardings;
}

} // namespace msc::passes
