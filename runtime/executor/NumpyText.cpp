#include "runtime/executor/NumpyText.h"

#include "runtime/executor/Fetch.h"

#include <algorithm>

namespace msc {
namespace {

std::string numberText(plan::DataType type, const std::byte *data) {
  std::string text = elementText(type, data);
  if (type == plan::BOOL)
    return text == "true" ? "True" : "False";
  bool isFloat = type != plan::I32 && type != plan::I64;
  return isFloat && text.find_first_not_of("-0123456789") == std::string::npos ? text + "." : text;
}

/// Numbers of one width: spaces in front of the dot and behind the digits; words and whole numbers at the right.
void align(std::vector<std::string> &numbers) {
  auto dot = [](const std::string &text) { return std::min(text.find('.'), text.size()); };
  size_t before = 0, after = 0;
  for (const std::string &number : numbers) {
    before = std::max(before, dot(number));
    after = std::max(after, number.size() - dot(number));
  }
  for (std::string &number : numbers) {
    size_t left = before - dot(number), right = after - (number.size() - dot(number));
    number = std::string(left, ' ') + number + std::string(right, ' ');
  }
}

/// Dimensions from `dim` on; `next` is the first number of this part. Rows stand below one another, and every further
/// dimension has an empty line between its parts.
std::string nested(const std::vector<std::string> &numbers, const std::vector<int64_t> &shape, size_t dim, size_t &next) {
  if (dim == shape.size())
    return numbers[next++];
  size_t inner = shape.size() - dim - 1;
  std::string between = inner == 0 ? " " : std::string(inner, '\n') + std::string(dim + 1, ' '), text;
  for (int64_t i = 0; i < shape[dim]; ++i)
    text += (i == 0 ? "" : between) + nested(numbers, shape, dim + 1, next);
  return "[" + text + "]";
}

} // namespace

std::string numpyText(const std::vector<int64_t> &shape, plan::DataType type, const std::byte *data) {
  int64_t count = elementCount(shape);
  if (count == 0)
    return "[]";
  std::vector<std::string> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(numberText(type, data + static_cast<size_t>(i) * elementBytes(type)));
  align(numbers);
  size_t next = 0;
  return nested(numbers, shape, 0, next);
}

} // namespace msc
