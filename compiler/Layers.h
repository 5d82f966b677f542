// The cells of the layer library, nn.mir, as its comments describe them.
#pragma once

#include "runtime/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace msc::compiler {

struct LayerDescription {
  std::string name;
  std::string head;    ///< "Linear(%x, out: int, bias: bool = true)"
  std::string comment; ///< what stands above it, without '#'; a paragraph of lines
  std::string text;    ///< "cell Linear(...) { ... }", as the library has it
  std::string example; ///< "%y = Linear(%x, out: 64)": with the arguments that have to be given
};

/// All cells of the library beside the program, in its order. BadFile or NoResource if it cannot be read.
Result<std::vector<LayerDescription>> describeLayers();

/// The cells of a file that is laid out as `msc fmt` does it. Defaults of formals are no lists.
std::vector<LayerDescription> cellsOf(std::string_view file);

/// The lines of a comment right above the line of `offset`, without '#'; empty: none.
std::string commentAbove(std::string_view file, size_t offset);

} // namespace msc::compiler
