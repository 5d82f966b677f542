// Other solvers to compare with, where they are installed; only with MSC_LONG=1.
#pragma once

#include "Networks.h"
#include "passes/sharding/search/Repeat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <unistd.h>

namespace msc::search::test {

inline std::string outputOf(const std::string &command) {
  std::string text;
  if (FILE *pipe = popen((command + " 2>&1").c_str(), "r")) {
    char buffer[4096];
    while (size_t count = fread(buffer, 1, sizeof buffer, pipe))
      text.append(buffer, count);
    pclose(pipe);
  }
  return text;
}

inline bool has(const std::string &program) {
  return !outputOf("command -v " + program).empty();
}

/// Whole numbers of hundredths, so that all programs see the same costs.
inline void roundCost(double &cost) {
  cost = cost < infinity ? std::round(cost * 100) : infinity;
}

template <typename T> void roundTerms(T &terms) {
  for (Table &table : terms.tables)
    std::for_each(table.costs.begin(), table.costs.end(), roundCost);
  for (SharedCost &shared : terms.shared)
    for (std::vector<double> &row : shared.costs)
      std::for_each(row.begin(), row.end(), roundCost);
}

inline CostNetwork rounded(CostNetwork network) {
  roundCost(network.constant);
  roundTerms(network);
  return network;
}

inline RepeatedNetwork rounded(RepeatedNetwork repeated) {
  repeated.network = rounded(std::move(repeated.network));
  for (Section &section : repeated.sections)
    for (Terms *terms : {&section.within, &section.carried, &section.entry, &section.exit})
      roundTerms(*terms);
  return repeated;
}

/// The file of a program's input, removed at the end.
class InputFile {
public:
  InputFile(const std::string &ending, const std::string &text)
      : path(testing::TempDir() + "search_oracle_" + std::to_string(getpid()) + ending) {
    std::ofstream(path) << text;
  }
  ~InputFile() { std::remove(path.c_str()); }
  const std::string path;
};

/// toulbar2's format. A value's items are further variables: paid or not.
class Wcsp {
public:
  explicit Wcsp(const CostNetwork &network) : options(network.options), constant(network.constant) {
    for (const Table &table : network.tables)
      if (table.scope.empty())
        constant += table.costs[0];
      else
        add(table.scope, [&](size_t index, const Choice &) { return table.costs[index]; });
    for (const SharedCost &shared : network.shared)
      add(shared);
  }

  /// Infinity: there is no assignment.
  double optimum() const {
    std::ostringstream text;
    text << "search " << options.size() << ' ' << *std::max_element(options.begin(), options.end()) << ' ' << count
         << ' ' << top << '\n';
    for (int32_t count : options)
      text << count << ' ';
    InputFile file(".wcsp", text.str() + "\n" + constraints.str());
    std::string said = outputOf("timeout 100 toulbar2 " + file.path);
    if (size_t at = said.find("Optimum: "); at != std::string::npos)
      return std::stod(said.substr(at + 9)) + constant;
    return said.find("No solution") != std::string::npos ? infinity : std::nan("");
  }

private:
  static constexpr int64_t top = 1000000000000;

  template <typename Cost> void add(const std::vector<int32_t> &scope, Cost cost) {
    std::vector<int32_t> sizes;
    size_t size = 1;
    for (int32_t variable : scope) {
      sizes.push_back(options[variable]);
      size *= options[variable];
    }
    ++count;
    constraints << scope.size();
    for (int32_t variable : scope)
      constraints << ' ' << variable;
    constraints << " 0 " << size << '\n';
    size_t index = 0;
    forEachChoice(sizes, [&](const Choice &choice) {
      for (int32_t option : choice)
        constraints << option << ' ';
      const double value = cost(index++, choice);
      constraints << (value < infinity ? static_cast<int64_t>(value) : top) << '\n';
    });
  }

  void add(const SharedCost &shared) {
    std::set<int32_t> asked;
    for (const SharedCost::Reader &reader : shared.readers)
      for (const std::vector<int32_t> &items : reader.items)
        asked.insert(items.begin(), items.end());
    for (int32_t item : asked) {
      const int32_t paid = static_cast<int32_t>(options.size());
      options.push_back(2);
      add({shared.producer, paid}, [&](size_t, const Choice &choice) {
        return choice[1] ? shared.costs[shared.producerClass[choice[0]]][item] * shared.times : 0;
      });
      for (const SharedCost::Reader &reader : shared.readers)
        add({reader.variable, paid}, [&](size_t, const Choice &choice) {
          const std::vector<int32_t> &items = reader.items[choice[0]];
          return !choice[1] && std::binary_search(items.begin(), items.end(), item) ? infinity : 0;
        });
    }
  }

  std::vector<int32_t> options;
  double constant;
  std::ostringstream constraints;
  size_t count = 0;
};

/// CBC's format: every option a 0-1 variable, every entry of a table a share between its options.
class Lp {
public:
  explicit Lp(const CostNetwork &network) : network(network), constant(network.constant) {
    for (size_t variable = 0; variable < network.options.size(); ++variable) {
      rows << " ";
      for (int32_t option = 0; option < network.options[variable]; ++option) {
        rows << " + " << name(static_cast<int32_t>(variable), option) << '\n';
        binaries << ' ' << name(static_cast<int32_t>(variable), option) << '\n';
      }
      rows << "  = 1\n";
    }
    for (const Table &table : network.tables)
      table.scope.empty() ? void(constant += table.costs[0]) : add(table);
    for (const SharedCost &shared : network.shared)
      add(shared);
  }

  double optimum() const {
    std::ostringstream text;
    text << "Minimize\n obj: one\n"
         << costs.str() << "Subject To\n one = 1\n"
         << rows.str() << "Bounds\n"
         << bounds.str() << "Binaries\n"
         << binaries.str() << "End\n";
    InputFile file(".lp", text.str());
    std::string said = outputOf("timeout 100 cbc " + file.path + " -ratio 0 -allow 0 -solve");
    const std::string words = "Objective value:";
    if (said.find("Optimal solution found") != std::string::npos && said.find(words) != std::string::npos)
      return std::stod(said.substr(said.find(words) + words.size())) - 1 + constant;
    // Not of a relaxation on the way, which may be infeasible too.
    const bool isImpossible = said.find("roblem is infeasible") != std::string::npos || said.find("proven infeasible") != std::string::npos;
    return isImpossible ? infinity : std::nan("");
  }

private:
  static std::string name(int32_t variable, int32_t option) {
    return "x" + std::to_string(variable) + "_" + std::to_string(option);
  }

  void cost(double value, const std::string &name) {
    if (value == infinity)
      bounds << ' ' << name << " = 0\n";
    else if (value > 0)
      costs << " + " << static_cast<int64_t>(value) << ' ' << name << '\n';
  }

  void add(const Table &table) {
    std::vector<int32_t> sizes;
    for (int32_t variable : table.scope)
      sizes.push_back(network.options[variable]);
    const size_t first = entries;
    entries += table.costs.size();
    for (size_t i = 0; i < table.costs.size(); ++i)
      cost(table.costs[i], "z" + std::to_string(first + i));
    for (size_t a = 0; a < sizes.size(); ++a)
      for (int32_t option = 0; option < sizes[a]; ++option) {
        size_t index = first;
        forEachChoice(sizes, [&](const Choice &choice) {
          if (choice[a] == option)
            rows << " + z" << index << '\n';
          ++index;
        });
        rows << " - " << name(table.scope[a], option) << " = 0\n";
      }
  }

  /// An item is paid under a class of the producer at least as much as that class and a reader that asks for it are
  /// there.
  void add(const SharedCost &shared) {
    for (size_t c = 0; c < shared.costs.size(); ++c)
      for (size_t item = 0; item < shared.costs[c].size(); ++item) {
        const double price = shared.costs[c][item];
        if (!(price > 0))
          continue;
        const std::string paid = "w" + std::to_string(entries++);
        cost(price * shared.times, paid);
        for (const SharedCost::Reader &reader : shared.readers) {
          rows << ' ' << paid << '\n';
          for (size_t option = 0; option < shared.producerClass.size(); ++option)
            if (shared.producerClass[option] == static_cast<int32_t>(c))
              rows << " - " << name(shared.producer, static_cast<int32_t>(option)) << '\n';
          for (size_t option = 0; option < reader.items.size(); ++option)
            if (std::binary_search(reader.items[option].begin(), reader.items[option].end(),
                                   static_cast<int32_t>(item)))
              rows << " - " << name(reader.variable, static_cast<int32_t>(option)) << '\n';
          rows << "  >= -1\n";
        }
      }
  }

  const CostNetwork &network;
  double constant;
  size_t entries = 0;
  std::ostringstream costs, rows, bounds, binaries;
};

/// A network and what the exact solver said of it.
struct Solved {
  CostNetwork network;
  double cost = 0;
};

struct Question {
  std::string name;
  std::function<Solved()> solve; ///< when it is its turn: all tables together would be large
};

inline Question questionOf(std::string name, CostNetwork network) {
  return {std::move(name), [network = std::move(network)] { return Solved{network, solveExactly(network).cost}; }};
}

/// Compares all networks that the program solves within its time.
template <typename Format> void compare(const std::string &program, const std::vector<Question> &questions, int atLeast) {
  if (!std::getenv("MSC_LONG"))
    GTEST_SKIP() << "it takes minutes: only with MSC_LONG=1";
  if (!has(program))
    GTEST_SKIP() << program << " is not installed; 'tools/test.sh --long' installs it";
  int compared = 0;
  std::string tooLong;
  for (const Question &question : questions) {
    const Solved ours = question.solve();
    const double theirs = Format(ours.network).optimum();
    if (std::isnan(theirs)) {
      tooLong += ", " + question.name;
      continue;
    }
    EXPECT_TRUE(ours.cost == theirs || (std::isfinite(theirs) && std::abs(ours.cost - theirs) <= 1e-6 * std::abs(theirs)))
        << ours.cost << " here, " << theirs << " there, " << question.name;
    ++compared;
  }
  std::printf("%d of %zu networks compared\n", compared, questions.size());
  if (!tooLong.empty())
    std::printf("%s took too long for %s\n", tooLong.c_str() + 2, program.c_str());
  EXPECT_GE(compared, atLeast);
}

} // namespace msc::search::test
