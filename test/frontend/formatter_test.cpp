// `msc fmt`: the layout, what stays, and that a second run changes nothing.
#include "AstGenerator.h"
#include "Productions.h"

#include "frontend/AstPrinter.h"
#include "frontend/Formatter.h"
#include "frontend/Lexer.h"

#include <gtest/gtest.h>

using namespace msc::frontend;

namespace {

std::string formatted(const std::string &text) {
  auto result = formatText(text);
  if (auto *wrong = std::get_if<SyntaxError>(&result)) {
    ADD_FAILURE() << wrong->message << "\nin: " << text;
    return "";
  }
  return std::get<std::string>(result);
}

ast::File parsed(const std::string &text) {
  auto result = parseText(text);
  EXPECT_TRUE(std::holds_alternative<ast::File>(result)) << std::get<SyntaxError>(result).message << "\nin: " << text;
  return std::holds_alternative<ast::File>(result) ? std::get<ast::File>(result) : ast::File();
}

/// The comments in order, without '#' and blanks.
std::vector<std::string> commentsOf(const std::string &text) {
  std::vector<std::string> all;
  for (const Comment &comment : lex(text).comments)
    all.push_back(comment.text.drop_front().trim().str());
  return all;
}

void expectSound(const std::string &text) {
  std::string once = formatted(text);
  EXPECT_EQ(parsed(once), parsed(text)) << text << "\nbecame\n" << once;
  EXPECT_EQ(commentsOf(once), commentsOf(text)) << text << "\nbecame\n" << once;
  EXPECT_EQ(formatted(once), once) << "of\n" << text;
}

TEST(Formatter, BlanksAndLines) {
  EXPECT_EQ(formatted(R"(
const   a=1+2*-3
mesh(data:2,model : 4)
network  n( %x:f32[ 16,32 ],
   %y : f32[2]) { %a=ReLU( %x )@"r"{in_strategy:((2,4))}   return out:%a,%y }
train{optimizer:SGD(0.1),minimize:loss,}
)"),
            R"(const a = 1 + 2 * -3
mesh (data: 2, model: 4)
network n(%x: f32[16, 32],
    %y: f32[2]) {
  %a = ReLU(%x) @ "r" {in_strategy: ((2, 4))}
  return out: %a, %y
}
train {optimizer: SGD(0.1), minimize: loss}
)");
}

TEST(Formatter, CommentsAndBlankLinesStay) {
  EXPECT_EQ(formatted(R"(#first

# about a


const a = 1   # one
#about C
cell C(%x) {

    # inside
  %a = ReLU(%x)     # trailing

  # before the end
  return %a
  # last
}   # behind
# end
)"),
            R"(# first

# about a

const a = 1  # one
# about C
cell C(%x) {
  # inside
  %a = ReLU(%x)  # trailing

  # before the end
  return %a
  # last
}  # behind
# end
)");
}

TEST(Formatter, ShortBodiesStayOnTheirLine) {
  std::string text = R"(cell C(%x, n: int) {
  %s = if n != 1 {
    %p = ReLU(%x)
    yield %p
  } else { yield %x }
  return %s
}
)";
  EXPECT_EQ(formatted(text), text);
}

TEST(Formatter, LineBreaksOfListsStay) {
  std::string text = R"(dataset train {
  source: Random(seed: 1), batch: 32,  # both
  # the picture
  image: [Resize(224), Rescale(1.0 / 255.0, 0.0)],
}
)";
  EXPECT_EQ(formatted(text), text);
}

TEST(Formatter, LongLinesAreBroken) {
  std::string text = "network n(%x: f32[2]) {\n  %value_of_a_long_name = SomeOperatorOfALongName(%x, %x, %x, axis: (0, 1, 2), "
                     "keep_dims: true) @ \"name.of.the.instance\" {in_strategy: ((2, 4), (4, 1)), out_strategy: ((2, 4))}\n"
                     "  return out: %value_of_a_long_name\n}\n";
  EXPECT_EQ(formatted(text), R"(network n(%x: f32[2]) {
  %value_of_a_long_name = SomeOperatorOfALongName(%x, %x, %x, axis: (0, 1, 2), keep_dims: true) @ "name.of.the.instance"
      {in_strategy: ((2, 4), (4, 1)), out_strategy: ((2, 4))}
  return out: %value_of_a_long_name
}
)");
  expectSound(text);
}

TEST(Formatter, HeadersOfDumpsStayHeaders) {
  std::string text = R"(#IR entry      : @g
#attrs         :
stage : begin
# no attribute

  #attrs of no dump
%para1_x : <Tensor[Float32], (2)>
    # In file net.mir(3)
subgraph @g(%para1_x) {
  %0(h) = ReLU(%para1_x)
      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)
      # scope: (Default)
  Return(%0)
      : (<Tensor[Float32], (2)>)
}
)";
  expectSound(text);
  EXPECT_NE(formatted(text).find("\n# attrs of no dump\n"), std::string::npos) << formatted(text);
}

TEST(Formatter, CommentsAnywhere) {
  expectSound("network n(# a\n%x: f32[2] # b\n, # c\n%y: f32[2]) # d\n{ # e\n%a # f\n = # g\n ReLU( # h\n%x, # i\n) # j\n @ # k\n"
              "\"r\" # l\n{ # m\na: 1 # n\n, # o\n} # p\n return # q\n %a # r\n } # s\n");
}

/// No comma may stand here: nothing is in the list, or it is `parent: [subgraph @g]`.
bool endsBare(const Tokens &tokens, size_t closing) {
  TokenKind before = tokens.tokens[closing - 1].kind;
  return before == TokenKind::LParen || before == TokenKind::LBrace || before == TokenKind::LBracket ||
         before == TokenKind::Graph || tokens.tokens[closing - 1].text == "subgraph";
}

/// The text with blanks, line breaks, comments and commas put wherever the grammar allows them.
std::string disturbed(const std::string &text, std::mt19937 &random, int &commas) {
  Tokens tokens = lex(text);
  std::string out;
  const char *end = text.data();
  for (size_t i = 0; i < tokens.tokens.size(); ++i) {
    const Token &token = tokens.tokens[i];
    llvm::StringRef gap(end, token.text.data() - end);
    TokenKind before = i ? tokens.tokens[i - 1].kind : TokenKind::End;
    bool isFixed = token.kind == TokenKind::Header || token.kind == TokenKind::AttrLine || token.kind == TokenKind::DebugName ||
                   before == TokenKind::Header || before == TokenKind::AttrLine || gap.contains('#') || gap.empty();
    bool closesList = (token.kind == TokenKind::RParen || token.kind == TokenKind::RBrace || token.kind == TokenKind::RBracket) &&
                      !gap.contains('\n') && !endsBare(tokens, i);
    if (closesList && random() % 4 == 0) {
      out += random() % 2 ? "," : " # comma\n ,";
      ++commas;
    }
    if (isFixed)
      out += gap.str();
    else if (random() % 8 == 0)
      out += std::string(random() % 2, ' ') + (random() % 2 ? " # note " + std::to_string(random() % 100) : "") +
             std::string(1 + random() % 3, '\n') + std::string(1 + random() % 6, ' ');
    else
      out += gap.str() + std::string(random() % 3, ' ');
    out += token.text.str();
    end = token.text.end();
  }
  return out;
}

TEST(Formatter, GeneratedFilesKeepTheirMeaningAndSettle) {
  std::mt19937 random(7);
  msc::test::Productions productions;
  int commas = 0;
  for (unsigned seed = 0; seed < 5000 && !testing::Test::HasFailure(); ++seed) {
    ast::File file = msc::test::AstGenerator(seed).file();
    std::string text = toText(file);
    ASSERT_EQ(parsed(text), file) << text;
    productions.count(file);
    std::string loose = disturbed(text, random, commas);
    ASSERT_EQ(parsed(loose), file) << loose;
    expectSound(loose);
  }
  EXPECT_GE(commas, 100);
  for (const auto &[name, count] : productions.counts)
    EXPECT_GE(count, 100) << name;
  EXPECT_EQ(productions.counts.size(), msc::test::Productions().counts.size()) << "a production that the list lacks";
}

} // namespace
