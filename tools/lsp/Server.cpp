// The protocol: what comes in, what goes out. What is answered is in Answers.cpp.
#include "tools/lsp/Server.h"

#include "runtime/messages/Catalogue.h"

#include <algorithm>

namespace msc::lsp {

namespace {

// Codes of JSON-RPC and of the protocol.
constexpr int parseError = -32700, invalidRequest = -32600, methodNotFound = -32601, invalidParams = -32602,
              notInitialized = -32002;

/// All texts together; editors open a few files.
constexpr size_t mostBytes = 256 << 20;
constexpr size_t mostDocuments = 1000;

std::optional<std::string> textIn(const Json &params, const char *object, const char *key) {
  const Json *found = member(params, object);
  return found ? text(member(*found, key)) : std::nullopt;
}

std::optional<Position> positionIn(const Json &params) {
  const Json *position = member(params, "position");
  std::optional<int64_t> line = position ? wholeNumber(member(*position, "line")) : std::nullopt;
  std::optional<int64_t> character = position ? wholeNumber(member(*position, "character")) : std::nullopt;
  if (!line || !character)
    return std::nullopt;
  return Position{*line, *character};
}

Json idOf(const Json &message) {
  const Json *id = member(message, "id");
  return id && (id->is_number() || id->is_string()) ? *id : Json();
}

} // namespace

int Server::run(Error &failure) {
  while (!isOver) {
    if (!transport.hasMore())
      for (auto &[uri, document] : documents)
        if (!document.analysis)
          if (Status status = publish(uri, document); !status) {
            failure = status.error();
            return static_cast<int>(failure.code);
          }
    Result<std::optional<std::string>> read = transport.read();
    if (!read) {
      failure = read.error();
      return static_cast<int>(failure.code);
    }
    if (!*read)
      break;
    Result<Json> message = parseJsonObject(**read, "the message");
    Status status = message
                        ? handle(*message)
                        : transport.write({{"jsonrpc", "2.0"},
                                           {"id", nullptr},
                                           {"error", {{"code", parseError}, {"message", message.error().message}}}});
    if (!status) {
      failure = status.error();
      return static_cast<int>(failure.code);
    }
  }
  return isShutDown ? 0 : 1;
}

Status Server::handle(const Json &message) {
  std::optional<std::string> method = text(member(message, "method"));
  const Json *params = member(message, "params");
  bool isRequest = message.contains("id");
  if (!method && (message.contains("result") || message.contains("error")))
    return {}; // the server asks nothing
  if (method && !isRequest)
    return notice(*method, params ? *params : Json::object());
  Answer given = !method                   ? Answer(Refusal{invalidRequest, "the message has no method"})
                 : idOf(message).is_null() ? Answer(Refusal{invalidRequest, "the id is neither a number nor a text"})
                                           : answer(*method, params ? *params : Json::object());
  Json reply = {{"jsonrpc", "2.0"}, {"id", idOf(message)}};
  if (const Refusal *refusal = std::get_if<Refusal>(&given))
    reply["error"] = {{"code", refusal->code}, {"message", refusal->message}};
  else
    reply["result"] = std::get<Json>(given);
  return transport.write(reply);
}

Server::Answer Server::answer(const std::string &method, const Json &params) {
  if (method == "initialize")
    return initialize(params);
  if (!isInitialized)
    return Refusal{notInitialized, "'initialize' comes first"};
  if (isShutDown)
    return Refusal{invalidRequest, "nothing but 'exit' follows 'shutdown'"};
  if (method == "shutdown") {
    isShutDown = true;
    return Json();
  }
  bool hasPosition =
      method == "textDocument/hover" || method == "textDocument/definition" || method == "textDocument/completion";
  if (!hasPosition && method != "textDocument/documentSymbol" && method != "textDocument/formatting")
    return Refusal{methodNotFound, "unknown method '" + method + "'"};
  std::optional<std::string> uri = textIn(params, "textDocument", "uri");
  if (!uri)
    return Refusal{invalidParams, "'" + method + "' needs textDocument.uri"};
  auto found = documents.find(*uri);
  if (found == documents.end())
    return Refusal{invalidParams, "'" + *uri + "' is not open"};
  Document &document = found->second;
  if (method == "textDocument/documentSymbol")
    return symbols(document);
  if (method == "textDocument/formatting")
    return formatting(document);
  std::optional<Position> position = positionIn(params);
  if (!position)
    return Refusal{invalidParams, "'" + method + "' needs position.line and position.character"};
  size_t offset = document.text.offsetAt(*position);
  if (method == "textDocument/hover") {
    analysisOf(*uri, document);
    return hover(document, pathOf(*uri), offset);
  }
  return method == "textDocument/definition" ? definition(document, *uri, pathOf(*uri), offset)
                                             : completion(document, pathOf(*uri), offset);
}

Server::Answer Server::initialize(const Json &params) {
  if (isInitialized)
    return Refusal{invalidRequest, "'initialize' comes once"};
  isInitialized = true;
  const Json *capabilities = member(params, "capabilities");
  const Json *general = capabilities ? member(*capabilities, "general") : nullptr;
  const Json *encodings = general ? member(*general, "positionEncodings") : nullptr;
  if (encodings && encodings->is_array())
    inBytes = std::find(encodings->begin(), encodings->end(), Json("utf-8")) != encodings->end();
  Json abilities = {
      {"positionEncoding", inBytes ? "utf-8" : "utf-16"},
      {"textDocumentSync", {{"openClose", true}, {"change", 1}}}, // whole texts
      {"hoverProvider", true},
      {"definitionProvider", true},
      {"documentSymbolProvider", true},
      {"documentFormattingProvider", true},
      {"completionProvider", {{"triggerCharacters", {"%", "(", "{", " "}}}},
  };
  return Json{{"capabilities", abilities}, {"serverInfo", {{"name", "msc"}, {"version", MSC_VERSION}}}};
}

Status Server::notice(const std::string &method, const Json &params) {
  if (method == "exit")
    isOver = true;
  if (!isInitialized || isShutDown)
    return {};
  std::optional<std::string> uri = textIn(params, "textDocument", "uri");
  if (!uri)
    return {};
  const Json *version = member(params["textDocument"], "version");
  bool isKept = true;
  if (method == "textDocument/didOpen") {
    if (auto content = textIn(params, "textDocument", "text"))
      isKept = setText(*uri, std::move(*content), version);
  } else if (method == "textDocument/didChange" && documents.count(*uri)) {
    const Json *changes = member(params, "contentChanges");
    bool hasWhole = changes && changes->is_array() && !changes->empty() && !changes->back().contains("range");
    if (auto content = hasWhole ? text(member(changes->back(), "text")) : std::nullopt)
      isKept = setText(*uri, std::move(*content), version);
  } else if (method == "textDocument/didClose" && documents.erase(*uri) != 0) {
    return transport.write({{"jsonrpc", "2.0"},
                            {"method", "textDocument/publishDiagnostics"},
                            {"params", {{"uri", *uri}, {"diagnostics", Json::array()}}}});
  }
  if (isKept)
    return {};
  documents.erase(*uri);
  return transport.write({{"jsonrpc", "2.0"},
                          {"method", "window/showMessage"},
                          {"params", {{"type", 1}, {"message", "msc: '" + *uri + "' is too much to keep in memory"}}}});
}

bool Server::setText(const std::string &uri, std::string text, const Json *version) {
  size_t sum = text.size();
  for (const auto &[other, document] : documents)
    sum += other == uri ? 0 : document.text.content().size();
  if (sum > mostBytes || documents.size() >= mostDocuments)
    return false;
  Document document(Text(std::move(text), inBytes));
  document.version = wholeNumber(version);
  documents.insert_or_assign(uri, std::move(document));
  return true;
}

compiler::Analysis &Server::analysisOf(const std::string &uri, Document &document) {
  if (!document.analysis) {
    options.input = pathOf(uri);
    document.analysis = compiler::analyse(document.text.content(), options);
  }
  return *document.analysis;
}

Json Server::rangeOf(const Text &text, Span span) const {
  auto place = [&](size_t offset) -> Json {
    Position position = text.positionAt(offset);
    return {{"line", position.line}, {"character", position.character}};
  };
  return {{"start", place(span.begin)}, {"end", place(span.end)}};
}

Json Server::findingJson(const compiler::Finding &finding, const std::string &uri, const Document &document) const {
  const std::string &content = document.text.content();
  auto spanOf = [&](const compiler::TextPlace &place) -> Span {
    size_t begin = place.file.empty() ? document.text.offsetOf(place.line, place.column) : 0;
    size_t length = place.column != 0 && place.file.empty() && begin < content.size()
                        ? frontend::tokenLength(llvm::StringRef(content).drop_front(begin))
                        : 0;
    return {begin, std::min(begin + length, content.size())};
  };
  // What is wrong in an imported file is shown at the top, with its place beside it.
  Json related = Json::array();
  auto relate = [&](const compiler::TextPlace &place, const std::string &text) {
    Json start = {{"line", place.line == 0 ? 0 : place.line - 1},
                  {"character", place.column == 0 ? 0 : place.column - 1}};
    Json range = place.file.empty() ? rangeOf(document.text, spanOf(place)) : Json{{"start", start}, {"end", start}};
    related.push_back(
        {{"location", {{"uri", place.file.empty() ? uri : uriOf(place.file)}, {"range", range}}}, {"message", text}});
  };
  if (!finding.place.file.empty())
    relate(finding.place, finding.text);
  for (const auto &[place, text] : finding.notes)
    relate(place, text);
  Json json = {{"range", rangeOf(document.text, spanOf(finding.place))},
               {"severity", 1 + static_cast<int>(finding.kind)},
               {"source", "msc"},
               {"message", finding.text + (finding.help.empty() ? "" : "\n" + finding.help)}};
  if (finding.code != 0)
    json["code"] = messages::codeText(finding.code);
  if (!related.empty())
    json["relatedInformation"] = related;
  return json;
}

Status Server::publish(const std::string &uri, Document &document) {
  Json list = Json::array();
  for (const compiler::Finding &finding : analysisOf(uri, document).findings)
    list.push_back(findingJson(finding, uri, document));
  Json params = {{"uri", uri}, {"diagnostics", list}};
  if (document.version)
    params["version"] = *document.version;
  return transport.write({{"jsonrpc", "2.0"}, {"method", "textDocument/publishDiagnostics"}, {"params", params}});
}

} // namespace msc::lsp
