// Names come from files of others: what controls a terminal is shown instead of obeyed.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace msc {

/// The text with control characters written out, "\x1b", but those of `kept`.
inline std::string withoutControls(std::string_view text, std::string_view kept = "") {
  std::string shown;
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if ((code >= 0x20 && code != 0x7f) || kept.find(c) != std::string_view::npos) {
      shown += c;
      continue;
    }
    char written[5];
    std::snprintf(written, sizeof written, "\\x%02x", code);
    shown += written;
  }
  return shown;
}

} // namespace msc
