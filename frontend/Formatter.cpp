// The syntax tree's own print decides about blanks between tokens and about statements; comments, blank lines and line
// breaks come from the text.
#include "frontend/Formatter.h"

#include "frontend/AstPrinter.h"
#include "frontend/Lexer.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace msc::frontend {

namespace {

/// A token of the output and what stands in front of it.
struct Piece {
  Token token;
  std::string gap;         ///< what the print puts in front: blanks, or a line break and an indentation
  size_t source = 0;       ///< the same token in the text
  bool hasComma = false;   ///< a closing bracket that follows a comma in the text
  bool breaks() const { return gap.find('\n') != std::string::npos; }
  size_t indent() const { return gap.size() - gap.rfind('\n') - 1; }
};

class Formatter {
public:
  Formatter(StringRef text, const ast::File &file)
      : text(text), source(lex(text)), canonical(toText(file)), isDump(file.isDump) {}

  std::string run() {
    align();
    joinShortBodies();
    for (at = 0; at < pieces.size(); ++at)
      emit(pieces[at]);
    takeComments(source.tokens.size() - 1, 0);
    endLine();
    return std::move(out);
  }

private:
  void align();
  void joinShortBodies();
  void emit(const Piece &piece);
  void takeComments(size_t before, size_t indent);
  void takeComma(const Piece &piece, bool breaks);
  bool keepsBreak(const Piece &piece) const;
  size_t lengthTo(size_t last) const;
  bool mustBreak(const Piece &piece) const;
  bool mayBreakBefore(size_t index) const;
  void endLine();
  void newLine(size_t indent);
  size_t indentInside(bool closes) const;
  size_t linesBetween(const char *from, const char *to) const;

  StringRef text;
  Tokens source;
  std::string canonical;
  bool isDump;
  std::vector<Piece> pieces;
  size_t at = 0;

  std::string out;
  size_t nextComment = 0;
  size_t statementIndent = 0;
  bool inItem = false;         ///< the statement is a block such as train {...}, or the head of a cell
  std::vector<bool> open;      ///< brackets that the current statement has opened: does a line end behind it?
  bool fresh = true;           ///< the current line holds nothing but its indentation
  bool afterComment = false;   ///< the line ends in a comment
  const char *lastEnd = nullptr; ///< end of what was emitted last, in the text
  TokenKind lastKind = TokenKind::End;
};

bool isOpening(TokenKind kind) {
  return kind == TokenKind::LParen || kind == TokenKind::LBrace || kind == TokenKind::LBracket;
}

bool isClosing(TokenKind kind) {
  return kind == TokenKind::RParen || kind == TokenKind::RBrace || kind == TokenKind::RBracket;
}

} // namespace

/// Pairs the tokens of the print with those of the text, which may hold commas before closing brackets.
void Formatter::align() {
  Tokens printed = lex(canonical);
  const char *end = canonical.data();
  size_t from = 0;
  for (const Token &token : ArrayRef(printed.tokens).drop_back()) {
    Piece piece;
    piece.token = token;
    StringRef gap(end, token.text.data() - end);
    piece.gap = gap.contains('\n') ? "\n" + gap.substr(gap.rfind('\n') + 1).str() : gap.str();
    bool endsList = token.kind == TokenKind::Header && token.text.starts_with("subgraph ");
    if (gap.contains("\n\n") && !endsList)
      piece.gap.insert(0, "\n"); // the blank line that ends a list of attributes
    end = token.text.end();
    if (isClosing(token.kind) && source.tokens[from].kind == TokenKind::Comma) {
      piece.hasComma = true;
      ++from;
    }
    piece.source = from++;
    pieces.push_back(std::move(piece));
  }
}

size_t Formatter::linesBetween(const char *from, const char *to) const {
  return StringRef(from, to - from).count('\n');
}

/// `{ yield %x }` stays on its line.
void Formatter::joinShortBodies() {
  static constexpr size_t longest = 60;
  std::vector<size_t> open;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (isOpening(pieces[i].token.kind))
      open.push_back(i);
    if (!isClosing(pieces[i].token.kind) || open.empty())
      continue;
    size_t first = open.back(), length = 0, breaks = 0;
    open.pop_back();
    if (pieces[i].token.kind != TokenKind::RBrace || first + 1 >= i || !pieces[first + 1].breaks())
      continue;
    for (size_t k = first + 1; k <= i; ++k) {
      length += pieces[k].token.text.size() + 1;
      breaks += pieces[k].breaks();
    }
    const char *begin = source.tokens[pieces[first].source].text.data(), *end = source.tokens[pieces[i].source].text.data();
    if (length > longest || breaks != 2 || linesBetween(begin, end))
      continue;
    pieces[first + 1].gap = pieces[i].gap = " ";
  }
}

void Formatter::newLine(size_t indent) {
  while (!out.empty() && out.back() == ' ')
    out.pop_back();
  if (!out.empty())
    out += '\n';
  out.append(indent, ' ');
  fresh = true;
  afterComment = false;
}

/// Two blanks per bracket that ends its line; four for what goes on otherwise.
size_t Formatter::indentInside(bool closes) const {
  size_t count = open.size() - (closes && !open.empty() ? 1 : 0);
  size_t blocks = std::count(open.begin(), open.begin() + static_cast<ptrdiff_t>(count), true);
  bool hangs = closes ? !open.empty() && !open.back() : open.empty() || !open.back();
  return statementIndent + 2 * blocks + (hangs ? 4 : 0);
}

void Formatter::endLine() {
  while (!out.empty() && (out.back() == ' ' || out.back() == '\n'))
    out.pop_back();
  out += out.empty() ? "" : "\n";
}

/// The comments that stand before a token of the text; those of their own line get the given indentation.
void Formatter::takeComments(size_t before, size_t indent) {
  for (; nextComment < source.comments.size() && source.comments[nextComment].after <= before; ++nextComment) {
    StringRef comment = source.comments[nextComment].text;
    size_t lines = lastEnd ? linesBetween(lastEnd, comment.data()) : 1;
    if (lines == 0) {
      out += "  ";
    } else {
      StringRef inside = comment.drop_front().trim();
      bool isRemark = inside.starts_with("scope:") || inside.starts_with("In file ");
      if (lines > 1 && (afterComment || !isOpening(lastKind)))
        newLine(0);
      newLine(lastKind == TokenKind::AttrLine || lastKind == TokenKind::Header ? 0 // else it would be an attribute
              : isRemark && at > 0                                           ? statementIndent + 4
                                                                             : indent);
    }
    bool glued = comment.size() > 1 && comment[1] != ' ' && comment[1] != '#' && comment[1] != '!' && comment[1] != '\t';
    out += glued ? "# " + comment.drop_front().str() : comment.str(); // '#attrs' at the start of a line is a header
    fresh = false;
    afterComment = true;
    lastEnd = comment.end();
  }
}

/// Breaks of the text behind an opening bracket or a comma and before a closing bracket.
bool Formatter::keepsBreak(const Piece &piece) const {
  if (at == 0 || open.empty() || piece.source == 0)
    return false;
  TokenKind before = pieces[at - 1].token.kind;
  bool mayBreak = isOpening(before) || before == TokenKind::Comma || isClosing(piece.token.kind);
  const Token &previous = source.tokens[piece.source - 1];
  return mayBreak && linesBetween(previous.text.end(), source.tokens[piece.source].text.data()) > 0;
}

/// A line that became too long is broken here if the tokens up to the next place for a break do not fit.
bool Formatter::mayBreakBefore(size_t index) const {
  if (index >= pieces.size() || pieces[index].breaks())
    return true;
  TokenKind before = pieces[index - 1].token.kind, kind = pieces[index].token.kind;
  bool isAttributes = kind == TokenKind::LBrace && !pieces[index].gap.empty() && !inItem;
  return (before == TokenKind::Comma && !open.empty()) || isAttributes;
}

size_t Formatter::lengthTo(size_t last) const {
  size_t length = 0;
  for (size_t i = at; i < last; ++i)
    length += pieces[i].token.text.size() + (i == at ? 0 : pieces[i].gap.size());
  return length;
}

bool Formatter::mustBreak(const Piece &piece) const {
  if (isDump || at == 0 || fresh || !mayBreakBefore(at))
    return false;
  size_t next = at; // the next place that is nested as deeply or less
  for (int open = 0; next == at || (open > 0 || !mayBreakBefore(next)); ++next) {
    if (next > at && (next >= pieces.size() || pieces[next].breaks()))
      break;
    open += isOpening(pieces[next].token.kind) ? 1 : isClosing(pieces[next].token.kind) ? -1 : 0;
  }
  size_t start = out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n') + 1;
  return out.size() - start + piece.gap.size() + lengthTo(next) > formattedWidth;
}

/// A comma before a closing bracket stays where the bracket begins a line.
void Formatter::takeComma(const Piece &piece, bool breaks) {
  if (!piece.hasComma)
    return;
  auto isBefore = [&](size_t token) {
    return nextComment < source.comments.size() && source.comments[nextComment].after <= token;
  };
  if (isBefore(piece.source - 1) || !(breaks || isBefore(piece.source)))
    return;
  out += ',';
  lastEnd = source.tokens[piece.source - 1].text.end();
}

void Formatter::emit(const Piece &piece) {
  const Token &written = source.tokens[piece.source];
  bool startsStatement = piece.breaks() && piece.token.kind != TokenKind::Colon;
  bool closes = isClosing(piece.token.kind), closesBody = closes && piece.breaks();
  size_t inner = startsStatement ? piece.indent() + (closesBody ? 2 : 0) : indentInside(false);
  bool kept = keepsBreak(piece);
  takeComma(piece, kept);
  takeComments(piece.source, at == 0 ? 0 : inner);
  if (startsStatement || at == 0) {
    bool blank = lastEnd && linesBetween(lastEnd, written.text.data()) > 1 && !closesBody &&
                 (afterComment || !isOpening(lastKind));
    if (blank || StringRef(piece.gap).starts_with("\n\n"))
      newLine(0);
    newLine(at == 0 ? 0 : piece.indent());
    statementIndent = at == 0 ? 0 : piece.indent();
    open.clear();
    inItem = piece.token.kind == TokenKind::Ident && piece.token.text != "param";
  } else if (piece.breaks()) { // the types below a node
    newLine(piece.indent());
  } else if (kept || afterComment || mustBreak(piece)) {
    if (isOpening(lastKind) && !open.empty())
      open.back() = true;
    newLine(indentInside(closes));
  } else {
    out += piece.gap;
  }
  out += piece.token.text;
  fresh = false;
  if (isOpening(piece.token.kind) && !(at + 1 < pieces.size() && pieces[at + 1].breaks()))
    open.push_back(false);
  if (closes && !closesBody && !open.empty())
    open.pop_back();
  lastEnd = written.text.end();
  lastKind = piece.token.kind;
}

std::variant<std::string, SyntaxError> formatText(StringRef text) {
  auto parsed = parseText(text);
  if (auto *wrong = std::get_if<SyntaxError>(&parsed))
    return std::move(*wrong);
  return formatParsed(text, std::get<ast::File>(parsed));
}

std::string formatParsed(StringRef text, const ast::File &file) { return Formatter(text, file).run(); }

} // namespace msc::frontend
