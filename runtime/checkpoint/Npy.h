// NumPy's .npy files: one dense array each. f16, f32, f64, i32, i64 and bool; little-endian, row-major, versions 1 to 3.
#pragma once

#include "runtime/checkpoint/File.h"
#include "runtime/comm/Communicator.h"

#include <cstddef>
#include <vector>

namespace msc {

/// What the header of a file says.
struct NpyHeader {
  comm::ElementType type = comm::ElementType::F32;
  std::vector<int64_t> shape;
  uint64_t dataOffset = 0;
  int64_t count() const { return elementCount(shape); }
};

/// An array in memory.
struct NpyArray {
  comm::ElementType type = comm::ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

/// Reads and checks the header; the file must have exactly the bytes that it announces. Elements are at
/// `dataOffset + index * elementSize(type)`.
Result<NpyHeader> readNpyHeader(const InputFile &file);

/// The whole array. Bools other than 0 and 1 are an error.
Result<NpyArray> readNpy(const std::string &path);

/// Writes an array as numpy.save does (version 1), byte for byte. NumPy has no bf16: such values are written as f32.
Status writeNpy(const std::string &path, comm::ElementType type, const std::vector<int64_t> &shape, const void *data);

} // namespace msc
