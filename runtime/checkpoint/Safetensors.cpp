#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/Json.h"

#include <algorithm>
#include <tuple>

namespace msc {

using comm::ElementType;

/// The format's own limit of the header.
constexpr uint64_t kHeaderLimit = 100'000'000;

struct FormatType {
  const char *name;
  ElementType type;
};
constexpr FormatType kFormatTypes[] = {{"F32", ElementType::F32},   {"F64", ElementType::F64},
                                       {"I32", ElementType::I32},   {"I64", ElementType::I64},
                                       {"BOOL", ElementType::Bool}, {"F16", ElementType::F16},
                                       {"BF16", ElementType::BF16}};

const char *safetensorsTypeName(ElementType type) {
  for (const FormatType &known : kFormatTypes)
    if (known.type == type)
      return known.name;
  return "?";
}

std::optional<ElementType> safetensorsType(const std::string &name) {
  for (const FormatType &known : kFormatTypes)
    if (name == known.name)
      return known.type;
  return std::nullopt;
}

static Error bad(const std::string &path, const std::string &why) {
  return {ExitCode::BadFile, "'" + path + "' is not a usable safetensors file: " + why, ""};
}

/// One entry of the header; `dataBegin` is where offsets count from.
static Result<StoredTensor> readEntry(const std::string &path, const std::string &name, const Json &entry,
                                      uint64_t dataBegin, uint64_t dataBytes) {
  std::optional<std::string> typeName = text(member(entry, "dtype"));
  std::optional<std::vector<int64_t>> shape = wholeNumbers(member(entry, "shape"));
  std::optional<std::vector<int64_t>> offsets = wholeNumbers(member(entry, "data_offsets"));
  if (!typeName || !shape || !offsets || offsets->size() != 2 || entry.size() != 3)
    return bad(path, "tensor '" + name + "' does not consist of dtype, shape and two data_offsets");
  std::optional<ElementType> type = safetensorsType(*typeName);
  if (!type)
    return bad(path, "tensor '" + name + "' has type '" + *typeName +
                         "' (supported: F32, F64, I32, I64, BOOL, F16, BF16)");
  uint64_t begin = (*offsets)[0], end = (*offsets)[1];
  if (begin > end || end > dataBytes)
    return bad(path, "tensor '" + name + "' lies at bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                         " of " + std::to_string(dataBytes));
  unsigned __int128 expected = comm::elementSize(*type);
  for (int64_t size : *shape)
    expected = size == 0 ? 0 : std::min(expected * static_cast<uint64_t>(size), static_cast<unsigned __int128>(1) << 63);
  if (expected != end - begin)
    return bad(path, "tensor '" + name + "' needs " + std::to_string(static_cast<uint64_t>(expected)) + " bytes but has " +
                         std::to_string(end - begin));
  return StoredTensor{name, *type, *shape, dataBegin + begin, dataBegin + end};
}

Result<SafetensorsReader> SafetensorsReader::open(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file)
    return file.error();
  SafetensorsReader reader(std::move(*file));
  if (Status done = reader.readHeader(); !done)
    return done.error();
  return reader;
}

Status SafetensorsReader::readHeader() {
  const std::string &path = input.path();
  unsigned char start[8];
  if (input.size() < 8)
    return bad(path, "it has " + std::to_string(input.size()) + " bytes");
  if (Status done = input.read(0, start, 8); !done)
    return done;
  uint64_t length = 0;
  for (int i = 0; i < 8; ++i)
    length |= uint64_t{start[i]} << (8 * i);
  if (length > kHeaderLimit || length > input.size() - 8)
    return bad(path, "its header claims " + std::to_string(length) + " bytes, the file has " +
                         std::to_string(input.size()));
  std::string content(length, '\0');
  if (Status done = input.read(8, content.data(), length); !done)
    return done;
  if (content.empty() || content[0] != '{')
    return bad(path, "its header does not begin with '{'");
  Result<Json> header = parseJsonObject(content, "the header of '" + path + "'");
  if (!header)
    return header.error();
  uint64_t dataBegin = 8 + length, dataBytes = input.size() - dataBegin;
  for (auto &[name, entry] : header->items()) {
    if (name == "__metadata__") {
      for (auto &[key, value] : entry.items()) {
        if (!entry.is_object() || !value.is_string())
          return bad(path, "its __metadata__ is not a map of texts");
        notes[key] = value.get<std::string>();
      }
      continue;
    }
    Result<StoredTensor> tensor = readEntry(path, name, entry, dataBegin, dataBytes);
    if (!tensor)
      return tensor.error();
    list.push_back(*tensor);
  }
  std::sort(list.begin(), list.end(), [](const StoredTensor &a, const StoredTensor &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t at = dataBegin;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].begin != at)
      return bad(path, "tensor '" + list[i].name + "' begins at byte " + std::to_string(list[i].begin - dataBegin) +
                           ", " + std::to_string(at - dataBegin) + " was expected");
    at = list[i].end;
    byName[list[i].name] = i;
  }
  if (at != input.size())
    return bad(path, std::to_string(input.size() - at) + " bytes follow the last tensor");
  return Status::ok();
}

const StoredTensor *SafetensorsReader::find(const std::string &name) const {
  auto found = byName.find(name);
  return found == byName.end() ? nullptr : &list[found->second];
}

static std::string headerText(const std::vector<TensorBytes> &tensors,
                              const std::map<std::string, std::string> &metadata) {
  Json header = Json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const TensorBytes &tensor : tensors) {
    uint64_t end = at + elementCount(tensor.shape) * comm::elementSize(tensor.type);
    header[tensor.name] = {{"dtype", safetensorsTypeName(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, end}}};
    at = end;
  }
  std::string content = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  // The data begins at a multiple of 64, so that a mapped file can be used in place.
  content.append((64 - (8 + content.size()) % 64) % 64, ' ');
  return content;
}

uint64_t safetensorsSize(const std::vector<TensorBytes> &tensors, const std::map<std::string, std::string> &metadata) {
  uint64_t bytes = 8 + headerText(tensors, metadata).size();
  for (const TensorBytes &tensor : tensors)
    bytes += elementCount(tensor.shape) * comm::elementSize(tensor.type);
  return bytes;
}

Result<WrittenFile> writeSafetensors(const std::string &path, const std::vector<TensorBytes> &tensors,
                                     const std::map<std::string, std::string> &metadata) {
  std::string content = headerText(tensors, metadata);
  unsigned char start[8];
  for (int i = 0; i < 8; ++i)
    start[i] = static_cast<unsigned char>(content.size() >> (8 * i));
  Result<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.error();
  if (Status done = file->write(start, 8); !done)
    return done.error();
  if (Status done = file->write(content.data(), content.size()); !done)
    return done.error();
  for (const TensorBytes &tensor : tensors)
    if (Status done = file->write(tensor.data, elementCount(tensor.shape) * comm::elementSize(tensor.type)); !done)
      return done.error();
  WrittenFile written{file->size(), file->checksum()};
  if (Status done = file->finish(); !done)
    return done.error();
  return written;
}

} // namespace msc
