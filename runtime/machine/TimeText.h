// Times as people read them.
#pragma once

#include <cstdio>
#include <string>

namespace msc {

/// "9.6 us", "12.6 ms", "30.6 s": from 10,000 on in the next unit.
inline std::string timeText(double us) {
  static const char *const units[] = {"us", "ms", "s"};
  int unit = 0;
  for (; us >= 9999.95 && unit < 2; ++unit) // which would be shown as 10000.0
    us /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", us, units[unit]);
  return text;
}

} // namespace msc
