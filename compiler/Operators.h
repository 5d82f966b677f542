// The operators that networks may use, as their definitions describe them.
#pragma once

#include "runtime/Status.h"

#include <optional>
#include <string>
#include <vector>

namespace msc::compiler {

struct OperatorAttribute {
  std::string name;
  std::string type;                       ///< "bool", "int", "float", "word", "ints", "element type"
  std::optional<std::string> defaultText; ///< as a network writes it; nothing: none
  std::vector<std::string> words;         ///< legal ones of a word; empty: any
  bool required = false;
  bool positional = false; ///< may follow the operands without its name
  std::string summary;
};

struct OperatorDescription {
  std::string name;
  std::string summary;
  std::string description;           ///< Markdown without the definition's indentation
  std::vector<std::string> formulas; ///< "output[..., c, ...] = x[..., c, ...] + b[c]"
  std::vector<std::string> operands, results;
  size_t optionalOperands = 0; ///< of the last operands
  std::vector<OperatorAttribute> attributes;
  std::vector<std::string> elementTypes; ///< what f32 may be replaced by in the example; none without inputs
  std::string rule;                      ///< of the example: "(m k, k n) -> (m n), reduce k"
  std::string lowering;                  ///< "generated, fused", "library", "view", "other operators"
  bool differentiable = true;            ///< false: a backward helper or the step of an optimizer
  std::string exampleInputs;             ///< "%x: f32[16, 32], %b: f32[32]"
  std::string exampleCall;               ///< "%output = BiasAdd(%x, %b)"
};

/// All operators that are registered, or the one called `name`, by name. An unknown name is an error with the nearest
/// one, or with what the operators of other frameworks are called here.
Result<std::vector<OperatorDescription>> describeOperators(const std::string &name = "");

} // namespace msc::compiler
