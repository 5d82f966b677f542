#include "passes/codegen/KernelKey.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace msc::codegen {

namespace {

class KeyWriter {
public:
  explicit KeyWriter(std::string &text) : stream(text) {}

  void write(const Cluster &cluster, const Schedule &schedule) {
    stream << "form " << int(schedule.form) << " v" << schedule.vectorDim << " t" << schedule.tileDim
           << (schedule.streams ? " streams" : "");
    if (schedule.isCut())
      stream << " pieces " << schedule.pieces;
    list("range", schedule.rangeDims);
    // The size of the first range dimension is only counted.
    for (unsigned dim = 0; dim < cluster.rank(); ++dim) {
      bool counted = !schedule.rangeDims.empty() && schedule.rangeDims[0] == dim;
      stream << " " << (counted ? int64_t(-1) : cluster.sizes[dim]);
    }
    for (const Pointer &pointer : cluster.pointers)
      stream << " " << pointer.element << (pointer.written ? "w" : "") << (pointer.read ? "r" : "");
    for (const Node &node : cluster.nodes)
      write(node);
    for (const Store &store : cluster.stores) {
      stream << "\nstore " << store.node << "." << store.result << " to " << store.pointer;
      list("at", store.access.strides);
    }
  }

private:
  template <typename T> void list(llvm::StringRef name, const T &values) {
    stream << " " << name << "(";
    llvm::interleaveComma(values, stream);
    stream << ")";
  }

  void write(const Node &node) {
    stream << "\nnode";
    list("dims", node.dims.set_bits());
    if (node.usesIndex)
      list("loops", node.loopDims);
    list("reduced", node.reduced.set_bits());
    for (const Operand &operand : node.operands) {
      if (operand.kind == Operand::Constant) {
        stream << " " << operand.constant;
        continue;
      }
      stream << (operand.kind == Operand::Pointer ? " p" : " n") << operand.index << "." << operand.result;
      if (operand.kind == Operand::Pointer)
        list("at", operand.access.strides);
    }
    write(*node.op.getBody());
  }

  void write(mlir::Block &body) {
    llvm::DenseMap<mlir::Value, unsigned> numbers;
    for (mlir::BlockArgument argument : body.getArguments())
      numbers[argument] = numbers.size();
    for (mlir::Operation &op : body) {
      stream << "\n " << op.getName().getStringRef();
      for (mlir::Value operand : op.getOperands()) {
        auto known = numbers.find(operand);
        if (known != numbers.end())
          stream << " %" << known->second;
        else // a constant from outside of the body
          stream << " " << operand.getDefiningOp()->getAttrDictionary();
      }
      stream << " " << op.getAttrDictionary();
      for (mlir::Value result : op.getResults()) {
        stream << " " << result.getType();
        numbers[result] = numbers.size();
      }
    }
  }

  llvm::raw_string_ostream stream;
};

} // namespace

std::string kernelKey(const Cluster &cluster, const Schedule &schedule) {
  std::string text;
  KeyWriter(text).write(cluster, schedule);
  return text;
}

std::string matMulKey(const MatMulShape &shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // The number of rows matters only where it decides a stride or the row of a batch.
  bool rowsMatter = shape.transposeLeft || !shape.batch.empty();
  stream << "matmul " << shape.element << " " << (rowsMatter ? shape.m : -1) << " " << shape.n << " " << shape.k << " "
         << shape.transposeLeft << shape.transposeRight;
  // The size of the outermost batch dimension is only counted.
  for (const BatchDim &dim : shape.batch)
    stream << " " << (&dim == shape.batch.begin() ? -1 : dim.size) << (dim.inLeft ? "l" : "") << (dim.inRight ? "r" : "");
  return text;
}

} // namespace msc::codegen
