// Text <-> syntax tree.
#include "AstGenerator.h"

#include "frontend/AstPrinter.h"
#include "frontend/Lexer.h"
#include "frontend/Parser.h"

#include <gtest/gtest.h>

using namespace msc::frontend;
namespace test = msc::test;

namespace {

ast::File parsed(const std::string &text) {
  auto result = parseText(text);
  if (auto *wrong = std::get_if<SyntaxError>(&result)) {
    ADD_FAILURE() << wrong->message << "\nin: " << text;
    return {};
  }
  return std::get<ast::File>(result);
}

std::string messageOf(const std::string &text) {
  auto result = parseText(text);
  return std::holds_alternative<SyntaxError>(result) ? std::get<SyntaxError>(result).message : "";
}

std::vector<TokenKind> kindsOf(llvm::StringRef text) {
  std::vector<TokenKind> kinds;
  for (const Token &token : lex(text).tokens)
    kinds.push_back(token.kind);
  kinds.pop_back();
  return kinds;
}

TEST(Lexer, DigitsJoinedByMinusAreOneWord) {
  EXPECT_EQ(kindsOf("0-1-2-3"), std::vector{TokenKind::Word});
  EXPECT_EQ(kindsOf("4-6301172352641561019"), std::vector{TokenKind::Word});
  EXPECT_EQ(kindsOf("4 - 1"), (std::vector{TokenKind::Int, TokenKind::Minus, TokenKind::Int}));
}

TEST(Lexer, RangesAndNumbers) {
  EXPECT_EQ(kindsOf("0..12"), (std::vector{TokenKind::Int, TokenKind::DotDot, TokenKind::Int}));
  EXPECT_EQ(kindsOf("1.5 6e-4 1e5 2.5E+3"),
            (std::vector{TokenKind::Float, TokenKind::Float, TokenKind::Float, TokenKind::Float}));
}

TEST(Lexer, PercentIsValueOrRemainder) {
  EXPECT_EQ(kindsOf("%para3_layer1.0.conv1.weight"), std::vector{TokenKind::Value});
  EXPECT_EQ(kindsOf("a % b"), (std::vector{TokenKind::Ident, TokenKind::Percent, TokenKind::Ident}));
}

TEST(Lexer, DumpFormsAreOneToken) {
  EXPECT_EQ(kindsOf("%13(equiv[CNode]520)"), (std::vector{TokenKind::Value, TokenKind::DebugName}));
  EXPECT_EQ(kindsOf("<Tuple[Int64*2], sequence_nodes={node={ValueNode<ValueTuple> (0, 0)}, node={<freed node>}}>"),
            std::vector{TokenKind::DumpType});
  EXPECT_EQ(kindsOf("$(@1_construct.337:%para4_w2)"), std::vector{TokenKind::Outer});
  EXPECT_EQ(kindsOf("a < b"), (std::vector{TokenKind::Ident, TokenKind::Less, TokenKind::Ident}));
}

TEST(Lexer, FileRemarksOfBothForms) {
  EXPECT_EQ(splitFileRemark("net.mir(12)"), (std::pair<llvm::StringRef, int64_t>("net.mir", 12)));
  EXPECT_EQ(splitFileRemark("copy(1)/net.mir(12)"), (std::pair<llvm::StringRef, int64_t>("copy(1)/net.mir", 12)));
  EXPECT_EQ(splitFileRemark("/a/b.py(45)/        out = f(x)(3)/"), (std::pair<llvm::StringRef, int64_t>("/a/b.py", 45)));
  EXPECT_EQ(splitFileRemark("no line").second, 0);
}

TEST(Parser, PrecedenceIsFlatPerLevel) {
  ast::File file = parsed("const a = 1 + 2 * 3 - 4 == 5 && true || false");
  EXPECT_EQ(toText(file), "const a = 1 + 2 * 3 - 4 == 5 && true || false\n");
  const auto &value = std::get<ast::Const>(file.items[0]).value;
  ASSERT_EQ(value.items.size(), 2u);
  EXPECT_EQ(value.items[1].key, "||");
  const auto &sum = value.items[0].value.items[0].value.items[0].value;
  ASSERT_EQ(sum.items.size(), 3u);
  EXPECT_EQ(sum.items[1].key + sum.items[2].key, "+-");
}

TEST(Parser, NewlinesDoNotMatter) {
  EXPECT_EQ(parsed("network n(%x: f32[2]) { %a = ReLU(%x) @ \"r\" return out: %a }"),
            parsed("network n(\n%x: f32[2]\n)\n{\n%a\n=\nReLU(%x)\n@ \"r\"\nreturn\nout: %a\n}"));
}

TEST(Parser, EveryConstructReadsBack) {
  for (const char *text : {
           "import \"nn.mir\"\nconst batch = 32 * devices\nmesh (data: devices)\nmesh m (a: 2, b: 4)\n",
           "cell C(%x, %y: f32[2, 3], n: int, k: float = 0.5, s: string = \"a\", b: bool = true,) { yield %x }\n",
           "cell C(%x) { %s = if a != 1 || b { yield %x } else if c { yield %x } else { yield %x } return %s }\n",
           "cell C(%x) { %s: f32[2], %t = repeat i in 0..n - 1 with %h = %x, %g = %x { yield %h, %g } return %s }\n",
           "network n() { param %w: f32[] = Normal(0.01, mean: -1) @ \"old.name\" {requires_grad: false} return %w }\n",
           "train {optimizer: AdamW(learning_rate: Cosine(6e-4, warmup: 200)), x: [a, b.c, (1,), {k v: 1}]}\n",
           "dataset train {path: env(\"DATA\"), \"layer1.0\": 3, return: 4}\n",
       })
    EXPECT_EQ(parsed(toText(parsed(text))), parsed(text)) << text;
}

TEST(Parser, ManyEntriesOfADump) {
  ast::File file = parsed(R"(#IR entry      : @g
#Total subgraph: 1

#attrs         :
stage : step_parallel_begin
broadcast : 1

#Total params  : 1
%para1_w : <Ref[Tensor[Float32]], (2, 2), ref_key=:w>  :  has_default
    # In file net.mir(3)
subgraph attr:
subgraph instance: g : 0x55
subgraph @g parent: [subgraph @p](%para1_w) {
  %0(h), %1(k) = Foo($(@p:%para4_w2), @f, None) {instance name: foo} primitive_attrs: {a: 0-1} cnode_attrs: {b: true} {in_strategy: ((2))}
      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>, <UMonad>)
      # scope: (Default/net)
      # In file a.py(7)/ f(x)/
      # In file outer.py(9)/ g(x)/
  Return(loss: %0)
      : (<Tensor[Float32], (2)>)
}
)");
  EXPECT_TRUE(file.isDump);
  EXPECT_EQ(std::get<ast::Header>(file.items[2]).lines,
            (std::vector<std::string>{"stage : step_parallel_begin", "broadcast : 1"}));
  const auto &param = std::get<ast::DumpParam>(file.items[4]);
  EXPECT_EQ(param.origin.file, "net.mir");
  EXPECT_EQ(param.origin.line, 3);
  const auto &graph = std::get<ast::Subgraph>(file.items[7]);
  const auto &assign = std::get<ast::Assign>(graph.body.statements[0].node);
  const auto &call = std::get<ast::Call>(assign.rhs);
  EXPECT_EQ(assign.results[1].debugName, "k");
  EXPECT_EQ(call.origin.scope, "Default/net");
  EXPECT_EQ(call.origin.file, "a.py");
  EXPECT_EQ(call.origin.line, 7);
  EXPECT_EQ(call.attributes.size(), 4u);
  EXPECT_EQ(call.signature->results->size(), 2u);
  EXPECT_EQ(parsed(toText(file)), file);
}

TEST(Parser, GeneratedTreesReadBack) {
  size_t characters = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    ast::File file = test::AstGenerator(seed).file();
    std::string text = toText(file);
    characters += text.size();
    auto result = parseText(text);
    if (auto *wrong = std::get_if<SyntaxError>(&result))
      FAIL() << "seed " << seed << ": " << wrong->message << " at\n" << wrong->place.getPointer() << "\nin\n" << text;
    ASSERT_EQ(toText(std::get<ast::File>(result)), text) << "seed " << seed;
    ASSERT_EQ(std::get<ast::File>(result), file) << "seed " << seed << "\n" << text;
  }
  EXPECT_GT(characters, 1000000u);
}

TEST(Parser, DeepNestingIsAnErrorNotACrash) {
  for (const char *open : {"(", "[", "-", "f(", "{a: "}) {
    std::string text = "const a = ";
    for (int i = 0; i < 100000; ++i)
      text += open;
    EXPECT_EQ(messageOf(text), "nested too deeply: more than 256 levels") << open;
  }
  std::string bodies = "cell c() ";
  for (int i = 0; i < 1000; ++i)
    bodies += "{ %a = if a ";
  EXPECT_EQ(messageOf(bodies), "nested too deeply: more than 256 levels");
}

TEST(Parser, LongChainsAreFine) {
  std::string text = "const a = 1";
  for (int i = 0; i < 200000; ++i)
    text += " + 1";
  EXPECT_EQ(std::get<ast::Const>(parsed(text).items[0]).value.items.size(), 200001u);
  std::string ladder = "cell c(%x) { %a = ";
  for (int i = 0; i < 20000; ++i)
    ladder += "if a { yield %x } else ";
  parsed(ladder + "{ yield %x } return %a }");
}

TEST(Parser, OneErrorNamesWhatIsMissing) {
  EXPECT_EQ(messageOf("network"), "expected the name of the network before the end of the file");
  EXPECT_EQ(messageOf("const if = 3"), "expected the name of a constant, found 'if'");
  EXPECT_EQ(messageOf("train"), "expected '{' behind 'train' before the end of the file");
  EXPECT_EQ(messageOf("train {a 3}"), "expected ':' behind a key, found '3'");
  EXPECT_EQ(messageOf("%a : f32[2]"), "expected a type such as <Tensor[Float32], (16, 32)>, found 'f32'");
  EXPECT_EQ(messageOf("cell c() { %a = return(3) }"), "expected the name of an operator or cell, found 'return'");
  EXPECT_EQ(messageOf("const a = \x01"), "unexpected byte 1");
  EXPECT_EQ(messageOf("const a = <Tensor"), "'<' without '>' on the same line");
}

} // namespace
