// `msc lsp`: what editors ask about networks, by the Language Server Protocol.
#pragma once

#include "compiler/Analysis.h"
#include "compiler/Operators.h"
#include "tools/lsp/Document.h"
#include "tools/lsp/Transport.h"

#include <map>
#include <optional>
#include <string>
#include <variant>

namespace msc::lsp {

/// One editor, one thread: messages are answered in their order. Mistakes are sought when no further message waits, so
/// that typing is not held up.
class Server {
public:
  /// How networks are compiled: number of devices, -D.
  Server(Transport &transport, compiler::CompileOptions options) : transport(transport), options(std::move(options)) {}

  /// Until `exit` or the end of the input. 0 after a `shutdown`, else 1; 3 if the input is no protocol.
  int run(Error &failure);

private:
  struct Document {
    explicit Document(Text text) : text(std::move(text)) {}
    Text text;
    std::optional<int64_t> version;
    std::optional<compiler::Analysis> analysis; ///< of this text
  };
  /// A request of the protocol that cannot be answered.
  struct Refusal {
    int code;
    std::string message;
  };
  using Answer = std::variant<Json, Refusal>;

  Status handle(const Json &message);
  Answer answer(const std::string &method, const Json &params);
  Status notice(const std::string &method, const Json &params);

  Answer initialize(const Json &params);
  Answer hover(const Document &document, const std::string &path, size_t offset);
  Answer definition(const Document &document, const std::string &uri, const std::string &path, size_t offset);
  Answer completion(const Document &document, const std::string &path, size_t offset);
  Answer symbols(const Document &document) const;
  Answer formatting(const Document &document) const;

  /// Text of a document that was opened or changed; false if it is more than the server keeps.
  bool setText(const std::string &uri, std::string text, const Json *version);
  Status publish(const std::string &uri, Document &document);
  compiler::Analysis &analysisOf(const std::string &uri, Document &document);
  Json rangeOf(const Text &text, Span span) const;
  Json findingJson(const compiler::Finding &finding, const std::string &uri, const Document &document) const;
  std::string valueText(const Document &document, const Symbol &symbol) const;
  const compiler::OperatorDescription *operatorOf(const std::string &name);
  const std::vector<compiler::OperatorDescription> &operators();

  Transport &transport;
  compiler::CompileOptions options;
  std::map<std::string, Document> documents; ///< by URI
  std::optional<std::vector<compiler::OperatorDescription>> described;
  bool isInitialized = false, isShutDown = false, isOver = false, inBytes = false;
};

} // namespace msc::lsp
