#include "runtime/plan/calls/Call.h"

#include <algorithm>

namespace msc {

CallAttributes::CallAttributes(const plan::Call &call) {
  for (const plan::Call::Attribute &attribute : call.attributes())
    values[attribute.name()] = attribute;
}

std::vector<int64_t> CallAttributes::ints(const std::string &name) const {
  auto at = values.find(name);
  return at == values.end() ? std::vector<int64_t>()
                            : std::vector<int64_t>(at->second.ints().begin(), at->second.ints().end());
}

int64_t CallAttributes::integer(const std::string &name, int64_t otherwise) const {
  auto at = values.find(name);
  return at == values.end() || at->second.ints().empty() ? otherwise : at->second.ints(0);
}

double CallAttributes::number(const std::string &name, double otherwise) const {
  auto at = values.find(name);
  return at == values.end() || at->second.floats().empty() ? otherwise : at->second.floats(0);
}

std::string CallAttributes::text(const std::string &name, const std::string &otherwise) const {
  auto at = values.find(name);
  return at == values.end() || at->second.text().empty() ? otherwise : at->second.text();
}

void CallAttributes::set(const std::string &name, std::vector<int64_t> ints) {
  values[name].mutable_ints()->Assign(ints.begin(), ints.end());
}

void CallAttributes::setText(const std::string &name, const std::string &text) { values[name].set_text(text); }

CallSpec callOn(const PlanIndex &index, const plan::Call &call, int64_t rank) {
  CallSpec spec;
  spec.kernel = call.kernel();
  auto bind = [&](const auto &buffers, std::vector<CallTensor> &tensors) {
    for (uint32_t buffer : buffers)
      tensors.push_back({index.buffer(buffer).dtype(), index.shape(buffer), index.localBox(buffer, rank)});
  };
  bind(call.operands(), spec.operands);
  bind(call.results(), spec.results);
  spec.attributes = CallAttributes(call);
  spec.tasks = call.tasks();
  return spec;
}

namespace calls {

bool sameCut(const CallTensor &a, size_t dimA, const CallTensor &b, size_t dimB) {
  return a.shape[dimA] == b.shape[dimB] && a.box[dimA] == b.box[dimB];
}

bool allFloats(const CallSpec &spec) {
  plan::DataType type = spec.results.front().type;
  auto same = [&](const CallTensor &tensor) { return tensor.type == type; };
  return (type == plan::F16 || type == plan::BF16 || type == plan::F32 || type == plan::F64) &&
         std::all_of(spec.operands.begin(), spec.operands.end(), same) &&
         std::all_of(spec.results.begin(), spec.results.end(), same);
}

static const Table &table() {
  static const Table all = [] {
    Table table;
    addAttention(table);
    addConvolution(table);
    addLookup(table);
    addPooling(table);
    addScan(table);
    return table;
  }();
  return all;
}

} // namespace calls

std::vector<std::string> kernelNames() {
  std::vector<std::string> names;
  for (const auto &[name, kernel] : calls::table())
    names.push_back(name);
  return names;
}

Status checkCall(const CallSpec &spec) {
  auto kernel = calls::table().find(spec.kernel);
  if (kernel == calls::table().end())
    return calls::refuse("there is no kernel '{}'", spec.kernel);
  size_t least = kernel->second.operands, found = spec.operands.size();
  if (found < least || found > least + kernel->second.optional || spec.results.size() != kernel->second.results)
    return calls::refuse("kernel '{}' takes {} operands and gives {} results, found {} and {}", spec.kernel,
                         least, kernel->second.results, found, spec.results.size());
  return kernel->second.check(spec);
}

} // namespace msc
