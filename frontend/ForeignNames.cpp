#include "frontend/ForeignNames.h"

#include "dialects/net/Optimizers.h"
#include "runtime/Nearest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace msc::frontend {

static std::string equivalentOf(const ForeignName &foreign) {
  std::string layer = foreign.layer.empty() ? "" : ("cell " + foreign.layer + " of import \"nn.mir\"").str();
  if (foreign.ours.empty() && layer.empty())
    return "this version has no equivalent; 'msc ops' lists operators and layers";
  StringRef described = foreign.layer.empty() ? foreign.ours.split(' ').first : foreign.layer;
  if (foreign.ours.empty())
    return ("here it is " + layer + "; see 'msc ops " + described + "'").str();
  return ("here it is " + foreign.ours + (layer.empty() ? "" : ", or " + layer) + "; see 'msc ops " + described + "'").str();
}

/// Operators of communication, as MindSpore calls them.
static bool communicates(StringRef name) {
  static const StringRef names[] = {"AllReduce",      "AllGather", "ReduceScatter",    "AlltoAll",           "AllSwap", "Send",
                                    "Receive",        "Barrier",   "NeighborExchange", "NeighborExchangeV2", "Reduce",  "CollectiveGather",
                                    "CollectiveScatter"};
  return is_contained(names, name);
}

/// What the train block does that others have operators for; empty: nothing of that name.
static std::string trainBlockDoes(StringRef name) {
  const StringRef key = StringSwitch<StringRef>(name.lower())
                            .Cases("clipbyglobalnorm", "clip_by_global_norm", "clip_grad_norm", "clip_grad_norm_", "clip_global_norm: 1.0")
                            .Cases("clipbyvalue", "clip_by_value", "clip_grad_value_", "clip_value: 1.0")
                            .Default("");
  if (!key.empty())
    return ("gradients are clipped by '" + key + "' in the train block" + (key.starts_with("clip_value") ? "; tensors by Minimum and Maximum" : "")).str();
  const auto forms = net::optimizerForms();
  const auto *form = find_if(forms, [&](const net::OptimizerForm &known) { return known.name.equals_insensitive(name); });
  if (form == forms.end())
    return "";
  return ("it is an optimizer: write 'optimizer: " + form->name + "(learning_rate: 0.001)' in the train block; see 'msc ops " + form->name + "'").str();
}

/// The shortest name of which `name` is a beginning that says something; empty if there is none.
static std::string firstBeginningWith(StringRef name, const std::vector<std::string> &known) {
  constexpr size_t fewest = 4;
  std::string shortest;
  for (const std::string &other : known)
    if (name.size() >= fewest && StringRef(other).starts_with_insensitive(name) && (shortest.empty() || other.size() < shortest.size()))
      shortest = other;
  return shortest;
}

std::string helpForOperator(StringRef name, const std::vector<std::string> &known) {
  bool isKnown = any_of(known, [&](StringRef other) { return other.equals_insensitive(name); });
  const auto *foreign = find_if(foreignNames(), [&](const ForeignName &f) { return f.name.equals_insensitive(name); });
  if (!isKnown && foreign != foreignNames().end())
    return equivalentOf(*foreign);
  if (std::string instead = trainBlockDoes(name); !isKnown && !instead.empty())
    return instead;
  if (!isKnown && communicates(name))
    return "leave it out: msc inserts communication where shardings differ, and 'msc explain' shows it";
  if (std::string near = nearest(std::string_view(name), known); !near.empty())
    return "did you mean '" + near + "'?";
  if (std::string longer = firstBeginningWith(name, known); !longer.empty())
    return "did you mean '" + longer + "'?";
  return "'msc ops' lists operators and layers";
}

} // namespace msc::frontend
