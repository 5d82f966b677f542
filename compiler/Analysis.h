// What an editor wants to know about a text that is being written: its mistakes, and what became of its values.
#pragma once

#include "compiler/Compiler.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace msc::compiler {

/// Counted from 1, columns in bytes; line 0: the file as a whole. An empty file is the text itself.
struct TextPlace {
  std::string file;
  unsigned line = 0, column = 0;
};

/// An error, a warning or a remark, in the language of the user.
struct Finding {
  enum class Kind { Error, Warning, Remark };
  Kind kind = Kind::Error;
  int code = 0; ///< of the catalogue; 0: none
  TextPlace place;
  std::string text;
  std::string help; ///< lines; empty: no repair to offer
  std::vector<std::pair<TextPlace, std::string>> notes;
};

/// What became of a value. Cells and repeats may make many of one name: `types` has each type once, in order, the other
/// fields are those of the first.
struct ValueFacts {
  std::vector<std::string> types;              ///< "f32[16, 32]"
  std::string op, instance;                    ///< "MatMul", "layer1.matmul"; empty: an input or a parameter
  std::string inStrategy, outStrategy, origin; ///< empty: not decided, for the text has mistakes
  int64_t copies = 0;
};

struct Analysis {
  std::vector<Finding> findings;
  /// By the offset in the text at which the name stands that is defined.
  std::map<size_t, ValueFacts> values;
};

/// Reads `text` as the file `options.input`, which need not exist, as far as `check` does. Prints nothing.
Analysis analyse(const std::string &text, const CompileOptions &options);

} // namespace msc::compiler
