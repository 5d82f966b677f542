#include "tools/CommandLine.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace msc::tools {

static size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

std::string nearest(const std::string &word, const std::vector<std::string> &words) {
  // The beginning of a word is near to it, however long the rest.
  if (word.size() >= 4)
    for (const std::string &candidate : words)
      if (candidate.rfind(word, 0) == 0)
        return candidate;
  std::string best;
  // Near words share a letter with it.
  size_t distance = std::min(std::max<size_t>(2, word.size() / 3) + 1, word.size());
  for (const std::string &candidate : words)
    if (size_t d = editDistance(word, candidate); d < distance) {
      distance = d;
      best = candidate;
    }
  return best;
}

void printError(const std::string &program, const std::string &message, const std::string &help) {
  std::fprintf(stderr, "%s: error: %s\n", program.c_str(), message.c_str());
  if (!help.empty())
    std::fprintf(stderr, "help: %s\n", help.c_str());
}

/// Flags and verbs of an application and of the verbs that were chosen.
static void collectWords(const CLI::App &app, std::vector<std::string> &flags, std::vector<std::string> &verbs) {
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      flags.push_back("--" + name);
  for (const CLI::App *verb : app.get_subcommands({})) {
    verbs.push_back(verb->get_name());
    if (verb->parsed())
      collectWords(*verb, flags, verbs);
  }
}

static int reportStranger(const CLI::App &app, const std::string &program, const std::string &word) {
  std::vector<std::string> flags, verbs;
  collectWords(app, flags, verbs);
  std::string bare = word.substr(0, word.find('='));
  if (word.rfind("-", 0) == 0) {
    std::string near = nearest(bare, flags);
    printError(program, "unknown flag '" + bare + "'",
               near.empty() ? "'" + program + " --help' lists the flags" : "did you mean '" + near + "'?");
  } else {
    std::string near = nearest(bare, verbs);
    printError(program, (verbs.empty() ? "unexpected argument '" : "unknown command '") + word + "'",
               near.empty() ? "'" + program + " --help' shows what it takes" : "did you mean '" + near + "'?");
  }
  return 2;
}

/// CLI11 says "--devices: 1 required INT missing" or "Could not convert: --devices = eight"; ours say the same plainly.
static std::string plainText(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '.'))
    text.pop_back();
  if (!text.empty() && text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])))
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

int parseCommandLine(CLI::App &app, const Arguments &arguments) {
  std::vector<std::string> reversed(arguments.words.rbegin(), arguments.words.rend());
  app.allow_extras(true);
  for (CLI::App *verb : app.get_subcommands({}))
    verb->allow_extras(true);
  try {
    app.parse(reversed);
  } catch (const CLI::Success &success) {
    return app.exit(success) == 0 ? 0 : 2;
  } catch (const CLI::ParseError &error) {
    bool lacksVerb = !app.get_subcommands({}).empty() && app.get_subcommands().empty();
    if (lacksVerb && !arguments.words.empty())
      return reportStranger(app, arguments.program, arguments.words.front());
    if (lacksVerb) {
      printError(arguments.program, "a command is missing", "'" + arguments.program + " --help' lists them");
      return 2;
    }
    printError(arguments.program, plainText(error.what()), "'" + arguments.program + " --help' shows what it takes");
    return 2;
  }
  if (std::vector<std::string> extra = app.remaining(true); !extra.empty())
    return reportStranger(app, arguments.program, extra.front());
  return -1;
}

} // namespace msc::tools
