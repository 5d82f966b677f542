#include "runtime/plan/calls/Window.h"

#include <algorithm>
#include <fmt/format.h>

namespace msc {
namespace {

/// No image, kernel or stride is larger, so that products of three fit 64 bits.
constexpr int64_t largest = int64_t{1} << 20;

/// ceil(a / b) for b > 0.
int64_t ceilOf(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

} // namespace

int64_t Window::first(int64_t i) const { return std::clamp<int64_t>(ceilOf(before - i * stride, dilation), 0, kernel); }

int64_t Window::last(int64_t i) const {
  return std::clamp<int64_t>(ceilOf(input + before - i * stride, dilation), 0, kernel);
}

/// The part of [begin, end) within [0, size); empty where nothing is left.
static Range within(int64_t begin, int64_t end, int64_t size) {
  begin = std::clamp<int64_t>(begin, 0, size);
  return {begin, std::clamp<int64_t>(end, begin, size)};
}

Range Window::under(const Range &outputs) const {
  int64_t begin = under(outputs.begin, 0);
  return within(begin, outputs.size() == 0 ? begin : under(outputs.end - 1, kernel - 1) + 1, input);
}

Range Window::over(const Range &inputs) const {
  int64_t begin = ceilOf(inputs.begin + before - (kernel - 1) * dilation, stride);
  return within(begin, inputs.size() == 0 ? begin : ceilOf(inputs.end + before, stride), output);
}

std::optional<std::array<int64_t, 2>> bothDirections(const std::vector<int64_t> &attribute) {
  switch (attribute.size()) {
  case 1: return {{attribute[0], attribute[0]}};
  case 2: return {{attribute[0], attribute[1]}};
  case 4:
    if (attribute[0] == 1 && attribute[1] == 1)
      return {{attribute[2], attribute[3]}};
    return std::nullopt;
  default: return std::nullopt;
  }
}

std::optional<std::array<Window, 2>> windowsOver(const WindowAttributes &attributes, int64_t rows, int64_t columns,
                                                 std::string &why) {
  std::array<Window, 2> windows;
  windows[0].input = rows;
  windows[1].input = columns;
  auto take = [&](const std::vector<int64_t> &attribute, const char *name, int64_t Window::*field) {
    auto both = bothDirections(attribute);
    if (!both)
      why = fmt::format("'{}' is one number, (rows, columns) or (1, 1, rows, columns)", name);
    else if (std::min((*both)[0], (*both)[1]) < 1 || std::max((*both)[0], (*both)[1]) > largest)
      why = fmt::format("'{}' ({}, {}) is outside 1 to {}", name, (*both)[0], (*both)[1], largest);
    else
      for (int i : {0, 1})
        windows[i].*field = (*both)[i];
    return why.empty();
  };
  why.clear();
  if (!take(attributes.kernel, "kernel_size", &Window::kernel) || !take(attributes.stride, attributes.strideName, &Window::stride) ||
      !take(attributes.dilation, "dilation", &Window::dilation))
    return std::nullopt;
  if (std::max(rows, columns) > largest) {
    why = fmt::format("an image of {}x{} is larger than {}", rows, columns, largest);
    return std::nullopt;
  }
  std::vector<int64_t> pad = attributes.pad;
  if (pad.size() == 1)
    pad.assign(4, pad[0]);
  if (pad.size() != 4 || *std::min_element(pad.begin(), pad.end()) < 0 || *std::max_element(pad.begin(), pad.end()) > largest) {
    why = "'pad' is one number from 0 up, or (top, bottom, left, right)";
    return std::nullopt;
  }
  for (int i : {0, 1}) {
    Window &w = windows[i];
    int64_t reach = (w.kernel - 1) * w.dilation + 1;
    if (attributes.padMode == "same") {
      w.output = ceilOf(w.input, w.stride);
      int64_t total = std::max<int64_t>(0, (w.output - 1) * w.stride + reach - w.input);
      w.before = total / 2;
      w.after = total - total / 2;
      continue;
    }
    if (attributes.padMode == "pad") {
      w.before = pad[2 * i];
      w.after = pad[2 * i + 1];
    } else if (attributes.padMode != "valid") {
      why = fmt::format("'pad_mode' is '{}', but it is one of valid, same, pad", attributes.padMode);
      return std::nullopt;
    }
    if (w.input + w.before + w.after < reach) {
      why = fmt::format("a window reaches over {} {}, the padded image has {}", reach, i == 0 ? "rows" : "columns",
                        w.input + w.before + w.after);
      return std::nullopt;
    }
    w.output = (w.input + w.before + w.after - reach) / w.stride + 1;
  }
  return windows;
}

} // namespace msc
