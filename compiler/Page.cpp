#include "compiler/Page.h"

#include <nlohmann/json.hpp>

#include <string_view>

#include "compiler/page/Page.inc"

namespace msc::compiler {

/// JSON that may stand in a script element: no name can end the element or begin a comment, or a line of JavaScript. These
/// characters occur within strings only.
static std::string inScript(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    std::string_view rest = json.substr(i, 3);
    if (json[i] == '<' || json[i] == '>' || json[i] == '&') {
      text += json[i] == '<' ? "\\u003c" : json[i] == '>' ? "\\u003e" : "\\u0026";
    } else if (rest == "\u2028" || rest == "\u2029") {
      text += rest == "\u2028" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      text += json[i];
    }
  }
  return text;
}

std::string explainPage(const plan::Plan &plan, const Findings &findings, const std::string &op) {
  nlohmann::ordered_json report = nlohmann::ordered_json::parse(reportJson(plan, findings));
  report["selected"] = op;
  return pageBefore + inScript(report.dump()) + pageAfter;
}

} // namespace msc::compiler
