// Reads the fields of one block, call or map with checks; private to Config.cpp and its neighbours.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace msc::net {

/// The parts of a call such as `Momentum(learning_rate: 0.2)`, which configs hold as a dictionary.
struct CallValue {
  llvm::StringRef callee;
  mlir::ArrayAttr args;
  mlir::DictionaryAttr named;
};
/// Nothing if the attribute is no call.
std::optional<CallValue> asCall(mlir::Attribute attribute);
/// An integer or a float; a tuple of one element counts as its element.
std::optional<double> asNumber(mlir::Attribute attribute);
std::optional<int64_t> asInteger(mlir::Attribute attribute);
/// The shortest text that reads back as the same double; always looks like a float ("2.0").
std::string numberText(double number);
/// A value as the user would write it, for messages.
std::string valueText(mlir::Attribute attribute);

/// The fields of one thing. Every accessor makes its key known; `finish` reports the keys that stayed unknown.
/// Mistakes are reported where they stand and remembered in `ok()`.
class Fields {
public:
  /// `path` is the key prefix in `locations` ("" or "optimizer."), `what` names the thing in messages ("train block").
  Fields(mlir::DictionaryAttr fields, mlir::DictionaryAttr locations, std::string path, std::string what,
         mlir::Location whole)
      : fields(fields), locations(locations), path(std::move(path)), what(std::move(what)), whole(whole) {}

  /// The raw value, or null.
  mlir::Attribute get(llvm::StringRef key);
  void integer(llvm::StringRef key, uint64_t &value, int64_t minimum = 0, int64_t maximum = INT64_MAX);
  void integer(llvm::StringRef key, int64_t &value, int64_t minimum, int64_t maximum);
  void number(llvm::StringRef key, double &value, double minimum);
  void boolean(llvm::StringRef key, bool &value);
  /// A string or word. `words`: the legal ones; empty: any. `refused`: words that are known too, of which the caller says
  /// why they cannot be had; messages do not offer them.
  void word(llvm::StringRef key, std::string &value, llvm::ArrayRef<llvm::StringRef> words = {},
            llvm::ArrayRef<llvm::StringRef> refused = {});
  /// A path: text in quotes or env("NAME"), which is written as ${NAME}: msrun puts in what NAME says when it runs.
  void filePath(llvm::StringRef key, std::string &value);
  /// Keys that are understood but cannot be honoured: an error with the reason. Messages do not offer them.
  void unsupported(llvm::StringRef key, llvm::StringRef reason);
  void finish();
  /// Reports that the value of `key` is not what it takes, such as "a number from 0 up".
  void wrongKind(llvm::StringRef key, mlir::Attribute found, llvm::StringRef expected);
  /// Remembers a field that a flag over another one sets aside; it is not part of what counts.
  void setAside(llvm::StringRef key) { aside.push_back(key.str()); }
  llvm::ArrayRef<std::string> setAsides() const { return aside; }

  /// Has the thing an unknown key that looks like this one? `finish` reports it.
  bool hasMisspelt(llvm::StringRef key) const;

  bool ok() const { return sound; }
  /// Remembers a mistake that the caller reported.
  void markWrong() { sound = false; }
  mlir::Location keyLocation(llvm::StringRef key) const;
  mlir::Location valueLocation(llvm::StringRef key) const;
  /// The fields of the named arguments of a call that is the value of `key`.
  Fields arguments(llvm::StringRef key, const CallValue &call) const;
  Fields inside(llvm::StringRef key, mlir::DictionaryAttr map) const;
  llvm::ArrayRef<mlir::NamedAttribute> all() const { return fields.getValue(); }

private:
  mlir::Location locationOf(const std::string &key) const;

  mlir::DictionaryAttr fields;
  mlir::DictionaryAttr locations;
  std::string path;
  std::string what;
  mlir::Location whole;
  llvm::SmallVector<std::string> known;
  llvm::SmallVector<std::string> aside;
  bool sound = true;
};

} // namespace msc::net
