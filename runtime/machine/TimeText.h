// Times as people read them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace msc {

/// "9.6 us", "12.6 ms", "30.6 s": from 10,000 on in the next unit. `digits` behind the point, but none below 0.1 us.
inline std::string timeText(double us, int digits = 1) {
  static const char *const units[] = {"us", "ms", "s"};
  int unit = 0;
  for (; us >= 9999.95 && unit < 2; ++unit) // which would be shown as 10000.0
    us /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", std::min(digits, 1 + 3 * unit), us, units[unit]);
  return text;
}

/// Times that are compared, with as many digits as tell apart what differs by 0.1 us: "66.13 ms", "66.08 ms".
inline std::vector<std::string> timeTexts(const std::vector<double> &us) {
  constexpr int mostDigits = 7;
  std::vector<std::string> texts(us.size());
  auto looksAlike = [&] {
    for (size_t i = 0; i < us.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (texts[i] == texts[j] && std::abs(us[i] - us[j]) >= 0.1)
          return true;
    return false;
  };
  for (int digits = 1; digits == 1 || (digits <= mostDigits && looksAlike()); ++digits)
    std::transform(us.begin(), us.end(), texts.begin(), [&](double each) { return timeText(each, digits); });
  return texts;
}

/// The same of two.
inline std::pair<std::string, std::string> timeTexts(double a, double b) {
  std::vector<std::string> texts = timeTexts({a, b});
  return {texts[0], texts[1]};
}

} // namespace msc
