#include "runtime/checkpoint/Npy.h"

#include "runtime/plan/Bfloat16.h"

#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace msc {

using comm::ElementType;

namespace {

struct TypeName {
  const char *descr;
  ElementType type;
};
constexpr TypeName kTypes[] = {{"<f4", ElementType::F32},
                               {"<f8", ElementType::F64},
                               {"<f2", ElementType::F16},
                               {"<i4", ElementType::I32},
                               {"<i8", ElementType::I64},
                               {"|b1", ElementType::Bool}};
constexpr char kMagic[] = "\x93NUMPY";

Error bad(const std::string &path, const std::string &why, const std::string &help = "write it anew with numpy.save") {
  return {ExitCode::BadFile, "'" + path + "' is not a usable .npy file: " + why, help};
}

/// Reads the header's literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
public:
  HeaderParser(std::string_view text, const std::string &path) : text(text), path(path) {}

  Result<NpyHeader> parse() {
    if (!take('{'))
      return fail("a dictionary was expected");
    while (!take('}')) {
      std::optional<std::string> key = quoted();
      if (!key || !take(':'))
        return fail("a key was expected");
      if (Status done = value(*key); !done)
        return done.error();
      if (!take(',') && peek() != '}')
        return fail("',' or '}' was expected");
    }
    skipSpace();
    if (at != text.size())
      return fail("nothing was expected after the dictionary");
    if (!hasType || !hasOrder || !hasShape)
      return fail(std::string("there is no '") + (!hasType ? "descr" : !hasOrder ? "fortran_order" : "shape") + "'");
    return header;
  }

private:
  Error fail(const std::string &why) {
    return bad(path, why + " at character " + std::to_string(at) + " of its header");
  }
  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t'))
      ++at;
  }
  char peek() {
    skipSpace();
    return at < text.size() ? text[at] : '\0';
  }
  bool take(char c) {
    if (peek() != c)
      return false;
    ++at;
    return true;
  }
  bool word(std::string_view expected) {
    skipSpace();
    if (text.substr(at, expected.size()) != expected)
      return false;
    at += expected.size();
    return true;
  }
  std::optional<std::string> quoted() {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      return std::nullopt;
    size_t end = text.find(quote, at + 1);
    if (end == std::string_view::npos)
      return std::nullopt;
    std::string content(text.substr(at + 1, end - at - 1));
    at = end + 1;
    return content;
  }

  Status value(const std::string &key) {
    if (key == "descr")
      return once(hasType, key, [&] { return descr(); });
    if (key == "fortran_order")
      return once(hasOrder, key, [&] { return order(); });
    if (key == "shape")
      return once(hasShape, key, [&] { return shape(); });
    return fail("unknown key '" + key + "'");
  }
  template <typename Parse> Status once(bool &seen, const std::string &key, Parse parse) {
    if (seen)
      return fail("'" + key + "' occurs twice");
    seen = true;
    return parse();
  }
  Status descr() {
    std::optional<std::string> name = quoted();
    if (!name)
      return fail("the type of the elements is not one word");
    for (const TypeName &known : kTypes)
      if (*name == known.descr) {
        header.type = known.type;
        return Status::ok();
      }
    return bad(path, "elements of type '" + *name + "' (supported: <f4, <f8, <f2, <i4, <i8, |b1)",
               "convert it in Python with array.astype('<f4')");
  }
  Status order() {
    if (word("False"))
      return Status::ok();
    if (word("True"))
      return bad(path, "the array is stored column by column (fortran_order)",
                 "save numpy.ascontiguousarray(array) instead");
    return fail("True or False was expected");
  }
  Status shape() {
    if (!take('('))
      return fail("'(' was expected");
    __int128 total = 1;
    bool comma = true;
    while (!take(')')) {
      if (!comma)
        return fail("',' or ')' was expected");
      skipSpace();
      int64_t size = -1;
      auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), size);
      if (error != std::errc() || size < 0)
        return fail("a size was expected");
      at = end - text.data();
      total *= size;
      header.shape.push_back(size);
      if (total > (__int128{1} << 56) || header.shape.size() > 32)
        return fail("the shape is too large");
      comma = take(',');
    }
    if (header.shape.size() == 1 && !comma)
      return fail("a shape of one dimension ends in ','");
    return Status::ok();
  }

  std::string_view text;
  const std::string &path;
  size_t at = 0;
  NpyHeader header;
  bool hasType = false, hasOrder = false, hasShape = false;
};

} // namespace

Result<NpyHeader> readNpyHeader(const InputFile &file) {
  unsigned char start[12] = {};
  if (file.size() < 10)
    return bad(file.path(), "it has " + std::to_string(file.size()) + " bytes");
  if (Status done = file.read(0, start, std::min<uint64_t>(sizeof(start), file.size())); !done)
    return done.error();
  if (memcmp(start, kMagic, 6) != 0)
    return bad(file.path(), "it does not begin with \\x93NUMPY");
  unsigned major = start[6];
  if (major < 1 || major > 3 || start[7] != 0)
    return bad(file.path(), "format version " + std::to_string(major) + "." + std::to_string(start[7]) +
                                " (supported: 1.0 to 3.0)");
  uint64_t prefix = major == 1 ? 10 : 12;
  uint64_t length = start[8] | uint64_t{start[9]} << 8;
  if (major > 1)
    length |= uint64_t{start[10]} << 16 | uint64_t{start[11]} << 24;
  if (length > 65536 || prefix + length > file.size())
    return bad(file.path(), "its header claims " + std::to_string(length) + " bytes, the file has " +
                                std::to_string(file.size()));
  std::string text(length, '\0');
  if (Status done = file.read(prefix, text.data(), length); !done)
    return done.error();
  Result<NpyHeader> header = HeaderParser(text, file.path()).parse();
  if (!header)
    return header;
  header->dataOffset = prefix + length;
  uint64_t expected = static_cast<uint64_t>(header->count()) * comm::elementSize(header->type);
  if (file.size() - header->dataOffset != expected)
    return bad(file.path(), "its shape takes " + std::to_string(expected) + " bytes of data, the file has " +
                                std::to_string(file.size() - header->dataOffset));
  return header;
}

Result<NpyArray> readNpy(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file)
    return file.error();
  Result<NpyHeader> header = readNpyHeader(*file);
  if (!header)
    return header.error();
  NpyArray array{header->type, header->shape, {}};
  array.bytes.resize(file->size() - header->dataOffset);
  if (Status done = file->read(header->dataOffset, array.bytes.data(), array.bytes.size()); !done)
    return done.error();
  if (array.type == ElementType::Bool)
    for (size_t i = 0; i < array.bytes.size(); ++i)
      if (array.bytes[i] > std::byte{1})
        return bad(path, "bool " + std::to_string(i) + " is " + std::to_string(static_cast<int>(array.bytes[i])) +
                             ", neither 0 nor 1");
  return array;
}

/// bf16 -> f32.
static std::vector<float> widened(const void *data, int64_t count) {
  const auto *narrow = static_cast<const Bfloat16 *>(data);
  std::vector<float> wide;
  wide.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    wide.push_back(static_cast<float>(narrow[i]));
  return wide;
}

Status writeNpy(const std::string &path, ElementType type, const std::vector<int64_t> &shape, const void *data) {
  const char *descr = nullptr;
  if (type == ElementType::BF16) {
    std::vector<float> wide = widened(data, elementCount(shape));
    return writeNpy(path, ElementType::F32, shape, wide.data());
  }
  for (const TypeName &known : kTypes)
    if (known.type == type)
      descr = known.descr;
  std::string text = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }";
  // Magic, version, length, text and newline together take a multiple of 64 bytes.
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string start(kMagic, 6);
  start += {'\x01', '\x00', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  Result<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.error();
  if (Status done = file->write(start.data(), start.size()); !done)
    return done;
  if (Status done = file->write(text.data(), text.size()); !done)
    return done;
  if (Status done = file->write(data, elementCount(shape) * comm::elementSize(type)); !done)
    return done;
  return file->finish();
}

} // namespace msc
