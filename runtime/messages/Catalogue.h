// Every message of msc and msrun: its code, its Chinese text, what it means.
//
// The catalogue is data, the .def files of this folder, one line per message:
//   CODE(1101, "what it means", "in Chinese", "a wrong example", "the repair")
//   SAYS(1101, "unknown operator '{0}'", "...")   an error, a warning or a remark of this code
//   TEXT("did you mean '{0}'?", "...")            what stands in messages, notes, help lines and --help
// `{0}` stands for any text, which translations keep as it is; `{0!}` for one that is translated, too, if it is a
// message itself; `{a|b}` for one of the given texts. Sources write messages in English; whoever prints one asks the
// catalogue for the message that has this form. So no place in the sources knows codes or languages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msc::messages {

enum class Language { English, Chinese };

/// Chinese if LC_ALL, else LC_MESSAGES, else LANG begins with zh_CN. Read from the environment at each call.
Language languageOfEnvironment();

struct Found {
  int code = 0;        ///< 0: a part of a message, without a code
  std::string chinese; ///< with the values of the text
};

/// The message that has this form; of several one without placeholders, then one with a code, then the one with the
/// most fixed letters.
std::optional<Found> find(std::string_view text);

/// The text in the language of the environment; as it is, if that is English or the catalogue does not have it.
std::string translated(std::string_view text);

/// The same with the code: "unknown operator 'x' [MSC1101]". Texts of users (fail("...") of a cell) have none.
std::string withCode(std::string_view text);

/// A line that may begin with "note: " or "msrun: warning: ", which stay.
std::string translatedLine(const std::string &line);

/// "MSC1101".
std::string codeText(int code);

struct Explanation {
  int code;
  std::string_view meaning, chinese;
  std::string_view wrong,
      right; ///< statements, items, a whole file, or "$ command"; empty: nothing to write differently
};

/// All codes in ascending order.
const std::vector<Explanation> &explanations();

/// What `msc explain MSC1101` prints, in the language of the environment.
std::string explanationText(const Explanation &explanation);

/// Does this look like a code: "MSC" and digits, in any case?
bool looksLikeCode(std::string_view word);

} // namespace msc::messages
