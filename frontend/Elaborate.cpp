// Items: constants, imports, the mesh, blocks. Bodies are in ElaborateNetwork.cpp, ElaborateParams.cpp and ElaborateCells.cpp.
#include "frontend/Elaborate.h"

#include "dialects/net/Config.h"
#include "dialects/net/ConfigFields.h"
#include "dialects/net/Pieces.h"
#include "dialects/net/Suggest.h"
#include "frontend/Diagnostics.h"
#include "frontend/Formatter.h"
#include "frontend/Parser.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace msc::frontend {

/// Largest file that is read; trees take a multiple of it.
static constexpr size_t maximumFile = 64 << 20;
/// Some editors begin UTF-8 text with this.
static constexpr StringLiteral byteOrderMark("\xEF\xBB\xBF");
/// Files import files; a longer chain is a mistake.
static constexpr size_t maximumImports = 64;

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// Parses one buffer of the source manager; reports the syntax errors. Nothing if there is no text to parse.
static std::optional<Parsed> parseBuffer(unsigned buffer, MLIRContext *context, SourceMgr &sources) {
  StringRef text = sources.getMemoryBuffer(buffer)->getBuffer();
  if (text.size() > maximumFile) {
    InFlightDiagnostic diagnostic = emitError(FileLineColLoc::get(context, sources.getMemoryBuffer(buffer)->getBufferIdentifier(), 0, 0))
                                    << "the file has " << text.size() << " bytes, more than " << maximumFile;
    net::addHelp(diagnostic, "move a part of it into files that it imports");
    return std::nullopt;
  }
  Parsed parsed = parseTolerantly(text);
  for (const SyntaxError &wrong : parsed.errors) {
    InFlightDiagnostic diagnostic = emitError(toLocation(context, sources, wrong.place)) << wrong.message;
    if (!wrong.note.empty())
      diagnostic.attachNote(toLocation(context, sources, wrong.notePlace)) << wrong.note;
    if (!wrong.help.empty())
      net::addHelp(diagnostic, wrong.help);
  }
  return parsed;
}

/// Locations name the file without its folder, so that a plan is the same wherever the network lies; the source manager
/// keeps the folder.
static OwningOpRef<ModuleOp> parseSource(StringRef text, StringRef path, MLIRContext &context,
                                         const ParseOptions &options, SourceMgr &sources) {
  sources.setIncludeDirs({sys::path::parent_path(path).str()});
  text.consume_front(byteOrderMark);
  StringRef name = sys::path::filename(path);
  unsigned buffer = sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(text, name), SMLoc());
  std::optional<Parsed> parsed = parseBuffer(buffer, &context, sources);
  if (!parsed)
    return nullptr;
  return Elaborator(context, sources, options).run(*parsed, name);
}

OwningOpRef<ModuleOp> parseFile(StringRef path, MLIRContext &context, const ParseOptions &options, SourceMgr &sources) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    emitError(UnknownLoc::get(&context)) << "cannot read '" << path << "': " << buffer.getError().message();
    return nullptr;
  }
  return parseSource((*buffer)->getBuffer(), path, context, options, sources);
}

OwningOpRef<ModuleOp> parseString(StringRef text, StringRef name, MLIRContext &context, const ParseOptions &options,
                                  SourceMgr &sources) {
  return parseSource(text, name, context, options, sources);
}

std::optional<std::string> formatString(StringRef text, StringRef path, MLIRContext &context, SourceMgr &sources) {
  sources.setIncludeDirs({sys::path::parent_path(path).str()});
  unsigned buffer = sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(text, sys::path::filename(path)), SMLoc());
  std::optional<Parsed> parsed = parseBuffer(buffer, &context, sources);
  if (!parsed || !parsed->errors.empty())
    return std::nullopt;
  return formatParsed(sources.getMemoryBuffer(buffer)->getBuffer(), parsed->file);
}

//===----------------------------------------------------------------------===//
// Devices and constants
//===----------------------------------------------------------------------===//

template <typename T> static std::vector<const T *> itemsOf(const ast::File &file) {
  std::vector<const T *> found;
  for (const ast::Item &item : file.items)
    if (const T *match = std::get_if<T>(&item))
      found.push_back(match);
  return found;
}

/// `--devices`, else the context's `device_num`, else the product of the mesh, else 1. These may themselves speak of
/// `devices`, which is then 1, and of constants; mistakes are reported later, when they are evaluated for good.
int64_t Elaborator::decideDevices(const ast::File &file) {
  devicesAreGiven = true;
  if (options.devices)
    return *options.devices;
  ScopedDiagnosticHandler quiet(context, [](Diagnostic &) { return success(); });
  Environment env;
  env.constants["devices"] = builder.getI64IntegerAttr(1);
  for (const ast::Const *item : itemsOf<ast::Const>(file))
    defineConst(*item, env, /*isTopLevel=*/true);
  for (const ast::Block *block : itemsOf<ast::Block>(file))
    for (const ast::Arg &field : block->fields)
      if (block->kind == "context" && keyText(field.key) == "device_num") {
        FailureOr<int64_t> number = evaluator.evaluateInteger(field.value, env, "'device_num'");
        return succeeded(number) && *number > 0 && *number <= net::mostDevices ? *number : 1;
      }
  devicesAreGiven = false;
  auto meshes = itemsOf<ast::Mesh>(file);
  int64_t product = 1;
  for (const ast::Arg &axis : meshes.empty() ? ArrayRef<ast::Arg>() : ArrayRef<ast::Arg>(meshes.front()->axes)) {
    FailureOr<int64_t> size = evaluator.evaluateInteger(axis.value, env, "an axis");
    std::optional<int64_t> next = failed(size) ? std::nullopt : checkedMul(product, *size);
    if (!next || *next < 1 || *next > net::mostDevices)
      return 1; // reported by addMesh
    product = *next;
  }
  return product;
}

/// Why no mesh has to fit: how operators are cut is decided without strategies. Empty: it has to.
std::string Elaborator::whyMeshesAreAside(const ast::File &file) {
  std::string mode = options.parallelMode;
  for (const ast::Block *block : itemsOf<ast::Block>(file))
    for (const ast::Arg &field : block->fields)
      if (mode.empty() && block->kind == "context" && keyText(field.key) == "parallel_mode")
        mode = keyText(field.value.text);
  if (devices == 1 && devicesAreGiven)
    return "on one device";
  return mode == "stand_alone" || mode == "data_parallel" || mode == "hybrid_parallel" ? "in " + mode + " mode" : "";
}

/// True if the number of devices has a part in it.
static bool namesDevices(const ast::Expr &expr) {
  return (expr.kind == ast::Expr::Kind::Word && expr.text == "devices") ||
         any_of(expr.items, [](const ast::Arg &item) { return namesDevices(item.value); });
}

bool Elaborator::defineConst(const ast::Const &item, Environment &env, bool isTopLevel) {
  if (env.constants.count(item.name)) {
    error(item.place) << (item.name == "devices" ? "'devices' is the number of devices and cannot be redefined"
                                                 : "const '" + item.name + "' is defined twice");
    return false;
  }
  if (!isTopLevel && !checkFunction(item.value)) {
    env.constants[item.name] = {};
    return false;
  }
  const ast::Expr *value = &item.value;
  std::optional<ast::Expr> defined;
  std::string definedText;
  for (const auto &[name, text] : options.defines) {
    if (!isTopLevel || name != item.name)
      continue;
    usedDefines.insert(name);
    auto parsed = parseExpression(text);
    if (auto *wrong = std::get_if<SyntaxError>(&parsed)) {
      bool saysText = wrong->message.find("'" + text + "'") != std::string::npos;
      InFlightDiagnostic diagnostic = emitError(FileLineColLoc::get(context, "-D " + name, 0, 0))
                                      << (saysText ? wrong->message : "cannot read '" + text + "': " + wrong->message);
      if (StringRef(wrong->message).starts_with("cannot read the number"))
        net::addHelp(diagnostic, "numbers are written in digits, without a unit");
      env.constants[item.name] = {};
      return false;
    }
    defined = std::move(std::get<ast::Expr>(parsed));
    definedText = evaluator.defined[name] = text;
    value = &*defined;
  }
  FailureOr<Attribute> result = defined ? evaluateDefine(item.name, *value, env) : evaluator.evaluate(*value, env);
  if (defined && succeeded(result) && !replaces(*result, definedText, item, env))
    result = failure();
  env.constants[item.name] = failed(result) ? Attribute() : *result;
  if (auto number = dyn_cast_or_null<IntegerAttr>(env.constants[item.name]);
      number && isTopLevel && options.onConst && number.getType().isInteger(64))
    options.onConst(item.name, number.getInt());
  return succeeded(result);
}

/// What goes wrong lies in the command line.
FailureOr<Attribute> Elaborator::evaluateDefine(const std::string &name, const ast::Expr &value, Environment &env) {
  std::vector<std::pair<std::string, std::vector<std::string>>> errors; // and their notes
  FailureOr<Attribute> result = failure();
  {
    ScopedDiagnosticHandler catches(context, [&](Diagnostic &diagnostic) {
      std::vector<std::string> &notes = errors.emplace_back(diagnostic.str(), std::vector<std::string>()).second;
      for (Diagnostic &note : diagnostic.getNotes())
        notes.push_back(note.str());
      return success();
    });
    result = evaluator.evaluate(value, env);
  }
  for (const auto &[text, notes] : errors) {
    InFlightDiagnostic diagnostic = emitError(FileLineColLoc::get(context, "-D " + name, 0, 0)) << text;
    for (const std::string &note : notes)
      diagnostic.attachNote() << note;
  }
  return result;
}

/// In a body a call is one of the functions; blocks have others.
bool Elaborator::checkFunction(const ast::Expr &value) {
  static const StringRef functions[] = {"dim", "rank", "sqrt", "fail"};
  if (value.kind != ast::Expr::Kind::Call || is_contained(functions, StringRef(value.text)))
    return true;
  InFlightDiagnostic diagnostic = error(value.place) << "unknown function '" << value.text << "'";
  net::addSuggestionOrList(diagnostic, value.text, ArrayRef(functions));
  return false;
}

/// Of a number that is written with a fraction or an exponent, such as 1e7.
static std::optional<int64_t> wholeValue(Attribute given) {
  auto number = dyn_cast<FloatAttr>(given);
  double value = number ? number.getValueAsDouble() : 0;
  if (!number || std::trunc(value) != value || std::abs(value) > 0x1p53)
    return std::nullopt;
  return static_cast<int64_t>(value);
}

/// A number of the file stays a number, so that a mistake is found where it is made. One with a fraction may take the place of a
/// whole one: it may be a learning rate; 1e7 is a mistake, as no whole number is written so.
bool Elaborator::replaces(Attribute given, const std::string &text, const ast::Const &item, Environment &env) {
  FailureOr<Attribute> written = failure();
  {
    ScopedDiagnosticHandler quiet(context, [](Diagnostic &) { return success(); });
    written = evaluator.evaluate(item.value, env);
  }
  if (failed(written) || !net::asNumber(*written))
    return true;
  std::optional<int64_t> inFull = isa<IntegerAttr>(*written) ? wholeValue(given) : std::nullopt;
  if (net::asNumber(given) && !inFull)
    return true;
  InFlightDiagnostic diagnostic = emitError(FileLineColLoc::get(context, "-D " + item.name, 0, 0))
                                  << "'" << (inFull ? text : net::valueText(given)) << "' is no " << (inFull ? "whole number" : "number");
  if (inFull)
    net::addHelp(diagnostic, "whole numbers are written in digits: -D " + item.name + "=" + std::to_string(*inFull));
  else
    net::addHelp(diagnostic, "write a number: -D " + item.name + "=" + net::valueText(*written));
  diagnostic.attachNote(evaluator.location(item.place)) << "the network has '" << item.name << "' = "
                                                        << net::valueText(*written);
  return false;
}

bool Elaborator::checkDefines() {
  bool sound = true;
  for (const auto &[name, text] : options.defines) {
    if (usedDefines.count(name))
      continue;
    InFlightDiagnostic diagnostic = emitError(FileLineColLoc::get(context, "-D " + name, 0, 0)) << "the network has no const '" << name << "'";
    std::vector<std::string> names = globals.constantNames();
    llvm::erase(names, "devices");
    if (name == "devices")
      net::addHelp(diagnostic, "pass --devices " + text);
    else if (names.empty())
      net::addHelp(diagnostic, "write const " + name + " = " + text + " into the network's file");
    else
      net::addSuggestionOrList(diagnostic, name, names);
    sound = false;
  }
  return sound;
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

bool Elaborator::import(const ast::Import &item) {
  FailureOr<std::string> path = evaluator.decode(item.path, globals, item.place.begin);
  if (failed(path))
    return false;
  unsigned importer = sources.FindBufferContainingLoc(item.place.begin);
  SmallString<128> name(sys::path::parent_path(sources.getMemoryBuffer(importer)->getBufferIdentifier()));
  if (sys::path::is_absolute(*path))
    name = *path;
  else
    sys::path::append(name, *path);
  sys::path::remove_dots(name, /*remove_dot_dot=*/true);
  std::string full = displayedPath(sources, name);
  if (SmallString<128> shared(options.layerLibrary); !shared.empty() && !sys::fs::exists(full)) {
    sys::path::append(shared, *path);
    if (sys::fs::exists(shared)) {
      full = shared.str().str();
      name = (libraryPrefix + *path).str();
    }
  }
  if (!importedPaths.insert(name.str().str()).second)
    return true; // imported before; a cycle ends here too
  bool missing = evaluator.namesMissing;
  evaluator.namesMissing = true; // until the file is read
  if (importedPaths.size() > maximumImports + 1) { // and the network's own
    InFlightDiagnostic diagnostic = error(item.place) << "more than " << maximumImports << " files are imported";
    net::addHelp(diagnostic, "put several of them into one file");
    return false;
  }
  if (path->empty()) {
    error(item.place) << "this import names no file";
    return false;
  }
  if (sys::fs::exists(full) && !sys::fs::is_regular_file(full)) { // a pipe would wait for ever, a device never end
    error(item.place) << "cannot import '" << *path << "': it is no file";
    return false;
  }
  auto buffer = MemoryBuffer::getFile(full, /*IsText=*/true);
  if (!buffer) {
    InFlightDiagnostic diagnostic = error(item.place) << "cannot read '" << full << "': " << buffer.getError().message();
    if (std::string near = nearest(*path, libraryFiles()); !near.empty())
      net::addHelp(diagnostic, "did you mean '" + near + "'?");
    else if (buffer.getError() == std::errc::no_such_file_or_directory && !sys::path::is_absolute(*path) && !options.layerLibrary.empty())
      net::addHelp(diagnostic, "it is neither there nor in the library, '" + options.layerLibrary + "'");
    return false;
  }
  StringRef text = (*buffer)->getBuffer();
  text.consume_front(byteOrderMark);
  auto named = MemoryBuffer::getMemBufferCopy(text, name);
  std::optional<Parsed> parsed = parseBuffer(sources.AddNewSourceBuffer(std::move(named), SMLoc()), context, sources);
  if (!parsed)
    return false;
  evaluator.namesMissing = missing || !parsed->hasAllItems;
  imported.push_back(std::make_unique<ast::File>(std::move(parsed->file)));
  return importItems(*imported.back()) && parsed->errors.empty();
}

/// Names of the files that can be imported from everywhere.
std::vector<std::string> Elaborator::libraryFiles() const {
  std::vector<std::string> names;
  std::error_code failed;
  for (sys::fs::directory_iterator file(options.layerLibrary, failed), end; !failed && file != end; file.increment(failed))
    names.push_back(sys::path::filename(file->path()).str());
  llvm::sort(names);
  return names;
}

/// The library file that defines a cell, or "".
std::string Elaborator::findInLibrary(StringRef cell) const {
  for (const std::string &name : libraryFiles()) {
    auto buffer = MemoryBuffer::getFile(options.layerLibrary + "/" + name, /*IsText=*/true);
    if (buffer && (*buffer)->getBuffer().contains(("\ncell " + cell + "(").str()))
      return name;
  }
  return "";
}

/// Only cells and constants of an imported file count.
bool Elaborator::importItems(const ast::File &file) {
  bool sound = true;
  for (const ast::Item &item : file.items) {
    if (const auto *other = std::get_if<ast::Import>(&item)) {
      sound &= import(*other);
    } else if (const auto *constant = std::get_if<ast::Const>(&item)) {
      sound &= defineConst(*constant, globals, /*isTopLevel=*/true);
    } else if (const auto *graph = std::get_if<ast::Graph>(&item)) {
      if (!graph->isNetwork || graph == networkItem)
        graphs.push_back(graph);
      if (graph->isNetwork)
        continue;
      auto [entry, added] = cells.try_emplace(graph->name, graph);
      if (!added) {
        InFlightDiagnostic diagnostic = error(graph->place) << "cell '" << graph->name << "' is defined twice";
        diagnostic.attachNote(evaluator.location(entry->second->place)) << "first defined here";
        sound = false;
      }
    }
  }
  return sound;
}

/// The number of devices nearest to `devices` for which the mesh, which may speak of it, has as many places; 0: none that is near.
int64_t Elaborator::devicesOf(const ast::Mesh &mesh) {
  constexpr int64_t farthest = 4096;
  ScopedDiagnosticHandler quiet(context, [](Diagnostic &) { return success(); });
  auto fits = [&](int64_t number) {
    Environment env;
    env.parent = &globals;
    env.constants["devices"] = builder.getI64IntegerAttr(number);
    std::optional<int64_t> product = 1;
    for (const ast::Arg &axis : mesh.axes) {
      FailureOr<int64_t> size = evaluator.evaluateInteger(axis.value, env, "an axis");
      if (failed(size) || *size < 1 || !(product = checkedMul(*product, *size)))
        return false;
    }
    return product == number;
  };
  for (int64_t away = 1; away <= farthest; ++away)
    for (int64_t number : {devices + away, devices - away})
      if (number > 0 && fits(number))
        return number;
  return 0;
}

/// `product`: places of the mesh for the devices that there are; 0: none.
void Elaborator::addDevicesHelp(InFlightDiagnostic &diagnostic, const ast::Mesh &mesh, int64_t product) {
  int64_t fitting = any_of(mesh.axes, [](const ast::Arg &axis) { return namesDevices(axis.value); }) ? devicesOf(mesh) : product;
  if (fitting == 0)
    net::addHelp(diagnostic, "no number of devices fits: the product of the axes has to be 'devices'");
  else if (options.devices || !devicesAreGiven)
    net::addHelp(diagnostic, "pass --devices " + std::to_string(fitting) + (devicesAreGiven ? "" : ": without it 'devices' is 1"));
  else
    net::addHelp(diagnostic, "write device_num: " + std::to_string(fitting));
}

bool Elaborator::addMesh(const ast::Mesh &mesh, StringRef whyAside) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> sizes;
  int64_t product = 1;
  std::string text;
  for (const ast::Arg &axis : mesh.axes) {
    if (llvm::is_contained(names, Attribute(builder.getStringAttr(axis.key)))) {
      error(axis.keyPlace) << "axis '" << axis.key << "' is given twice";
      return false;
    }
    if (axis.key.empty()) {
      error(axis.value.place) << "an axis of a mesh needs a name, such as 'data: 2'";
      return false;
    }
    if (axis.key == "auto" || axis.key == "None") {
      InFlightDiagnostic diagnostic = error(axis.keyPlace) << "an axis cannot be called '" << axis.key << "': in a sharding this word "
                                                           << (axis.key == "auto" ? "leaves a dimension open" : "leaves a dimension whole");
      net::addHelp(diagnostic, "give it another name, such as 'data'");
      return false;
    }
    if (const ast::Place *first = shardings.findAxis(axis.key)) {
      InFlightDiagnostic diagnostic = error(axis.keyPlace) << "axis '" << axis.key << "' is an axis of another mesh already";
      diagnostic.attachNote(evaluator.location(*first)) << "it is given here";
      return false;
    }
    constexpr StringLiteral sizesOfAxes = "sizes of axes are at least 1, and multiply to the number of devices";
    FailureOr<int64_t> size = evaluator.evaluateInteger(axis.value, globals, "the size of axis '" + axis.key + "'");
    if (failed(size))
      return false;
    std::optional<int64_t> next = checkedMul(product, *size);
    bool mayBeZero = *size == 0 && !whyAside.empty() && namesDevices(axis.value);
    if (*size < 1 && !mayBeZero) {
      InFlightDiagnostic diagnostic = error(axis.value.place)
                                      << "axis '" << axis.key << "' cannot have size " << *size;
      if (namesDevices(axis.value))
        addDevicesHelp(diagnostic, mesh, 0);
      else
        net::addHelp(diagnostic, sizesOfAxes);
      return false;
    }
    if (!next) {
      InFlightDiagnostic diagnostic = error(mesh.place) << "the sizes of the axes multiply to more than fits into 64 bits";
      net::addHelp(diagnostic, sizesOfAxes);
      return false;
    }
    product = *next;
    names.push_back(builder.getStringAttr(axis.key));
    sizes.push_back(*size);
    text += (text.empty() ? "" : ", ") + axis.key + ": " + std::to_string(*size);
  }
  if (product > net::mostDevices) {
    error(mesh.place) << "mesh (" << text << ") needs " << product << " devices, but there are at most " << net::mostDevices;
    return false;
  }
  if (product != devices && !whyAside.empty()) {
    if (!shardings.areAside())
      emitRemark(evaluator.location(mesh.place)) << "the mesh is ignored " << whyAside;
    shardings.setAside();
    for (auto [axis, size] : zip(mesh.axes, sizes))
      shardings.addAxis(axis.key, std::max<int64_t>(size, 1), mesh.name, axis.keyPlace);
    return true;
  }
  if (product != devices) {
    InFlightDiagnostic diagnostic = error(mesh.place)
                                    << "mesh (" << text << ") needs " << product << " devices, but "
                                    << (options.devices ? "--devices" : "'device_num'") << " is " << devices;
    addDevicesHelp(diagnostic, mesh, product);
    return false;
  }
  for (auto [axis, size] : zip(mesh.axes, sizes))
    shardings.addAxis(axis.key, size, mesh.name, axis.keyPlace);
  builder.setInsertionPointToEnd(module->getBody());
  builder.create<net::ConfigOp>(locationOf(mesh.place, mesh.origin), "mesh", mesh.name,
                                builder.getDictionaryAttr({builder.getNamedAttr("axes", builder.getArrayAttr(names)),
                                                           builder.getNamedAttr("sizes", builder.getDenseI64ArrayAttr(sizes))}),
                                builder.getDictionaryAttr({}));
  return true;
}

/// Places of keys and values, nested ones by path: "optimizer.learning_rate", "optimizer.learning_rate#value".
void Elaborator::addLocations(const ast::Arg &field, const std::string &path, NamedAttrList &locations) {
  std::string key = path + keyText(field.key);
  locations.set(key, LocationAttr(evaluator.location(field.keyPlace)));
  locations.set(key + "#value", LocationAttr(evaluator.location(field.value.place)));
  if (field.value.kind != ast::Expr::Kind::Map && field.value.kind != ast::Expr::Kind::Call)
    return;
  for (const ast::Arg &inner : field.value.items)
    if (!inner.key.empty())
      addLocations(inner, key + ".", locations);
}

/// `device_num` has to be the number of devices; the module holds that in `net.devices`.
bool Elaborator::takeDeviceNum(const ast::Block &block, NamedAttrList &fields) {
  Attribute value = fields.erase("device_num");
  if (!value)
    return true;
  const ast::Arg &field = *find_if(block.fields, [](const ast::Arg &arg) { return keyText(arg.key) == "device_num"; });
  std::optional<int64_t> number = net::asInteger(value);
  if (number == devices || (number && options.devices && options.overridesDeviceNum))
    return true;
  InFlightDiagnostic diagnostic = error(field.value.place);
  if (!number || *number < 1 || *number > net::mostDevices) {
    diagnostic << "'device_num' expects a whole number from 1 to " << net::mostDevices << ", found '" << net::valueText(value)
               << "'";
    return false;
  }
  diagnostic << "'device_num' is " << *number << ", but --devices is " << devices;
  net::addHelp(diagnostic, "pass --devices " + std::to_string(*number) + ", or write device_num: " + std::to_string(devices));
  return false;
}

bool Elaborator::addBlock(const ast::Block &block) {
  FailureOr<DictionaryAttr> evaluated = evaluator.evaluateFields(block.fields, globals);
  if (failed(evaluated))
    return false;
  NamedAttrList fields(*evaluated);
  if (block.kind == "context" && !takeDeviceNum(block, fields))
    return false;
  if (fields.empty() && !block.fields.empty())
    return true; // nothing but the number of devices
  NamedAttrList locations;
  for (const ast::Arg &field : block.fields)
    addLocations(field, "", locations);
  builder.setInsertionPointToEnd(module->getBody());
  builder.create<net::ConfigOp>(locationOf(block.place, block.origin), block.kind, block.name,
                                fields.getDictionary(context), locations.getDictionary(context));
  return true;
}

bool Elaborator::elaborateItems(const ast::File &file) {
  bool sound = true;
  llvm::StringMap<const ast::Mesh *> meshes;
  for (const ast::Item &item : file.items) {
    if (const auto *graph = std::get_if<ast::Graph>(&item); graph && graph->isNetwork) {
      if (networkItem) {
        InFlightDiagnostic diagnostic = error(graph->place) << "a file holds one network, found a second one, '"
                                                            << graph->name << "'";
        diagnostic.attachNote(evaluator.location(networkItem->place)) << "the first one is '" << networkItem->name << "'";
        return false;
      }
      networkItem = graph;
    } else if (const auto *next = std::get_if<ast::Mesh>(&item)) {
      auto [entry, added] = meshes.try_emplace(next->name, next);
      if (!added) {
        InFlightDiagnostic diagnostic = error(next->place);
        if (next->name.empty())
          diagnostic << "a second mesh needs a name, such as 'mesh inner (x: 2)'";
        else
          diagnostic << "mesh '" << next->name << "' is defined twice";
        diagnostic.attachNote(evaluator.location(entry->second->place)) << "the first one is here";
        return false;
      }
    }
  }
  sound &= importItems(file);
  std::string whyAside = whyMeshesAreAside(file);
  for (const ast::Mesh *mesh : itemsOf<ast::Mesh>(file))
    if (!addMesh(*mesh, whyAside)) {
      shardings.giveUp();
      sound = false;
    }
  for (const ast::Block *block : itemsOf<ast::Block>(file))
    if (!isDump || block->kind != "parameters")
      sound &= addBlock(*block);
  return sound;
}

/// `train {minimize: loss}` has to name a result of the network.
bool Elaborator::checkMinimizedName(ArrayRef<std::string> results) {
  for (net::ConfigOp config : module->getOps<net::ConfigOp>()) {
    auto minimize = config.getFields().getAs<StringAttr>("minimize");
    if (config.getKind() != "train" || !minimize || is_contained(results, minimize.getValue()))
      continue;
    auto place = config.getLocations().getAs<LocationAttr>("minimize#value");
    InFlightDiagnostic diagnostic = emitError(Location(place))
                                    << "'" << minimize.getValue() << "' is no result of the network";
    net::addSuggestionOrList(diagnostic, minimize.getValue(), results);
    return false;
  }
  return true;
}

/// Another result that is a number, else how to make one.
static std::string helpForLoss(net::ReturnOp results) {
  for (auto [name, value] : llvm::zip(results.getNames().getAsValueRange<StringAttr>(), results.getValues()))
    if (auto type = cast<RankedTensorType>(value.getType()); type.getRank() == 0 && isa<FloatType>(type.getElementType()))
      return "write minimize: " + name.str();
  return "return a number as well, such as %loss = ReduceMean(%out)";
}

/// The result that is minimized has to be a scalar; its operator is the loss in scopes.
bool Elaborator::checkMinimize() {
  std::vector<std::string> names;
  for (StringRef name : net::getReturn(network).getNames().getAsValueRange<StringAttr>())
    names.push_back(name.str());
  if (isDump && !checkMinimizedName(names))
    return false;
  for (net::ConfigOp config : module->getOps<net::ConfigOp>()) {
    auto minimize = config.getFields().getAs<StringAttr>("minimize");
    if (config.getKind() != "train" || !minimize)
      continue;
    auto place = config.getLocations().getAs<LocationAttr>("minimize#value");
    net::ReturnOp results = net::getReturn(network);
    for (auto [index, name] : enumerate(results.getNames().getAsValueRange<StringAttr>())) {
      Value value = results.getValues()[index];
      if (name != minimize.getValue())
        continue;
      while (auto repeat = value.getDefiningOp<net::RepeatOp>()) { // the operator of its last round is the loss
        IRMapping mapping;
        if (repeat.rounds() > 1)
          net::peelLast(repeat, mapping);
        else
          net::unroll(repeat);
        value = results.getValues()[index];
      }
      auto type = cast<RankedTensorType>(value.getType());
      if (type.getRank() != 0 || !isa<FloatType>(type.getElementType())) {
        InFlightDiagnostic diagnostic = emitError(Location(place))
                                        << "cannot minimize '" << name << "': expected a single number, found " << type;
        net::addHelp(diagnostic, helpForLoss(results));
        return false;
      }
      Operation *loss = value.getDefiningOp();
      if (loss && isa<net::Operator>(loss) && net::getScope(loss).contains("/_backbone-"))
        net::setScope(loss, ("Default/network-WithLossCell/_loss_fn-" + loss->getName().stripDialect()).str());
      return true;
    }
  }
  return true;
}

Location Elaborator::locationOf(const ast::Place &place, const ast::Origin &origin) {
  if (!origin.file.empty()) // of many nodes; messages show the one
    return FusedLoc::get(context, {FileLineColLoc::get(context, origin.file, static_cast<unsigned>(origin.line), 0), evaluator.location(place)});
  return evaluator.location(place);
}

OwningOpRef<ModuleOp> Elaborator::run(const Parsed &parsed, StringRef name) {
  const ast::File &file = parsed.file;
  evaluator.namesMissing = !parsed.hasAllItems;
  importedPaths.insert(name.str()); // a file that it imports may import it
  context->getOrLoadDialect<net::NetDialect>();
  isDump = evaluator.readsTypedNumbers = file.isDump;
  Location top = FileLineColLoc::get(context, name, 0, 0);
  module = ModuleOp::create(top);
  devices = decideDevices(file);
  globals.constants["devices"] = builder.getI64IntegerAttr(devices);
  (*module)->setAttr(net::devicesAttributeName, builder.getI64IntegerAttr(devices));
  if (devices == 1 && !devicesAreGiven)
    (*module)->setAttr(impliedDevicesName, builder.getUnitAttr());
  if (!parsed.errors.empty())
    (*module)->setAttr(net::incompleteName, builder.getUnitAttr());
  bool sound = elaborateItems(file) && parsed.errors.empty();
  if (!isDump && !networkItem && sound && !options.mayLackNetwork) {
    emitError(top) << "the file holds no network";
    return nullptr;
  }
  sound = (isDump || checkNames()) && sound;
  ScopedDiagnosticHandler known(context, [&](Diagnostic &diagnostic) { // what the check of names said is not repeated
    return success(reported.count({diagnostic.getLocation().getAsOpaquePointer(), diagnostic.str()}) > 0);
  });
  if (isDump)
    sound = parsed.hasAllItems && elaborateDump(file) && sound;
  else if (networkItem)
    sound = elaborateNetwork(*networkItem) && sound;
  sound = (evaluator.namesMissing || checkDefines()) && sound && (!network || checkMinimize());
  if (!sound && !options.keepBroken)
    return nullptr;
  if (network && isDump)
    net::clearBrokenRounds(network);
  if (sound && network && !options.keepRepeats)
    net::unrollAll(network);
  if (!sound)
    (*module)->setAttr(brokenAttributeName, builder.getUnitAttr());
  return std::move(module);
}

} // namespace msc::frontend
