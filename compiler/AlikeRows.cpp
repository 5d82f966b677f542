#include "compiler/AlikeRows.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace msc::compiler {

namespace {

/// Periods that are tried at one row; within a layer some rows differ in a number, too.
constexpr size_t mostPeriods = 16;

bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// The number that begins at `at`, which is moved behind it; longer ones than any layer has are cut.
int64_t takeNumber(const std::string &text, size_t &at) {
  int64_t number = 0;
  for (; at < text.size() && isDigit(text[at]); ++at)
    number = std::min<int64_t>(number * 10 + (text[at] - '0'), INT64_C(1) << 40);
  return number;
}

/// The first number that changes from one block to the next.
struct Change {
  std::string what; ///< the name in front of it
  int64_t from = 0, step = 0;
};

class Folder {
public:
  Folder(const std::vector<Row> &rows, const std::vector<size_t> &named) : rows(rows), named(named), next(rows.size()) {
    std::unordered_map<std::string, size_t> later;
    for (size_t i = rows.size(); i-- > 0;) {
      auto [found, isNew] = later.try_emplace(kindOf(rows[i]), i);
      next[i] = isNew ? rows.size() : found->second;
      found->second = i;
    }
  }

  std::vector<Row> run() {
    std::vector<Row> folded;
    for (size_t at = 0; at < rows.size();) {
      auto [period, blocks, change] = longestRun(at);
      size_t kept = blocks > 1 ? period : 1;
      folded.insert(folded.end(), rows.begin() + at, rows.begin() + at + kept);
      if (blocks > 1)
        folded.push_back({remark(change, static_cast<int64_t>(blocks - 1), period)});
      at += blocks > 1 ? period * blocks : 1;
    }
    return folded;
  }

private:
  const std::vector<Row> &rows;
  const std::vector<size_t> &named;
  std::vector<size_t> next; ///< the next row that differs in numbers only

  struct Run {
    size_t period = 1, blocks = 1;
    Change change;
  };

  static std::string remark(const Change &change, int64_t others, size_t period) {
    std::string text = change.what + " " + std::to_string(change.from + change.step);
    if (others > 1)
      text += ".." + std::to_string(change.from + change.step * others);
    return text + " alike, " + std::to_string(period) + (period == 1 ? " row each" : " rows each");
  }

  bool isNamed(size_t column) const { return std::find(named.begin(), named.end(), column) != named.end(); }

  std::string kindOf(const Row &row) const {
    std::string kind;
    for (size_t column = 0; column < row.size(); ++column) {
      for (size_t at = 0; at < row[column].size();) {
        if (!isNamed(column) || !isDigit(row[column][at])) {
          kind += row[column][at++];
          continue;
        }
        takeNumber(row[column], at);
        kind += '#';
      }
      kind += '\n';
    }
    return kind;
  }

  /// The blocks at `at` that cover most rows.
  Run longestRun(size_t at) const {
    Run best;
    size_t other = next[at];
    for (size_t tried = 0; tried < mostPeriods && other < rows.size(); ++tried, other = next[other]) {
      Run run{.period = other - at};
      while (at + (run.blocks + 1) * run.period <= rows.size() && isNextBlock(at + run.blocks * run.period, run))
        ++run.blocks;
      if (run.blocks > 1 && run.period * run.blocks > best.period * best.blocks && !isWithinBlock(at, run.change))
        best = run;
    }
    return best;
  }

  /// Does the row before speak of the same layer?
  bool isWithinBlock(size_t at, const Change &change) const {
    std::string layer = change.what + "." + std::to_string(change.from);
    return at > 0 && std::any_of(named.begin(), named.end(), [&](size_t column) {
             const Row &before = rows[at - 1];
             size_t found = column < before.size() ? before[column].find(layer) : std::string::npos;
             return found != std::string::npos && !isDigit(before[column].c_str()[found + layer.size()]);
           });
  }

  /// Is the block at `at` the one before with changed numbers?
  bool isNextBlock(size_t at, Run &run) const {
    bool changes = false;
    for (size_t i = at; i < at + run.period; ++i)
      if (!isNextRow(rows[i - run.period], rows[i], run.change, changes))
        return false;
    return changes;
  }

  bool isNextRow(const Row &a, const Row &b, Change &change, bool &changes) const {
    if (a.size() != b.size())
      return false;
    for (size_t column = 0; column < a.size(); ++column)
      if (a[column] != b[column] && !(isNamed(column) && isNextName(a[column], b[column], change, changes)))
        return false;
    return true;
  }

  static bool isNextName(const std::string &a, const std::string &b, Change &change, bool &changes) {
    for (size_t i = 0, k = 0; i < a.size() || k < b.size();) {
      if (i == a.size() || k == b.size() || isDigit(a[i]) != isDigit(b[k]))
        return false;
      if (!isDigit(a[i])) {
        if (a[i++] != b[k++])
          return false;
        continue;
      }
      size_t begin = i;
      int64_t from = takeNumber(a, i), to = takeNumber(b, k);
      if (from == to)
        continue;
      if (change.step == 0 && (to - from == 1 || to - from == -1))
        change = {nameBefore(a, begin), from, to - from};
      if (to - from != change.step)
        return false;
      changes = true;
    }
    return true;
  }

  static std::string nameBefore(const std::string &text, size_t end) {
    while (end > 0 && (text[end - 1] == '.' || text[end - 1] == '_'))
      --end;
    size_t begin = end;
    auto isOfName = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_'; };
    while (begin > 0 && isOfName(text[begin - 1]))
      --begin;
    return text.substr(begin, end - begin);
  }
};

} // namespace

std::vector<Row> foldAlikeRows(const std::vector<Row> &rows, const std::vector<size_t> &named) {
  return Folder(rows, named).run();
}

} // namespace msc::compiler
