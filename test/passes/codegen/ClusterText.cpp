#include "ClusterText.h"

#include <fmt/format.h>

namespace msc::test {

std::string tensorType(const std::vector<int64_t> &shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += fmt::format("{}x", size);
  return text + element + ">";
}

static std::string mapText(size_t loops, const std::string &letters) {
  std::string dims, results;
  for (size_t i = 0; i < loops; ++i)
    dims += fmt::format("{}{}", i ? ", " : "", char('a' + i));
  for (char letter : letters)
    results += fmt::format("{}{}", results.empty() ? "" : ", ", letter);
  return fmt::format("affine_map<({}) -> ({})>", dims, results);
}

ClusterText &ClusterText::argument(const std::string &value, const std::vector<int64_t> &shape,
                                   const std::string &element, int inPlace) {
  types[value] = tensorType(shape, element);
  header += fmt::format("{}%v_{}: {}{}", header.empty() ? "" : ", ", value, type(value),
                        inPlace >= 0 ? fmt::format(" {{msc.in_place = {} : i64}}", inPlace) : "");
  return *this;
}

ClusterText &ClusterText::generic(const std::string &result, const std::vector<int64_t> &shape,
                                  const std::string &element, const std::string &iterators,
                                  const std::vector<std::string> &inputs, const std::vector<std::string> &maps,
                                  const std::string &body, const std::string &initial) {
  types[result] = tensorType(shape, element);
  std::string destination = fmt::format("e{}", counter);
  code += fmt::format("  %{} = tensor.empty() : {}\n", destination, type(result));
  if (!initial.empty()) {
    code += fmt::format("  %c{} = arith.constant {} : {}\n  %f{} = linalg.fill ins(%c{} : {}) outs(%{} : {}) -> {}\n", counter,
                        initial, element, counter, counter, element, destination, type(result), type(result));
    destination = fmt::format("f{}", counter);
  }
  ++counter;
  std::string mapList, kinds, names, inputTypes, arguments;
  for (const std::string &map : maps)
    mapList += (mapList.empty() ? "" : ", ") + mapText(iterators.size(), map);
  for (char kind : iterators)
    kinds += fmt::format("{}\"{}\"", kinds.empty() ? "" : ", ", kind == 'p' ? "parallel" : "reduction");
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string inputType = type(inputs[i]);
    size_t from = inputType.find_last_of("x<") + 1;
    names += fmt::format("{}%v_{}", i ? ", " : "", inputs[i]);
    inputTypes += fmt::format("{}{}", i ? ", " : "", inputType);
    arguments += fmt::format("%x{}: {}, ", i, inputType.substr(from, inputType.size() - from - 1));
  }
  std::string ins = inputs.empty() ? "" : fmt::format("ins({} : {}) ", names, inputTypes);
  code += fmt::format("  %v_{} = linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} {}outs(%{} : {}) {{\n"
                      "  ^bb0({}%acc: {}):\n    {}\n    linalg.yield %y : {}\n  }} -> {}\n",
                      result, mapList, kinds, ins, destination, type(result), arguments, element, body, element, type(result));
  return *this;
}

ClusterText &ClusterText::returns(const std::vector<std::string> &values) {
  std::string names, list;
  for (const std::string &value : values) {
    names += fmt::format("{}%v_{}", names.empty() ? "" : ", ", value);
    list += fmt::format("{}{}", list.empty() ? "" : ", ", type(value));
  }
  header += fmt::format(") -> ({}", list);
  footer = fmt::format("  return {} : {}\n", names, list);
  return *this;
}

std::string ClusterText::str() const { return fmt::format("func.func @{}({}) {{\n{}{}}}\n", name, header, code, footer); }

} // namespace msc::test
