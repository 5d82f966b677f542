// How fast the text of dumps is read, on one core: MB/s of the parser (text to syntax tree) and of its lexer alone,
// against what reading the bytes costs (counting the lines). The dump is one of ours with its node lines repeated under
// new names.
//   parse_bench [megabytes [repetitions]]
#include "frontend/Lexer.h"
#include "frontend/Parser.h"
#include "test/bench/Timing.h"

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace msc;
using namespace msc::bench;

/// As `--save-graphs` writes it: a product, a bias, an activation and a sum per layer, with scopes and places.
static std::string dumpOf(size_t bytes) {
  std::string text =
      "#IR entry      : @net\n#Total subgraph: 1\n\n#attrs         :\nstage : step_parallel_begin\n\n#Total params  : "
      "1\n\n"
      "%para1_x : <Tensor[Float32], (16, 32)>\n\nsubgraph attr:\nsubgraph instance: net\nsubgraph @net(%para1_x) {\n";
  auto node = [&](const std::string &name, const std::string &call, const std::string &types,
                  const std::string &strategy) {
    text += "  " + name + " = " + call +
            " {instance name: layers.attention.projection} primitive_attrs: {transpose_a: false, transpose_b: " +
            "false, in_strategy: " + strategy +
            "} cnode_attrs: {strategy_origin: propagated, strategy_source: matmul} {in_strategy: " + strategy +
            "}\n      : " + types +
            "\n      # scope: (Default/network/layers/attention)\n      # In file net.mir(17)\n";
  };
  for (int i = 0; text.size() < bytes; i += 3) {
    std::string x = i == 0 ? "%para1_x" : "%" + std::to_string(i - 1);
    std::string a = "%" + std::to_string(i), b = "%" + std::to_string(i + 1), c = "%" + std::to_string(i + 2);
    node(a + "(h)", "MatMul(" + x + ", %para1_x)",
         "(<Tensor[Float32], (16, 32)>, <Tensor[Float32], (32, 16)>) -> (<Tensor[Float32], (16, 16)>)",
         "((2, 4), (4, 1))");
    node(b + "(a)", "ReLU(" + a + ")", "(<Tensor[Float32], (16, 16)>) -> (<Tensor[Float32], (16, 16)>)", "((2, 4))");
    node(c, "Add(" + a + ", " + b + ")",
         "(<Tensor[Float32], (16, 16)>, <Tensor[Float32], (16, 16)>) -> (<Tensor[Float32], (16, 16)>)",
         "((2, 4), (2, 4))");
  }
  return text + "  Return(%para1_x)\n      : (<Tensor[Float32], (16, 32)>)\n}\n";
}

int main(int argc, char **argv) {
  const size_t megabytes = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 16;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 9;
  const std::string text = dumpOf(megabytes << 20);
  std::vector<double> parse, lex, lines;
  size_t found = 0;
  for (int i = 0; i < repetitions; ++i) {
    parse.push_back(secondsOf([&] {
      frontend::Parsed parsed = frontend::parseTolerantly(text);
      if (!parsed.errors.empty()) {
        std::fprintf(stderr, "the dump does not parse: %s\n", parsed.errors.front().message.c_str());
        std::exit(1);
      }
    }));
    lex.push_back(secondsOf([&] { found += frontend::lex(text).tokens.size(); }));
    lines.push_back(secondsOf([&] { found += static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }));
  }
  double size = static_cast<double>(text.size()) / 1e6;
  std::printf("a dump of %.1f MB: parser %.1f MB/s, lexer %.1f MB/s, counting lines %.0f MB/s (%zu)\n", size,
              size / median(parse), size / median(lex), size / median(lines), found);
}
