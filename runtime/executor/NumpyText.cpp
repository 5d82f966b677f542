#include "runtime/executor/NumpyText.h"

#include "runtime/executor/Fetch.h"
#include "runtime/executor/FloatValue.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace msc {
namespace {

// NumPy's defaults of set_printoptions.
constexpr size_t precision = 8;
constexpr int64_t threshold = 1000, edgeItems = 3;
constexpr size_t lineWidth = 75;

/// The fewest digits that read back as the same number of its type. NumPy has no bf16: its numbers are f32.
std::string shortest(double value, plan::DataType type, std::chars_format format) {
  char digits[400];
  auto text = [&](std::to_chars_result end) { return std::string(digits, end.ptr); };
  char *last = digits + sizeof(digits);
  if (type == plan::F64)
    return text(std::to_chars(digits, last, value, format));
  if (type != plan::F16)
    return text(std::to_chars(digits, last, static_cast<float>(value), format));
  for (int count = 0;; ++count) {
    std::string scientific = text(std::to_chars(digits, last, value, std::chars_format::scientific, count));
    double rounded = std::strtod(scientific.c_str(), nullptr);
    if (static_cast<double>(static_cast<_Float16>(rounded)) == value)
      return format == std::chars_format::scientific ? scientific : text(std::to_chars(digits, last, rounded, format));
  }
}

/// A number in three parts: what stands in front of the dot, behind it, and behind the e with its sign.
struct Parts {
  std::string whole, fraction, exponent;
};

Parts split(const std::string &text) {
  size_t e = std::min(text.find('e'), text.size()), dot = std::min(text.find('.'), e);
  return {text.substr(0, dot), dot == e ? "" : text.substr(dot + 1, e - dot - 1), e == text.size() ? "" : text.substr(e + 1)};
}

/// As many digits behind the dot.
std::string digitsOf(double value, std::chars_format format, size_t count) {
  char digits[400];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value, format, static_cast<int>(count)).ptr};
}

/// The fewest digits, at most `precision` of them behind the dot.
Parts partsOf(double value, plan::DataType type, std::chars_format format) {
  Parts parts = split(shortest(value, type, format));
  if (parts.fraction.size() <= precision)
    return parts;
  parts = split(digitsOf(value, format, precision));
  parts.fraction.erase(parts.fraction.find_last_not_of('0') + 1);
  return parts;
}

/// A power of ten with as many digits as all numbers of the type have; of f64 another one.
double allDigits(plan::DataType type, double ofF64) {
  return type == plan::F64 ? ofF64 : type == plan::F16 ? 1e3 : 1e6;
}

/// Numbers too large for their type to be whole, too small, or too far apart for one another have exponents.
bool needsExponents(const std::vector<double> &values, plan::DataType type) {
  double largest = 0, smallest = std::numeric_limits<double>::infinity();
  for (double value : values)
    if (std::isfinite(value) && value != 0) {
      largest = std::max(largest, std::fabs(value));
      smallest = std::min(smallest, std::fabs(value));
    }
  return largest != 0 && (largest >= allDigits(type, 1e8) || smallest < 1e-4 || largest / smallest > 1000);
}

/// Of one width, aligned at the dot.
std::vector<std::string> floatTexts(const std::vector<double> &values, plan::DataType type) {
  bool exponents = needsExponents(values, type);
  std::vector<Parts> all(values.size());
  size_t before = 0, behind = 0, exponent = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) {
      all[i] = partsOf(values[i], type, exponents ? std::chars_format::scientific : std::chars_format::fixed);
      before = std::max(before, all[i].whole.size());
      behind = std::max(behind, all[i].fraction.size());
      exponent = std::max(exponent, all[i].exponent.size());
    }
  size_t tail = 1 + behind + (exponents ? 1 + exponent : 0);
  auto word = [](double value) { return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf"; };
  for (double value : values)
    if (size_t width = std::strlen(word(value)); !std::isfinite(value) && width > before + tail)
      before = width - tail;
  std::vector<std::string> texts;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      std::string text = word(values[i]);
      texts.push_back(std::string(before + tail - text.size(), ' ') + text);
      continue;
    }
    Parts parts = exponents ? split(digitsOf(values[i], std::chars_format::scientific, behind)) : all[i];
    std::string text = std::string(before - parts.whole.size(), ' ') + parts.whole + "." + parts.fraction +
                       std::string(behind - parts.fraction.size(), ' ');
    if (exponents)
      text += "e" + parts.exponent.substr(0, 1) + std::string(exponent - parts.exponent.size(), '0') + parts.exponent.substr(1);
    texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> textsOf(const std::vector<const std::byte *> &elements, plan::DataType type) {
  bool isFloat = type != plan::I32 && type != plan::I64 && type != plan::BOOL;
  if (isFloat) {
    std::vector<double> values;
    for (const std::byte *data : elements)
      values.push_back(floatValue(type, data));
    return floatTexts(values, type);
  }
  std::vector<std::string> texts;
  size_t width = type == plan::BOOL ? 5 : 0;
  for (const std::byte *data : elements) {
    texts.push_back(type != plan::BOOL ? elementText(type, data) : *data == std::byte{0} ? "False" : "True");
    width = std::max(width, texts.back().size());
  }
  for (std::string &text : texts)
    text.insert(0, width - text.size(), ' ');
  return texts;
}

/// A tensor without dimensions: as many digits as it takes.
std::string scalarText(plan::DataType type, const std::byte *data) {
  if (type == plan::BOOL)
    return *data == std::byte{0} ? "False" : "True";
  if (type == plan::I32 || type == plan::I64)
    return elementText(type, data);
  double value = floatValue(type, data), size = std::fabs(value);
  if (!std::isfinite(value))
    return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  bool isFixed = size == 0 || (size >= 1e-4 && size < allDigits(type, 1e16));
  std::string text = shortest(value, type, isFixed ? std::chars_format::fixed : std::chars_format::scientific);
  return isFixed && text.find('.') == std::string::npos ? text + ".0" : text;
}

/// Which indices of a dimension are shown; -1 stands for those that are left out.
std::vector<int64_t> shownIndices(int64_t size, bool shortens) {
  std::vector<int64_t> shown;
  for (int64_t i = 0; i < size; ++i) {
    bool isEdge = !shortens || size <= 2 * edgeItems || i < edgeItems || i >= size - edgeItems;
    if (isEdge)
      shown.push_back(i);
    else if (shown.back() != -1)
      shown.push_back(-1);
  }
  return shown;
}

/// Brackets, rows below one another, lines broken at the width.
class Layout {
public:
  Layout(const std::vector<int64_t> &shape, bool shortens) {
    for (int64_t size : shape)
      shown.push_back(shownIndices(size, shortens));
  }

  /// Positions of the shown elements, row-major.
  void collect(const std::vector<int64_t> &shape, size_t dim, int64_t at, std::vector<int64_t> &positions) const {
    if (dim == shape.size())
      return positions.push_back(at);
    for (int64_t index : shown[dim])
      if (index >= 0)
        collect(shape, dim + 1, at * shape[dim] + index, positions);
  }

  /// Dimensions from `dim` on; `next` is the first number of this part.
  std::string nested(const std::vector<std::string> &numbers, size_t dim, size_t &next) const {
    std::string indent(dim + 1, ' ');
    if (dim + 1 == shown.size())
      return "[" + row(numbers, indent, next).substr(indent.size()) + "]";
    std::string text, between = std::string(shown.size() - dim - 1, '\n') + indent;
    for (int64_t index : shown[dim])
      text += (text.empty() ? "" : between) + (index < 0 ? "..." : nested(numbers, dim + 1, next));
    return "[" + text + "]";
  }

private:
  std::string row(const std::vector<std::string> &numbers, const std::string &indent, size_t &next) const {
    std::string done, line = indent;
    size_t closing = shown.size(); // brackets that may follow
    for (size_t i = 0; i < shown.back().size(); ++i) {
      const std::string &word = shown.back()[i] < 0 ? "..." : numbers[next++];
      if (line.size() + word.size() + closing > lineWidth && line.size() > indent.size()) {
        line.erase(line.find_last_not_of(' ') + 1);
        done += line + "\n";
        line = indent;
      }
      line += word;
      if (i + 1 < shown.back().size())
        line += " ";
    }
    return done + line;
  }

  std::vector<std::vector<int64_t>> shown; ///< of every dimension
};

} // namespace

std::string numpyText(const std::vector<int64_t> &shape, plan::DataType type, const std::byte *data) {
  int64_t count = elementCount(shape);
  if (count == 0)
    return "[]";
  if (shape.empty())
    return scalarText(type, data);
  Layout layout(shape, count > threshold);
  std::vector<int64_t> positions;
  layout.collect(shape, 0, 0, positions);
  std::vector<const std::byte *> elements;
  for (int64_t position : positions)
    elements.push_back(data + static_cast<size_t>(position) * elementBytes(type));
  size_t next = 0;
  return layout.nested(textsOf(elements, type), 0, next);
}

} // namespace msc
