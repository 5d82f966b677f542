// Names come from files of others: what controls a terminal is shown instead of obeyed.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace msc {

/// How many bytes of UTF-8 at the beginning of a text are a control character of more than one byte: of terminals, of lines, or of the
/// direction of what follows (Unicode Bidirectional Algorithm, UAX #9); 0: none. `code` takes which one.
inline size_t longControl(std::string_view text, unsigned &code) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (byte(0) == 0xd8 && byte(1) == 0x9c) {
    code = 0x61c;
    return 2;
  }
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) { // controls of ISO 6429, which some terminals obey
    code = byte(1);
    return 2;
  }
  if (byte(0) != 0xe2 || (byte(1) != 0x80 && byte(1) != 0x81) || (byte(2) & 0xc0) != 0x80)
    return 0;
  code = 0x2000 + (byte(1) & 0x3f) * 64 + (byte(2) & 0x3f);
  const bool isMark = code == 0x200e || code == 0x200f, isLine = code == 0x2028 || code == 0x2029;
  return isMark || isLine || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ? 3 : 0;
}

/// The text with control characters written out, "\x1b" or "\u202e", but those of `kept`.
inline std::string withoutControls(std::string_view text, std::string_view kept = "") {
  std::string shown;
  auto write = [&](const char *format, unsigned code) {
    char written[8];
    std::snprintf(written, sizeof written, format, code);
    shown += written;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    unsigned code;
    if (const size_t bytes = longControl(text.substr(i), code)) {
      write("\\u%04x", code);
      i += bytes - 1;
    } else if ((byte >= 0x20 && byte != 0x7f) || kept.find(text[i]) != std::string_view::npos) {
      shown += text[i];
    } else {
      write("\\x%02x", byte);
    }
  }
  return shown;
}

} // namespace msc
