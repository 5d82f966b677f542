// What `msc lsp` reads before anything checks it: messages with lengths, positions, texts that are no networks yet.
#include "frontend/Lexer.h"
#include "test/fuzz/Fuzzer.h"
#include "tools/lsp/Document.h"
#include "tools/lsp/Outline.h"
#include "tools/lsp/Transport.h"

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

using namespace msc;
using namespace msc::lsp;
using msc::test::require;

namespace msc::test {

std::vector<std::string> fuzzSeeds() {
  return {
      "import \"nn.mir\"\nconst width = 4\ncell C(%t, scale: float = 2.0) {\n  %d = Mul(%t, scale) @ \"d{i}\"\n  return %d\n}\n"
      "network n(%x: f32[8, width]) {\n  param %w: f32[4] = Normal(0.1) {sharding: (None)}\n  %a, %b = C(%x, scale: 1e-3)\n"
      "  %r = repeat i in 0..2 with %l = %a, %m = %b {\n    %s = if i == 0 { yield %l } else { yield %m }\n    yield %s, %m\n  }\n"
      "  return out: %r\n}\ntrain {optimizer: SGD(0.1), minimize: out}\n",
      "#IR entry      : @net\n#attrs         :\nstage : begin\n\n%para1_x : <Tensor[Float32], (16, 32)>  :  has_default\n"
      "subgraph @net(%para1_x) {\n  %0(h) = ReLU(%para1_x) {instance name: relu} cnode_attrs: {a: b}\n      : (<T>) -> (<T>)\n"
      "      # scope: (Default)\n  Return(%0)\n}\n",
      "Content-Length: 17\r\nContent-Type: x\r\n\r\n{\"method\":\"exit\"}Content-Length: 2\r\n\r\n{}",
      "# \xE7\xBD\x91\xE7\xBB\x9C \xF0\x9D\x84\x9E\r\nnetwork n(%\xE7: f32[",
  };
}

} // namespace msc::test

/// All spans lie in the text, names resolve to what is known there.
static void checkOutline(const std::string &text, const Outline &outline) {
  for (const Scope &scope : outline.scopes())
    require(scope.span.begin <= scope.span.end && scope.span.end <= text.size(), "scopes lie in the text");
  for (const Symbol &symbol : outline.symbols()) {
    require(symbol.span.begin < symbol.span.end && symbol.span.end <= text.size(), "names lie in the text");
    require(symbol.scope < outline.scopes().size() && symbol.body < outline.scopes().size(), "scopes are there");
  }
  for (size_t offset = 0; offset <= text.size(); offset += 1 + text.size() / 16)
    for (const Symbol *symbol : outline.visible(offset))
      require(outline.resolve(symbol->name, symbol->isValue(), offset) == symbol, "what is visible is what its name means");
}

static void checkPositions(const std::string &content, bool inBytes) {
  Text text(content, inBytes);
  for (size_t offset = 0; offset <= content.size(); offset += 1 + content.size() / 64) {
    Position position = text.positionAt(offset);
    size_t back = text.offsetAt(position);
    // Within a character, or behind the text of a line, it is the nearest place before.
    require(back <= content.size() && (inBytes ? back <= offset : true), "positions lie in the text");
    require(text.offsetAt(text.positionAt(back)) == back, "positions are places");
  }
  require(text.offsetAt({int64_t{1} << 61, 7}) == content.size(), "behind the last line is the end");
}

static void checkTransport(const std::string &bytes) {
  int file = memfd_create("input", 0);
  require(file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "there is memory");
  lseek(file, 0, SEEK_SET);
  Transport transport(file, stdout);
  size_t sum = 0;
  for (;;) {
    Result<std::optional<std::string>> message = transport.read();
    if (!message) {
      require(!message.error().message.empty(), "an error says what is wrong");
      break;
    }
    if (!*message)
      break;
    sum += (*message)->size() + 4;
  }
  require(sum <= bytes.size(), "no byte is read twice");
  close(file);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  checkOutline(text, Outline(text));
  size_t limit = size == 0 ? 0 : data[0] * size / 256;
  Outline part(text, limit);
  for (const frontend::Token &token : part.tokens())
    require(part.spanOf(token).begin < limit, "nothing behind the limit is read");
  checkOutline(text, part);
  checkPositions(text, /*inBytes=*/false);
  checkPositions(text, /*inBytes=*/true);
  checkTransport(text);
  pathOf(text);
  return 0;
}
