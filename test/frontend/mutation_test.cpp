// Damaged texts are refused with a message or read; nothing crashes, hangs or stays silent.
#include "Reading.h"

#include "frontend/Printer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

using namespace msc;

namespace {

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  std::string mutate(std::string text) {
    for (int n = 1 + static_cast<int>(random() % 4); n > 0 && !text.empty(); --n)
      once(text);
    return text;
  }

private:
  size_t below(size_t size) { return random() % size; }

  void once(std::string &text) {
    static const char *const words[] = {"%x",     "(",      ")",  "{",  "}",    "[",   "]",     ",",   ":",      "=",
                                        "repeat", "if",     "-",  "..", "@",    "\"",  "<T",    "$(",  "return", "yield",
                                        "param",  "0",      "-1", "1e9", "9999999999999999999", "in", "ReLU",  "Split",
                                        "\n#attrs\n", "# In file a(3)", "devices", "\\", "\x80", "\t"};
    size_t at = below(text.size()), length = std::min(text.size() - at, 1 + below(12));
    switch (below(5)) {
    case 0: text.erase(at, length); break;
    case 1: text[at] = static_cast<char>(random() % 128); break;
    case 2: text.insert(at, words[below(std::size(words))]); break;
    case 3: text.insert(below(text.size()), text.substr(at, length * 4)); break;
    default: text.replace(at, length, text.substr(below(text.size()), length)); break;
    }
  }

  std::mt19937 random;
};

std::string fileText(const std::string &path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> corpus() {
  std::vector<std::string> texts = {test::quickstart, fileText(FRONTEND_TEST_DATA "/mindspore.ir"),
                                    fileText(FRONTEND_TEST_DATA "/cells.mir")};
  test::Reading reading(test::quickstart);
  llvm::raw_string_ostream os(texts.emplace_back());
  frontend::printBeginDump(*reading.module, os);
  return texts;
}

TEST(DamagedText, IsReadOrRefusedWithAMessage) {
  std::vector<std::string> texts = corpus();
  mlir::DialectRegistry registry;
  net::registerNetDialect(registry);
  auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const char *wanted = std::getenv("MSC_LONG");
  bool isLong = wanted && std::string(wanted) != "0";
  size_t read = 0, refused = 0, bytes = 0;
  // A context keeps what it has seen; a new one now and then.
  for (unsigned batch = 0; isLong ? elapsed() < 240 : batch < 20; ++batch) {
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadDialect<net::NetDialect, dist::DistDialect>();
    for (unsigned i = 0; i < 1000; ++i) {
      unsigned seed = batch * 1000 + i;
      std::string text = Mutator(seed).mutate(texts[seed % texts.size()]);
      bytes += text.size();
      llvm::SourceMgr sources;
      std::string said;
      llvm::raw_string_ostream stream(said);
      frontend::Diagnostics diagnostics(context, sources, stream);
      auto module = frontend::parseString(text, "net.mir", context, {.devices = 8}, sources);
      ASSERT_EQ(static_cast<bool>(module), diagnostics.errors() == 0) << "seed " << seed << "\n" << said << text;
      ++(module ? read : refused);
      if (!module)
        continue;
      ASSERT_TRUE(mlir::succeeded(mlir::verify(*module))) << "seed " << seed << "\n" << said << text;
      bool sound = mlir::succeeded(net::readConfig(*module));
      ASSERT_EQ(sound, diagnostics.errors() == 0) << "seed " << seed << "\n" << said << text;
      std::string dump;
      llvm::raw_string_ostream os(dump);
      frontend::printBeginDump(*module, os);
      ASSERT_TRUE(frontend::parseString(dump, "dump.ir", context, {.devices = 8}, sources))
          << "seed " << seed << "\n" << said << dump;
    }
  }
  std::printf("%zu damaged texts (%.1f MB) in %.0f s: %zu read, printed and read again, %zu refused with a message\n",
              read + refused, static_cast<double>(bytes) * 1e-6, elapsed(), read, refused);
  EXPECT_GT(read, 1000u);
  EXPECT_GT(refused, 10000u);
  EXPECT_LT(elapsed(), isLong ? 400 : 120);
}

} // namespace
