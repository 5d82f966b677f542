// Every option of MindSpore's contexts, and what this compiler does with it; private to Config.cpp.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace msc::net {

struct ContextOption {
  enum class Effect {
    Works,       ///< handed on in ContextConfig; `value` is the default, `reason` says what it does
    OnlyDefault, ///< `value` says what happens anyway; anything else is an error with `reason`
    NoEffect,    ///< nothing to do: warns with `reason` unless the value is `value`
    Unsupported, ///< known to MindSpore, not supported here: error with `reason`
  };
  llvm::StringRef name;
  Effect effect = Effect::Works;
  llvm::StringRef value = "";
  llvm::StringRef reason = "";
};

llvm::ArrayRef<ContextOption> contextOptions();

} // namespace msc::net
