// Inputs from .npy files, read sample by sample where they lie in the file.
#include "runtime/checkpoint/Npy.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/Philox.h"
#include "runtime/plan/Bfloat16.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <numeric>

namespace msc {
namespace {

const char *typeName(comm::ElementType type) { return dataTypeName(static_cast<plan::DataType>(type)); }

/// The name of a type that .npy files hold, in NumPy.
const char *numpyName(plan::DataType type) {
  switch (type) {
  case plan::F64: return "float64";
  case plan::I32: return "int32";
  case plan::I64: return "int64";
  case plan::BOOL: return "bool";
  case plan::F16: return "float16";
  default: return "float32";
  }
}

/// A file whose elements have the type that an input wants; a bf16 input is rounded from a file of f32, as NumPy has no bf16.
struct OpenArray {
  InputFile file;
  NpyHeader header;
  bool rounds = false; ///< f32 in the file, bf16 in the input
  int64_t classes = 0; ///< it holds labels below that; 0: it does not
};

Result<OpenArray> openArray(const std::string &path, plan::DataType type) {
  Result<InputFile> file = InputFile::open(path);
  if (!file)
    return file.error();
  Result<NpyHeader> header = readNpyHeader(*file);
  if (!header) {
    Error error = header.error();
    if (error.help.starts_with("convert it")) // to what the input takes
      error.help = fmt::format("convert it in Python with array.astype('{}')", numpyName(type));
    return error;
  }
  bool rounds = type == plan::BF16 && header->type == comm::ElementType::F32;
  if (!rounds && static_cast<int>(header->type) != static_cast<int>(type)) {
    std::string help = fmt::format("save array.astype('{}') instead", numpyName(type));
    if (type == plan::I32 && header->type == comm::ElementType::I64) // NumPy's and PyTorch's own
      help += ", or declare the input as i64";
    return Error{ExitCode::BadFile, fmt::format("'{}' holds {}, the network takes {}", path, typeName(header->type), dataTypeName(type)), help};
  }
  return OpenArray{std::move(*file), std::move(*header), rounds};
}

/// "N" and the shape of a sample.
std::vector<std::string> samplesOf(const std::vector<int64_t> &batch) {
  std::vector<std::string> sizes{"N"};
  for (size_t i = 1; i < batch.size(); ++i)
    sizes.push_back(std::to_string(batch[i]));
  return sizes;
}

std::string text(const std::vector<int64_t> &shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

/// Reads the elements of `box` (dimensions 1.. of it) of one sample that starts at element `sample`. Runs that are
/// contiguous in the file are read at once.
class SampleReader {
public:
  SampleReader(const OpenArray &array, const std::vector<int64_t> &shape) : array(array), shape(shape) {
    bytes = elementBytes(static_cast<plan::DataType>(array.header.type));
  }

  /// `dims` are the ranges of all dimensions that `shape` has; `base` is the file's element where the array starts.
  Status read(std::byte *&target, const Range *ranges, int64_t base) const { return readFrom(target, ranges, base, 0); }

private:
  Status readFrom(std::byte *&target, const Range *ranges, int64_t element, size_t dim) const {
    int64_t inner = 1;
    bool whole = true;
    for (size_t i = dim + 1; i < shape.size(); ++i) {
      inner *= shape[i];
      whole &= ranges[i].size() == shape[i];
    }
    if (dim >= shape.size())
      return fetch(target, element, 1);
    if (whole)
      return fetch(target, element + ranges[dim].begin * inner, ranges[dim].size() * inner);
    for (int64_t i = ranges[dim].begin; i < ranges[dim].end; ++i)
      if (Status status = readFrom(target, ranges, element + i * inner, dim + 1); !status)
        return status;
    return {};
  }
  Status fetch(std::byte *&target, int64_t element, int64_t count) const {
    auto length = static_cast<uint64_t>(count) * bytes;
    uint64_t offset = array.header.dataOffset + static_cast<uint64_t>(element) * bytes;
    if (array.rounds)
      return fetchRounded(target, offset, count);
    std::byte *begin = target;
    target += length;
    Status read = array.file.read(offset, begin, length);
    if (read && array.header.type == comm::ElementType::Bool)
      return checkBools(begin, element, count);
    if (read && array.classes != 0)
      return array.header.type == comm::ElementType::I32 ? checkLabels<int32_t>(begin, element, count)
             : array.header.type == comm::ElementType::I64 ? checkLabels<int64_t>(begin, element, count) : read;
    return read;
  }
  Status fetchRounded(std::byte *&target, uint64_t offset, int64_t count) const {
    std::vector<float> wide(static_cast<size_t>(count));
    if (Status read = array.file.read(offset, wide.data(), wide.size() * sizeof(float)); !read)
      return read;
    for (float value : wide) {
      Bfloat16 rounded(value);
      std::memcpy(target, &rounded, sizeof(rounded));
      target += sizeof(rounded);
    }
    return {};
  }
  Status checkBools(const std::byte *values, int64_t element, int64_t count) const {
    const std::byte *wrong = std::find_if(values, values + count, [](std::byte value) { return value > std::byte{1}; });
    if (wrong == values + count)
      return {};
    return Error{ExitCode::BadFile, fmt::format("'{}': bool {} is {}, neither 0 nor 1", array.file.path(),
                                                element + (wrong - values), static_cast<int>(*wrong)), ""};
  }

  /// Negative labels are of no class on purpose, as a rule -100; those behind the classes by mistake.
  template <typename Label> Status checkLabels(const std::byte *values, int64_t element, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      Label label = 0;
      std::memcpy(&label, values + static_cast<size_t>(i) * sizeof(Label), sizeof(Label));
      if (label < array.classes)
        continue;
      const std::vector<int64_t> &whole = array.header.shape;
      const int64_t ofSample = whole.empty() || whole[0] == 0 ? 1 : std::max<int64_t>(elementCount(whole) / whole[0], 1);
      return Error{ExitCode::BadFile, fmt::format("'{}': sample {} has label {}, but classes are 0 to {}", array.file.path(), (element + i) / ofSample,
                                                  label, array.classes - 1),
                   "count classes from 0, and write -100 where a sample is of none"};
    }
    return {};
  }

  const OpenArray &array;
  const std::vector<int64_t> &shape;
  uint64_t bytes = 0;
};

class NpyColumn final : public InputColumn {
public:
  NpyColumn(OpenArray array, std::vector<int64_t> shape, const plan::Dataset &dataset)
      : array(std::move(array)), batch(shape[0]), sample(shape.begin() + 1, shape.end()), shuffle(dataset.shuffle()),
        seed(dataset.seed()) {}

  int64_t samples() const override { return array.header.shape[0]; }

  Status fill(std::byte *target, const Box &box, uint64_t epoch, uint64_t number) override {
    if (shuffle && (order.empty() || epoch != orderedFor)) {
      order = permutation(samples(), seed, epoch);
      orderedFor = epoch;
    }
    SampleReader reader(array, sample);
    for (int64_t i = box[0].begin; i < box[0].end; ++i) {
      int64_t position = static_cast<int64_t>(number) * batch + i;
      int64_t which = shuffle ? order[position] : position;
      if (Status status = reader.read(target, box.data() + 1, which * elementCount(sample)); !status)
        return status;
    }
    return {};
  }

private:
  OpenArray array;
  int64_t batch;
  std::vector<int64_t> sample; ///< shape of one
  bool shuffle;
  uint64_t seed;
  std::vector<int64_t> order; ///< of the samples, in epoch orderedFor
  uint64_t orderedFor = 0;
};

class FixedColumn final : public InputColumn {
public:
  explicit FixedColumn(OpenArray array) : array(std::move(array)) {}
  Status fill(std::byte *target, const Box &box, uint64_t, uint64_t) override {
    return SampleReader(array, array.header.shape).read(target, box.data(), 0);
  }

private:
  OpenArray array;
};

} // namespace

Result<std::unique_ptr<InputColumn>> npyColumn(const plan::Dataset &dataset, const plan::Dataset::Column &column,
                                               plan::DataType type, const std::vector<int64_t> &shape) {
  Result<std::string> path = expandPath(column.path());
  if (!path)
    return path.error();
  Result<OpenArray> array = openArray(*path, type);
  if (!array) {
    std::error_code ignored;
    Error error = array.error();
    if (error.code == ExitCode::Usage && (*path)[0] != '/')
      error.help = fmt::format("paths of columns are relative to where msrun is started, here '{}'",
                               std::filesystem::current_path(ignored).string());
    return error;
  }
  const std::vector<int64_t> &found = array->header.shape;
  bool fits = !shape.empty() && shape[0] > 0 && found.size() == shape.size() && std::equal(found.begin() + 1, found.end(), shape.begin() + 1);
  if (!fits)
    return Error{ExitCode::BadFile,
                 fmt::format("'{}' has shape {}, column '{}' takes batches of shape {}", *path, text(found),
                             column.name(), text(shape)),
                 fmt::format("save N samples with shape ({})", fmt::join(samplesOf(shape), ", "))};
  if (found[0] < shape[0])
    return Error{ExitCode::BadFile,
                 fmt::format("'{}' has {} samples, fewer than one batch of {}", *path, found[0], shape[0]),
                 found[0] == 0 ? "" : fmt::format("compile for batches of {} at most", found[0])};
  array->classes = column.classes();
  return std::unique_ptr<InputColumn>(new NpyColumn(std::move(*array), shape, dataset));
}

Result<std::unique_ptr<InputColumn>> fixedColumn(const std::string &path, const std::string &input, plan::DataType type,
                                                 const std::vector<int64_t> &shape, int64_t classes) {
  Result<OpenArray> array = openArray(path, type);
  if (!array)
    return array.error();
  if (array->header.shape != shape)
    return Error{ExitCode::BadFile,
                 fmt::format("'{}' has shape {}, input '{}' takes {}", path, text(array->header.shape), input, text(shape)),
                 ""};
  array->classes = classes;
  return std::unique_ptr<InputColumn>(new FixedColumn(std::move(*array)));
}

Result<std::string> expandPath(const std::string &path) {
  std::string result;
  for (size_t i = 0; i < path.size();) {
    size_t end = path.compare(i, 2, "${") == 0 ? path.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      result += path[i++];
      continue;
    }
    std::string name = path.substr(i + 2, end - i - 2);
    const char *value = std::getenv(name.c_str());
    if (!value)
      return Error{ExitCode::Usage, fmt::format("the path '{}' needs the environment variable '{}', which is not set", path, name),
                   fmt::format("export {}=...", name)};
    result += value;
    i = end + 1;
  }
  return result;
}

std::vector<int64_t> permutation(int64_t count, uint64_t seed, uint64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  RandomRow row(seed, fmt::format("shuffle of epoch {}", epoch));
  for (int64_t i = count; i-- > 1;) {
    std::array<uint32_t, 4> random = row.words(static_cast<uint64_t>(i));
    auto wide = static_cast<unsigned __int128>(uint64_t{random[0]} << 32 | random[1]);
    std::swap(order[i], order[static_cast<size_t>(wide * static_cast<uint64_t>(i + 1) >> 64)]);
  }
  return order;
}

} // namespace msc
